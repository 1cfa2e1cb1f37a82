//===- CheckExpectations.cpp - Check contracts of the model ---------------===//
//
// The pass over the checks of Report/Expectations.h.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Report/Expectations.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {
#define GEN_PASS_DEF_CHECKEXPECTATIONSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;

namespace {

struct CheckExpectationsPass
    : shardc::impl::CheckExpectationsPassBase<CheckExpectationsPass> {
  using CheckExpectationsPassBase::CheckExpectationsPassBase;

  void runOnOperation() override {
    if (failed(shardc::checkInputPhase(*this, getOperation(),
                                       shardc::ModulePhase::Propagate,
                                       shardc::ModulePhase::Codegen)))
      return signalPassFailure();
    if (failed(check(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult check(ModuleOp module) {
    if (after == "propagate")
      return shardc::checkExpectedFlops(module);
    if (after == "collectives")
      return shardc::checkExpectedCollectives(module);
    if (after == "memory")
      return shardc::checkExpectedMemory(module);
    return module.emitError("shardc-check-expectations: expected "
                            "after=propagate, after=collectives or "
                            "after=memory, found '")
           << after << "'";
  }
};

} // namespace
