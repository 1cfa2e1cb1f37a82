//===- CompileTest.cpp - The compiler behind one function -----------------===//

#include "shardc/Driver/Compile.h"
#include "shardc/Models/Mlp.h"
#include "shardc/Pipelines/Phases.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <thread>

using namespace shardc;

static MlpSpec getSpec() {
  MlpSpec spec;
  spec.layers = {6, 10, 3};
  spec.strategy = "fsdp";
  spec.mesh = {{"data", 4}};
  spec.batchSize = 8;
  return spec;
}

TEST(Models, EverySpecGivesAModule) {
  mlir::DialectRegistry registry;
  registerShardcDialects(registry);
  for (const std::string &strategy : getStrategies())
    for (const std::string &loss : getLosses())
      for (const std::string &optimizer : getOptimizers()) {
        MlpSpec spec = getSpec();
        spec.strategy = strategy;
        spec.mesh.clear();
        spec.loss = loss;
        spec.optimizer = optimizer;
        spec.layerNorm = true;
        spec.dropout = 0.25;
        spec.learningRate = 3e-7;
        ASSERT_EQ(checkMlp(spec), "");
        mlir::MLIRContext context(registry);
        EXPECT_TRUE(buildMlp(context, spec)) << printMlp(spec);
      }
}

TEST(Compile, EqualInputsGiveEqualPlansInAnyThread) {
  std::string source = printMlp(getSpec());
  std::string plans[3];
  std::vector<std::thread> threads;
  for (std::string &plan : plans)
    threads.emplace_back([&] {
      CompileResult result = compileSource(source, "m.mlir", {});
      if (result.code == ExitCode::Ok)
        plan = result.plan;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_FALSE(plans[0].empty());
  EXPECT_EQ(plans[0], plans[1]);
  EXPECT_EQ(plans[0], plans[2]);
}

TEST(Compile, SingleDeviceKeepsTheAxes) {
  CompileOptions options;
  options.singleDevice = true;
  CompileResult result = compileSource(printMlp(getSpec()), "m.mlir", options);
  EXPECT_EQ(result.code, ExitCode::Ok) << result.diagnostics;
  EXPECT_NE(result.plan.find("data"), std::string::npos);
}

TEST(Compile, ErrorsAreDiagnosticsWithAPlace) {
  CompileResult result = compileSource("module {\n  nonsense\n}", "m.mlir", {});
  EXPECT_EQ(result.code, ExitCode::InvalidInput);
  EXPECT_NE(result.diagnostics.find("m.mlir:2:3: error:"), std::string::npos)
      << result.diagnostics;
  EXPECT_EQ(compileFile("/no/such/file.mlir", {}).code, ExitCode::InvalidInput);
  EXPECT_EQ(compileFileTo("-", "no-such-phase", {}).code, ExitCode::Usage);
}

TEST(Phases, AreFoundByName) {
  std::vector<std::string> names = getPhaseNames();
  EXPECT_EQ(names.front(), "import");
  EXPECT_EQ(names.back(), "plan");
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(getPhaseIndex(names[i]), static_cast<int>(i));
  EXPECT_EQ(getPhaseIndex("nothing"), -1);
}
