//===- SplitReductions.cpp - Reductions as a GPU does them ----------------===//
//
// A GPU needs work for thousands of threads that do not wait for each other,
// and a reduction to one element has it only in two steps: the rows first, each
// on its own, then what they leave. Where rows are reduced anyway, as in a
// softmax, the first step is one of that kernel, which then need not store what
// the reduction would read. Sums of the columns of a matrix, the gradients of
// biases, are by-products of the library's products with that matrix, which
// read it anyway: they are marked for shardc-form-gemms.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/KernelNest.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Builders.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace shardc {
#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// Elements from which on a second kernel, some microseconds, costs less than
/// one block of threads would.
static constexpr int64_t fewestElements = 1 << 16;

/// Elements of a row below which the rows are no less work than the whole.
static constexpr int64_t shortestRow = 32;

/// Whether a kernel that reduces rows knows the elements of `value`: some value
/// that they are computed from elementwise is, elementwise, also what a
/// reduction of rows reads.
static bool isKnownByRows(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  ArrayRef<int64_t> shape = type.getShape();
  // Rows of one element are nothing to reduce.
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

/// Whether reducing the rows of `type` first is worth a kernel more.
static bool isLarge(RankedTensorType type) {
  int64_t rows = type.getDimSize(0);
  return type.getNumElements() >= fewestElements && rows > 1 &&
         type.getNumElements() / rows >= shortestRow;
}

/// A reduction of the same rows that is there for other reasons; null: none.
static ReduceOp findTwin(ReduceOp op, ArrayRef<int64_t> dims) {
  for (Operation *user : op.getOperand().getUsers())
    if (auto twin = dyn_cast<ReduceOp>(user);
        twin && twin->getBlock() == op->getBlock() &&
        twin.getKind() == op.getKind() && twin.getDims() == dims)
      return twin;
  return nullptr;
}

static void split(ReduceOp op) {
  auto type = cast<RankedTensorType>(op.getOperand().getType());
  bool reducesAll =
      cast<RankedTensorType>(op.getResult().getType()).getRank() == 0;
  if (!reducesAll || type.getRank() < 2 ||
      !(isLarge(type) || isKnownByRows(op.getOperand())))
    return;
  OpBuilder builder(op);
  auto build = [&](Value operand, ArrayRef<int64_t> dims) {
    Value value = reduce(builder, op.getLoc(), op.getKind(), operand, dims);
    value.getDefiningOp()->setDiscardableAttrs(
        op->getDiscardableAttrDictionary());
    return value;
  };
  auto inner = llvm::to_vector(llvm::seq<int64_t>(1, type.getRank()));
  ReduceOp rows = findTwin(op, inner);
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
      if (isColumnSum(op))
        op->setAttr(byProductAttrName, UnitAttr::get(&getContext()));
    llvm::for_each(reductions, split);
  }
};

} // namespace
