//===- SplitReductions.cpp - Large reductions in two steps ----------------===//
//
// A GPU needs work for thousands of threads that do not wait for each other,
// and a reduction to one element has it only in two steps: the rows first, each
// on its own, then what they leave.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Builders.h"
#include "shardc/Dialect/Shardc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {
#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "shardc/Dialect/Shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// Elements from which on a second kernel, some microseconds, costs less than
/// one block of threads would.
static constexpr int64_t fewestElements = 1 << 16;

/// Elements of a row below which the rows are no less work than the whole.
static constexpr int64_t shortestRow = 32;

static void split(ReduceOp op) {
  auto type = cast<RankedTensorType>(op.getOperand().getType());
  bool reducesAll =
      cast<RankedTensorType>(op.getResult().getType()).getRank() == 0;
  if (!reducesAll || type.getRank() < 2 ||
      type.getNumElements() < fewestElements)
    return;
  int64_t rows = type.getDimSize(0);
  if (rows == 1 || type.getNumElements() / rows < shortestRow)
    return;
  OpBuilder builder(op);
  auto build = [&](Value operand, ArrayRef<int64_t> dims) {
    Value value = reduce(builder, op.getLoc(), op.getKind(), operand, dims);
    value.getDefiningOp()->setDiscardableAttrs(
        op->getDiscardableAttrDictionary());
    return value;
  };
  auto inner = llvm::to_vector(llvm::seq<int64_t>(1, type.getRank()));
  op.replaceAllUsesWith(build(build(op.getOperand(), inner), {0}));
  op.erase();
}

namespace {

struct SplitReductionsPass
    : shardc::impl::SplitReductionsPassBase<SplitReductionsPass> {
  void runOnOperation() override { getOperation().walk(split); }
};

} // namespace
