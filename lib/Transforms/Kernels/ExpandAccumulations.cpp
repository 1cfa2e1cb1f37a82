//===- ExpandAccumulations.cpp - Explicit additions in accumulate loops ---===//
//
// Makes the running sums of a shardc.accumulate arguments of its body, and the
// additions to them ops of the body. Fusion can then join an addition with the
// op that computes the summand.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-expand-accumulations"

namespace shardc {
#define GEN_PASS_DEF_EXPANDACCUMULATIONSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct ExpandAccumulationsPass
    : shardc::impl::ExpandAccumulationsPassBase<ExpandAccumulationsPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Partition)))
      return signalPassFailure();
    getOperation().walk(expand);
  }

  static void expand(AccumulateOp loop) {
    if (!loop.getSums().empty())
      return;
    YieldOp yield = loop.getYield();
    OpBuilder builder(yield);
    for (OpOperand &summand : yield->getOpOperands()) {
      LLVM_DEBUG(llvm::dbgs() << "sum " << summand.getOperandNumber() << " of "
                              << describeOp(loop) << '\n');
      Location loc = summand.get().getLoc();
      Value sum = loop.getBody().addArgument(summand.get().getType(),
                                             getFileLocation(loc));
      auto add = builder.create<AddOp>(loc, sum, summand.get());
      if (Operation *maker = summand.get().getDefiningOp())
        setPlaceInStep(add, maker);
      add->setAttr(partAttrName, loop->getAttr(partAttrName));
      summand.set(add);
    }
  }
};

} // namespace
