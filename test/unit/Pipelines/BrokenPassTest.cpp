//===- BrokenPassTest.cpp - Passes that break the IR ----------------------===//
//
// Here the phase `differentiate` has a pass that leaves IR that does not
// verify, and one behind it that mends that, if a test says so. The linker puts
// them around the phase's own passes (--wrap in CMakeLists.txt).
//
//===----------------------------------------------------------------------===//

#include "shardc/Driver/Compile.h"
#include "shardc/Models/Mlp.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace shardc;

/// The phase's own passes, and those in their place.
std::unique_ptr<Pass> createRealDifferentiatePass() asm(
    "__real__ZN6shardc23createDifferentiatePassEv");
std::unique_ptr<Pass> createWrappedDifferentiatePass() asm(
    "__wrap__ZN6shardc23createDifferentiatePassEv");
std::unique_ptr<Pass> createRealSplitMicrobatchesPass() asm(
    "__real__ZN6shardc27createSplitMicrobatchesPassEv");
std::unique_ptr<Pass> createWrappedSplitMicrobatchesPass() asm(
    "__wrap__ZN6shardc27createSplitMicrobatchesPassEv");

namespace {

bool breaksIR = false, mendsIR = false;

/// A second function of the name of the first: no module verifies with it.
class WrappedPass : public PassWrapper<WrappedPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WrappedPass)

  WrappedPass(bool isFirst, std::unique_ptr<Pass> pass)
      : isFirst(isFirst), passes(ModuleOp::getOperationName()) {
    passes.addPass(std::move(pass));
  }
  WrappedPass(const WrappedPass &other) = default;

  StringRef getName() const override { return "Wrapped"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!isFirst && mendsIR)
      module.getBody()->back().erase();
    if (failed(runPipeline(passes, module)))
      return signalPassFailure();
    if (isFirst && breaksIR)
      module.push_back((*module.getOps<func::FuncOp>().begin()).clone());
  }

private:
  bool isFirst;
  OpPassManager passes;
};

} // namespace

std::unique_ptr<Pass> createWrappedDifferentiatePass() {
  return std::make_unique<WrappedPass>(/*isFirst=*/true,
                                       createRealDifferentiatePass());
}

std::unique_ptr<Pass> createWrappedSplitMicrobatchesPass() {
  return std::make_unique<WrappedPass>(/*isFirst=*/false,
                                       createRealSplitMicrobatchesPass());
}

/// Compiles a model, with IR that is broken after the first pass of a phase
/// and, unless `isMended`, at its end.
static CompileResult compileBroken(bool isMended, bool verifyEach) {
  MlpSpec spec;
  spec.layers = {6, 3};
  spec.batchSize = 8;
  CompileOptions options;
  options.verifyEach = verifyEach;
  breaksIR = true;
  mendsIR = isMended;
  CompileResult result = compileSource(printMlp(spec), "m.mlir", options);
  breaksIR = mendsIR = false;
  return result;
}

TEST(BrokenPass, IsNotNoticedBetweenPassesByDefault) {
  CompileResult result = compileBroken(/*isMended=*/true, false);
  EXPECT_EQ(result.code, ExitCode::Ok) << result.diagnostics;
}

TEST(BrokenPass, IsNoticedByVerifyEach) {
  CompileResult result = compileBroken(/*isMended=*/true, true);
  EXPECT_NE(result.code, ExitCode::Ok);
  EXPECT_NE(result.diagnostics.find("error: redefinition of symbol"),
            std::string::npos)
      << result.diagnostics;
}

TEST(BrokenPass, IsNoticedAtTheEndOfThePhase) {
  CompileResult result = compileBroken(/*isMended=*/false, false);
  EXPECT_EQ(result.code, ExitCode::Internal);
  EXPECT_NE(result.diagnostics.find("phase 'differentiate' broke its contract"),
            std::string::npos)
      << result.diagnostics;
}
