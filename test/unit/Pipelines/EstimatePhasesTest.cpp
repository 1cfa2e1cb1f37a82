//===- EstimatePhasesTest.cpp - One estimate in every phase ---------------===//

#include "shardc/Models/Mlp.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Report/TimeEstimate.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace shardc;

/// The estimate for the train step on `machine` after each phase from
/// `collectives` to `codegen`.
static std::vector<TimeEstimate> getEstimates(const MlpSpec &spec,
                                              const Machine &machine) {
  mlir::DialectRegistry registry;
  registerShardcDialects(registry);
  mlir::MLIRContext context(registry);
  mlir::OwningOpRef<mlir::ModuleOp> module = buildMlp(context, spec);
  std::vector<TimeEstimate> estimates;
  int first = getPhaseIndex("collectives");
  for (int phase = 0; phase <= getPhaseIndex("codegen"); ++phase) {
    CompileState state;
    mlir::PassManager manager(&context);
    buildPhases(manager, phase, phase, {}, state);
    EXPECT_TRUE(succeeded(manager.run(*module)));
    if (phase >= first)
      estimates.push_back(estimateTime(
          module->lookupSymbol<mlir::func::FuncOp>("train_step"), machine));
  }
  return estimates;
}

TEST(EstimatePhases, KernelsChangeLittle) {
  llvm::Expected<Machine> machine = loadMachine("h100");
  ASSERT_TRUE(bool(machine));
  for (const std::string &strategy : getStrategies()) {
    // A pipeline has a program for each rank from `schedule` on.
    if (llvm::StringRef(strategy).contains("pp"))
      continue;
    SCOPED_TRACE(strategy);
    MlpSpec spec;
    spec.layers = {784, 1024, 1024, 10};
    spec.loss = "softmax_cross_entropy";
    spec.optimizer = "adamw";
    spec.strategy = strategy;
    spec.batchSize = 128;
    ASSERT_EQ(checkMlp(spec), "");
    std::vector<TimeEstimate> estimates = getEstimates(spec, *machine);
    for (const TimeEstimate &estimate : estimates) {
      const TimeEstimate &first = estimates.front();
      EXPECT_DOUBLE_EQ(estimate.communicationSeconds,
                       first.communicationSeconds);
      EXPECT_NEAR(estimate.computeSeconds, first.computeSeconds,
                  0.01 * first.computeSeconds);
      EXPECT_NEAR(estimate.memorySeconds, first.memorySeconds,
                  0.05 * first.memorySeconds);
      // Sums in another order round differently.
      double computing = estimate.computeSeconds + estimate.memorySeconds;
      double overlapped = estimate.overlappedSeconds;
      EXPECT_LE(overlapped, estimate.getSeconds() * (1 + 1e-9));
      EXPECT_GE(overlapped, estimate.communicationSeconds * (1 - 1e-9));
      EXPECT_GE(overlapped, computing * (1 - 1e-9));
    }
  }
}
