//===- SplitReductions.cpp - Two-stage reductions for GPUs ----------------===//
//
// A GPU needs thousands of independent threads. A reduction to one element has
// them only in two stages: the rows, independently of one another, then the
// results of the rows. A kernel that reduces rows anyway, as of a softmax, can
// compute the first stage as well, and need not store the operand of it.
//
// Sums over the columns of a matrix, the gradients of biases, are marked for
// shardc-form-gemms: a library GEMM that reads the matrix can return them too.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/KernelNest.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Builders.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-split-reductions"

namespace shardc {
#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// The least number of elements of a tensor for which a second kernel, which
/// takes some microseconds, costs less than a reduction by one thread block.
static constexpr int64_t minTwoStageElements = 1 << 16;

/// The least number of elements of a row: with shorter rows, the second stage
/// is as much work as the first.
static constexpr int64_t minRowElements = 32;

/// Whether a kernel that reduces rows can compute `value`: elementwise ops
/// compute `value` and the operand of some row reduction from a common value.
static bool isComputableByRowKernel(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  ArrayRef<int64_t> shape = type.getShape();
  // Rows of one element need no reduction.
  if (type.getNumElements() == shape.front())
    return false;
  auto rowDims = llvm::to_vector(llvm::seq<int64_t>(1, shape.size()));
  auto isRowReduction = [&](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return reduce && reduce.getDims() == ArrayRef<int64_t>(rowDims);
  };
  llvm::SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i)
    if (Operation *op = values[i].getDefiningOp(); op && isElementwise(op))
      values.insert(op->operand_begin(), op->operand_end());
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isRowReduction(user))
        return true;
      if (isElementwise(user))
        values.insert(user->result_begin(), user->result_end());
    }
  return false;
}

/// Whether a tensor of `type` is large enough for two kernels.
static bool isLarge(RankedTensorType type) {
  int64_t rows = type.getDimSize(0);
  return type.getNumElements() >= minTwoStageElements && rows > 1 &&
         type.getNumElements() / rows >= minRowElements;
}

/// Returns a reduction like `op`, but over `dims`, that the program has
/// already; null if there is none.
static ReduceOp findEqualReduction(ReduceOp op, ArrayRef<int64_t> dims) {
  for (Operation *user : op.getOperand().getUsers())
    if (auto equal = dyn_cast<ReduceOp>(user);
        equal && equal->getBlock() == op->getBlock() &&
        equal.getKind() == op.getKind() && equal.getDims() == dims)
      return equal;
  return nullptr;
}

/// Splits `op` into two stages if it reduces all dimensions and is large, or is
/// computed by a kernel that reduces rows.
static void split(ReduceOp op) {
  auto type = cast<RankedTensorType>(op.getOperand().getType());
  bool reducesAll =
      cast<RankedTensorType>(op.getResult().getType()).getRank() == 0;
  if (!reducesAll || type.getRank() < 2 ||
      !(isLarge(type) || isComputableByRowKernel(op.getOperand())))
    return;
  LLVM_DEBUG(llvm::dbgs() << "two stages for " << describeOp(op) << " of "
                          << type << '\n');
  OpBuilder builder(op);
  auto build = [&](Value operand, ArrayRef<int64_t> dims) {
    Value value = reduce(builder, op.getLoc(), op.getKind(), operand, dims);
    value.getDefiningOp()->setDiscardableAttrs(
        op->getDiscardableAttrDictionary());
    return value;
  };
  auto inner = llvm::to_vector(llvm::seq<int64_t>(1, type.getRank()));
  ReduceOp rows = findEqualReduction(op, inner);
  if (!rows)
    rows = build(op.getOperand(), inner).getDefiningOp<ReduceOp>();
  else if (op->isBeforeInBlock(rows))
    rows->moveBefore(op);
  op.replaceAllUsesWith(build(rows.getResult(), {0}));
  op.erase();
}

static bool isColumnSum(ReduceOp op) {
  return op.getKind() == ReductionKind::Sum &&
         op.getDims() == ArrayRef<int64_t>{0} &&
         cast<RankedTensorType>(op.getOperand().getType()).getRank() == 2;
}

namespace {

struct SplitReductionsPass
    : shardc::impl::SplitReductionsPassBase<SplitReductionsPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Partition)))
      return signalPassFailure();
    SmallVector<ReduceOp> reductions;
    getOperation().walk([&](ReduceOp op) { reductions.push_back(op); });
    for (ReduceOp op : reductions)
      if (isColumnSum(op)) {
        LLVM_DEBUG(llvm::dbgs() << "column sum: " << describeOp(op) << '\n');
        op->setAttr(byProductAttrName, UnitAttr::get(&getContext()));
      }
    llvm::for_each(reductions, split);
  }
};

} // namespace
