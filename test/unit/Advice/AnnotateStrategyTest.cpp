//===- AnnotateStrategyTest.cpp - Strategies on given models --------------===//

#include "shardc/Models/AnnotateStrategy.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Models/Mlp.h"
#include "shardc/Pipelines/Phases.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace shardc;

namespace {

class AnnotateStrategy : public testing::Test {
protected:
  AnnotateStrategy() : context(makeRegistry()) {}

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerShardcDialects(registry);
    return registry;
  }

  /// The text of a module without the names of its file.
  static std::string print(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream(text) << module;
    return text;
  }

  /// `spec` written by the builder, with another strategy taken from it, and
  /// with its own one put on.
  void expectAsBuilt(MlpSpec spec) {
    for (const std::string &strategy : getStrategies()) {
      spec.strategy = strategy;
      OwningOpRef<ModuleOp> built = buildMlp(context, spec);
      ASSERT_TRUE(built) << strategy;
      MlpSpec other = spec;
      other.strategy = strategy == "fsdp+tp+pp" ? "zero2" : "fsdp+tp+pp";
      OwningOpRef<ModuleOp> annotated = buildMlp(context, other);
      removeAnnotations(*annotated);
      Strategy parts(strategy);
      setMesh(*annotated, getMesh(spec, parts));
      annotateStrategy(*annotated, parts);
      if (strategy != "none") {
        EXPECT_EQ(print(*annotated), print(*built)) << strategy;
      }
    }
  }

  MLIRContext context;
};

} // namespace

TEST_F(AnnotateStrategy, IsTheBuildersOnPlainLayers) {
  MlpSpec spec;
  spec.layers = {16, 32, 24, 10};
  spec.loss = "softmax_cross_entropy";
  spec.optimizer = "adam";
  expectAsBuilt(spec);
  spec.layers = {16, 32};
  spec.loss = "mse";
  spec.optimizer = "sgd";
  expectAsBuilt(spec);
}

TEST_F(AnnotateStrategy, IsTheBuildersOnNormsAndDropout) {
  MlpSpec spec;
  spec.layers = {16, 32, 24, 8, 10};
  spec.layerNorm = true;
  spec.dropout = 0.5;
  spec.activation = "gelu";
  expectAsBuilt(spec);
}

TEST_F(AnnotateStrategy, IsTheBuildersOnResidualBlocks) {
  MlpSpec spec;
  spec.layers = {16, 24, 32, 10};
  spec.residualBlocks = 3;
  spec.activation = "silu";
  spec.optimizer = "adamw";
  expectAsBuilt(spec);
  spec.layers = {16, 32, 10};
  expectAsBuilt(spec);
}

TEST_F(AnnotateStrategy, KeepsWhatIsFixed) {
  MlpSpec spec;
  spec.layers = {16, 32, 10};
  spec.strategy = "tp";
  OwningOpRef<ModuleOp> module = buildMlp(context, spec);
  removeAnnotations(*module, {"w1"});
  func::FuncOp loss = getLoss(*module);
  int kept = 0;
  for (unsigned index = 0; index < loss.getNumArguments(); ++index)
    kept += bool(loss.getArgAttr(index, shardingAttrName));
  EXPECT_EQ(kept, 1);
}

TEST_F(AnnotateStrategy, TakesConstraintsAndStagesAway) {
  const char *text = R"(
    module attributes {shardc.rules = {rows = ["data"]}, shardc.recompute = "layer",
        shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.1>>} {
      shardc.mesh @mesh <["data" = 2]>
      func.func @loss(
          %x: tensor<4x8xf32> {shardc.role = #shardc.input<"x">, shardc.logical_axes = ["rows", ""]},
          %w: tensor<8x8xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
        %z = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
        %c = shardc.sharding_constraint %z sharding = <@mesh, [{"data"}, {}]> : tensor<4x8xf32>
        %l = shardc.mse %c, %x {shardc.stage = 1 : i64} : tensor<4x8xf32> -> tensor<f32>
        return %l : tensor<f32>
      }
    })";
  context.loadAllAvailableDialects();
  auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  ASSERT_TRUE(module);
  removeAnnotations(*module);
  std::string printed = print(*module);
  for (const char *left :
       {"sharding", "stage", "rules", "recompute", "logical"})
    EXPECT_EQ(printed.find(left), std::string::npos) << left << "\n" << printed;
}
