//===- ExpandAccumulations.cpp - Explicit additions in accumulate loops ---===//
//
// Makes the running sums of a shardc.accumulate arguments of its body, and the
// additions to them ops of the body. Fusion can then join an addition with the
// op that computes the summand. A shardc.scatter_rows becomes a selection: the
// rows are repeated for each microbatch, and kept for the current one alone.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/Arithmetic.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
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
    getOperation().walk(expandScatter);
  }

  static void expandScatter(ScatterRowsOp op) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    // From [rows, …] to [count, rows, …].
    RankedTensorType type = getTensorType(op.getOperand());
    SmallVector<int64_t> shape(type.getShape());
    int64_t rows = shape[0], count = op.getCount();
    shape.insert(shape.begin(), count);
    Arithmetic numbers(builder, loc, type.clone(shape, builder.getI32Type()));
    auto iota = [&](int64_t dim, DenseI64ArrayAttr microbatch) -> Value {
      return builder.create<IotaOp>(loc, numbers.getType(), dim, ShardingAttr(),
                                    microbatch);
    };
    // The rows of the current microbatch, less those of the first, against the
    // rows before each.
    Value row = iota(1, builder.getDenseI64ArrayAttr({count, rows}));
    Value start = numbers.sub(row, iota(1, {}));
    Value run = iota(0, {});
    Value size = numbers.constant(static_cast<double>(rows));
    Value isCurrent =
        compare(builder, loc, CompareKind::EQ, start, numbers.mul(run, size));

    Arithmetic values(builder, loc, type.clone(shape));
    auto dims = llvm::to_vector(llvm::seq<int64_t>(1, shape.size()));
    Value repeated = builder.create<BroadcastOp>(loc, values.getType(),
                                                 op.getOperand(), dims);
    Value zero = values.constant(0);
    Value selected = values.select(isCurrent, repeated, zero);
    Value result =
        builder.create<ReshapeOp>(loc, op.getResult().getType(), selected);
    for (Operation *made = row.getDefiningOp(); made != op;
         made = made->getNextNode())
      setPlaceInStep(made, op);
    op.replaceAllUsesWith(result);
    op.erase();
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
