//===- EditSourceTest.cpp - Annotations as edits of the text --------------===//

#include "shardc/Models/EditSource.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Models/AnnotateStrategy.h"
#include "shardc/Models/Mlp.h"
#include "shardc/Pipelines/Phases.h"

#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace shardc;

namespace {

class EditSource : public testing::Test {
protected:
  EditSource() : context(makeRegistry()) {}

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerShardcDialects(registry);
    return registry;
  }

  /// `text` with the annotations of `strategy`, as edits, or why there are
  /// none.
  std::string edit(const std::string &text, StringRef strategy,
                   const MeshSpec &mesh, int64_t microbatches = 1,
                   const std::set<std::string> &kept = {}) {
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(text, ParserConfig(&context));
    if (!module)
      return "does not parse";
    removeAnnotations(*module, kept);
    setMesh(*module, mesh);
    annotateStrategy(*module, Strategy(strategy));
    auto training = (*module)->getAttrOfType<TrainingAttr>(trainingAttrName);
    (*module)->setAttr(trainingAttrName,
                       TrainingAttr::get(&context, training.getLoss(),
                                         training.getOptimizer(),
                                         training.getClipNorm(),
                                         training.getSchedule(), microbatches));
    llvm::Expected<std::string> edited = editSource(text, *module);
    return edited ? *edited : "error: " + llvm::toString(edited.takeError());
  }

  MLIRContext context;
};

} // namespace

// A person's file: comments everywhere, a layout of its own, two constraints.
static constexpr const char *written =
    R"(// My model. "Quotes" and <brackets in a comment.

#rows = #shardc.sharding<@mesh, [{"data"}, {}]> // rows of the batch
#old = #shardc.sharding<@mesh, [{}, {"model"}]>

// What is trained.
module @mine attributes {
    shardc.expect = [#shardc.max_collectives<0>], // none
    shardc.training = #shardc.training<loss = @loss,
                                       optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 2, "model" = 2]> // four devices

  func.func @loss(
      %images: tensor<64x32xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows}, // pixels
      %labels: tensor<64x16xf32> {shardc.role = #shardc.label<"y">},
      %weights: tensor<32x16xf32> {shardc.sharding = #old, shardc.role = #shardc.parameter<"w0", he_normal>},
      %shift: tensor<16xf32> {shardc.role = #shardc.parameter<"b->0}", constant(0.0)>}
  ) -> tensor<f32> {
    // The layer.
    %z = shardc.linear %images, %weights, %shift {shardc.stage = 0}
        : tensor<64x32xf32>, tensor<32x16xf32>, tensor<16xf32> -> tensor<64x16xf32>
    %c = shardc.sharding_constraint %z sharding = #old : tensor<64x16xf32>
    %h = shardc.relu %c : tensor<64x16xf32> // keeps what is positive
    %loss = shardc.mse %h, %labels : tensor<64x16xf32>
        -> tensor<f32>
    return %loss : tensor<f32>
  }
}
)";

TEST_F(EditSource, KeepsCommentsNamesAndLayout) {
  EXPECT_EQ(edit(written, "fsdp", {{"data", 4}}),
            R"(// My model. "Quotes" and <brackets in a comment.

#rows = #shardc.sharding<@mesh, [{"data"}, {}]> // rows of the batch

// What is trained.
module @mine attributes {
    // none
    shardc.training = #shardc.training<loss = @loss,
                                       optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4]> // four devices

  func.func @loss(
      %images: tensor<64x32xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows}, // pixels
      %labels: tensor<64x16xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #rows},
      %weights: tensor<32x16xf32> {shardc.sharding = #rows, shardc.role = #shardc.parameter<"w0", he_normal>},
      %shift: tensor<16xf32> {shardc.role = #shardc.parameter<"b->0}", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"data"}]>}
  ) -> tensor<f32> {
    // The layer.
    %z = shardc.linear %images, %weights, %shift
        : tensor<64x32xf32>, tensor<32x16xf32>, tensor<16xf32> -> tensor<64x16xf32>
    %h = shardc.relu %z : tensor<64x16xf32> // keeps what is positive
    %loss = shardc.mse %h, %labels : tensor<64x16xf32>
        -> tensor<f32>
    return %loss : tensor<f32>
  }
}
)");
}

TEST_F(EditSource, ChangesNothingThatIsAsItShouldBe) {
  std::string once = edit(written, "fsdp+tp", {{"data", 2}, {"model", 2}}, 4);
  EXPECT_EQ(edit(once, "fsdp+tp", {{"data", 2}, {"model", 2}}, 4), once);
  EXPECT_THAT(once, testing::HasSubstr("0.01>,\n"
                                       "                                       "
                                       "microbatches = 4>} {\n"));
  EXPECT_THAT(edit(once, "fsdp+tp", {{"data", 2}, {"model", 2}}, 2),
              testing::HasSubstr("microbatches = 2>} {\n"));
  EXPECT_EQ(edit(once, "dp", {{"data", 4}}, 1),
            edit(edit(written, "dp", {{"data", 4}}), "dp", {{"data", 4}}));
}

TEST_F(EditSource, TurnsEveryStrategyIntoEveryOther) {
  for (const std::string &first : getStrategies())
    for (const std::string &second : getStrategies()) {
      if (second == "none")
        continue;
      MlpSpec spec;
      spec.batchSize = 32;
      spec.layers = {16, 32, 32, 8};
      spec.optimizer = "adam";
      spec.strategy = first;
      std::string text = printMlp(spec);
      Strategy strategy(second);
      spec.strategy = second;
      std::string edited = edit(text, second, getMesh(spec, strategy));
      EXPECT_FALSE(StringRef(edited).starts_with("error")) << first << second;
      EXPECT_THAT(edited, testing::HasSubstr("      %w0: tensor<16x32xf32> "
                                             "{shardc.role = "));
      // As the generator writes it, but for the order of aliases.
      if (second == first) {
        EXPECT_EQ(edited, text);
      }
    }
}

TEST_F(EditSource, AddsWhatTheTextHasNot) {
  // No mesh, no dictionary of an argument, logical axes with their rules.
  std::string text =
      R"(module attributes {shardc.rules = {batch = ["data"]}, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  func.func @loss(%x: tensor<64x32xf32> {shardc.role = #shardc.input<"x">},
                  %y: tensor<64x32xf32> {shardc.role = #shardc.label<"y">}) -> (tensor<f32> {shardc.sharding = #shardc.sharding<@mesh, []>}) {
    %loss = shardc.mse %x, %y : tensor<64x32xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
)";
  EXPECT_EQ(edit(text, "dp", {{"data", 4}}),
            R"(#rows_data = #shardc.sharding<@mesh, [{"data"}, {}]>

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4]>

  func.func @loss(%x: tensor<64x32xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows_data},
                  %y: tensor<64x32xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #rows_data}) -> (tensor<f32>) {
    %loss = shardc.mse %x, %y : tensor<64x32xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
)");
}

TEST_F(EditSource, KeepsCommentsBehindWhatItRemoves) {
  std::string text = written;
  auto add = [&](StringRef line, StringRef comment) {
    text.insert(text.find(line) + line.size(), comment);
  };
  add("[{}, {\"model\"}]>", "  // of old");
  add("sharding = #old : tensor<64x16xf32>", " // why");
  std::string edited = edit(text, "fsdp", {{"data", 4}});
  EXPECT_THAT(edited, testing::HasSubstr("// rows of the batch\n"
                                         "// of old\n"
                                         "\n"
                                         "// What is trained.\n"));
  EXPECT_THAT(edited, testing::HasSubstr("-> tensor<64x16xf32>\n"
                                         "    // why\n"
                                         "    %h = shardc.relu %z"));
}

TEST_F(EditSource, MovesCommentsAboveWhatItRewrites) {
  std::string text = written;
  auto replace = [&](StringRef what, StringRef with) {
    size_t at = text.find(what);
    ASSERT_NE(at, text.npos) << what.str();
    text.replace(at, what.size(), with);
  };
  replace("[\"data\" = 2, \"model\" = 2]", "[\"data\" = 2, // rows\n"
                                           "    // then columns\n"
                                           "    \"model\" = 2]");
  replace("sharding_constraint %z sharding",
          "sharding_constraint %z // first\n        sharding");
  replace("{shardc.stage = 0}", "{shardc.stage = // the \"only\" one\n 0}");
  replace("[{}, {\"model\"}]>", "[{}, // whole\n {\"model\"}]>");
  replace("{shardc.sharding = #old, shardc.role",
          "{shardc.sharding = // as z\n #old, shardc.role");
  std::string edited = edit(text, "fsdp", {{"data", 4}});
  EXPECT_THAT(edited, testing::HasSubstr("  // then columns\n"
                                         "  shardc.mesh @mesh "
                                         "<[\"data\" = 4]> // four devices\n"));
  for (const char *comment : {"// rows\n", "// first\n", "// whole\n",
                              "// the \"only\" one\n", "// as z\n"})
    EXPECT_THAT(edited, testing::HasSubstr(comment)) << edited;
  // Once more nothing is left to move.
  EXPECT_EQ(edit(edited, "fsdp", {{"data", 4}}), edited);
}

TEST_F(EditSource, LinesEndAsThoseOfTheText) {
  auto toWindows = [](StringRef text) {
    std::string result;
    for (char letter : text)
      result += letter == '\n' ? "\r\n" : std::string(1, letter);
    return result;
  };
  std::string once = edit(written, "fsdp+tp", {{"data", 2}, {"model", 2}}, 4);
  EXPECT_EQ(edit(toWindows(written), "fsdp+tp", {{"data", 2}, {"model", 2}}, 4),
            toWindows(once));
  EXPECT_EQ(edit(toWindows(once), "dp", {{"data", 4}}),
            toWindows(edit(once, "dp", {{"data", 4}})));
  EXPECT_EQ(getLineEnding("a\r\nb\n"), "\r\n");
  EXPECT_EQ(getLineEnding("a\nb\r\n"), "\n");
  EXPECT_EQ(getLineEnding(""), "\n");
  EXPECT_EQ(getLineEnding("a\r"), "\n");
}

TEST_F(EditSource, KeepsWhatIsFixed) {
  EXPECT_THAT(edit(written, "dp", {{"data", 2}, {"model", 2}}, 1, {"w0"}),
              testing::AllOf(testing::HasSubstr("#old = "),
                             testing::HasSubstr("{shardc.sharding = #old, ")));
}

TEST_F(EditSource, RefusesTheGenericForm) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(written, ParserConfig(&context));
  ASSERT_TRUE(module);
  std::string generic;
  llvm::raw_string_ostream os(generic);
  (*module)->print(os, OpPrintingFlags().printGenericOpForm());
  EXPECT_EQ(edit(os.str(), "fsdp", {{"data", 4}}),
            "error: its text is in a form that edits of annotations do not "
            "know");
}

TEST_F(EditSource, RefusesOtherPrograms) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(written, ParserConfig(&context));
  for (const char *text : {"", "x", "module {} module {}", "\"", "// }"}) {
    llvm::Expected<std::string> edited = editSource(text, *module);
    ASSERT_FALSE(edited);
    llvm::consumeError(edited.takeError());
  }
}
