//===- FormReluGradients.cpp - Gradients of relus behind products ---------===//
//
// A product that makes the gradient of a relu's result is followed by the
// relu's own: what it gives where the result was positive, else 0. On a GPU the
// library does that with the product if the product with the relu has left it a
// mask of bits; the activation need not be read for it, nor the gradient be
// read and written once more.
//
//===----------------------------------------------------------------------===//

#include "Epilogues.h"

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {
#define GEN_PASS_DEF_FORMRELUGRADIENTSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// The product with a relu whose result `condition` asks to be positive; null:
/// it asks something else.
static GemmOp findRelu(Value condition) {
  auto compare = condition.getDefiningOp<CompareOp>();
  if (!compare || compare.getKind() != CompareKind::GT ||
      !isZero(compare.getRhs()))
    return nullptr;
  auto gemm = compare.getLhs().getDefiningOp<GemmOp>();
  return gemm && gemm.getRelu() && !gemm.getSum() ? gemm : nullptr;
}

/// The product whose result is `gradient` and nothing else's operand, and has
/// room for an epilogue; null: there is none.
static GemmOp findProduct(Value gradient) {
  auto gemm = gradient.getDefiningOp<GemmOp>();
  bool isPlain = gemm && gradient.hasOneUse() && !gemm.getBias() &&
                 !gemm.getSum() && !gemm.getMask() && !gemm.getRelu() &&
                 !gemm.getColumnSums();
  return isPlain ? gemm : nullptr;
}

/// The sum of the columns of `matrix` in its own type that no other product has
/// taken: the gradient of a bias whose weight's is not the library's; null:
/// none.
static ReduceOp findColumnSums(Value matrix) {
  Type element = getElementTypeOrSelf(matrix.getType());
  for (Operation *user : matrix.getUsers())
    if (auto reduce = dyn_cast<ReduceOp>(user);
        reduce && reduce.getKind() == ReductionKind::Sum &&
        reduce.getDims() == ArrayRef<int64_t>{0} &&
        reduce->getBlock() == matrix.getParentBlock() &&
        getElementTypeOrSelf(reduce.getResult().getType()) == element)
      return reduce;
  return nullptr;
}

/// The mask of `relu`, which leaves one from now on.
static Value getMaskOf(GemmOp relu) {
  if (relu.getReluMask())
    return relu.getReluMask();
  OpBuilder builder(relu);
  auto type = cast<RankedTensorType>(relu.getResult().getType());
  auto masked = builder.create<GemmOp>(
      relu.getLoc(), type, /*column_sums=*/Type(), GemmOp::getMaskType(type),
      relu.getLhs(), relu.getRhs(), relu.getBias(), /*sum=*/Value(),
      /*mask=*/Value(), relu.getTransposeLhs(), relu.getTransposeRhs(),
      /*relu=*/true, /*sumsLhs=*/false, /*sumsRhs=*/false,
      /*sumsResult=*/false);
  masked->setDiscardableAttrs(relu->getDiscardableAttrDictionary());
  relu.getResult().replaceAllUsesWith(masked.getResult());
  relu.erase();
  return masked.getReluMask();
}

/// Makes `select` part of the product before it if it is the gradient of a relu
/// of another one.
static void form(SelectOp select) {
  GemmOp relu = findRelu(select.getPredicate());
  GemmOp product = findProduct(select.getOnTrue());
  auto type = cast<RankedTensorType>(select.getResult().getType());
  if (!relu || !product || !isZero(select.getOnFalse()) ||
      type.getRank() != 2 || relu->getBlock() != select->getBlock() ||
      product->getBlock() != select->getBlock())
    return;
  // That of a new op in place of `relu`, whose result the product may read.
  Value mask = getMaskOf(relu);
  ReduceOp columnSums = findColumnSums(select.getResult());
  OpBuilder builder(select);
  auto gemm = builder.create<GemmOp>(
      product.getLoc(), type,
      columnSums ? columnSums.getResult().getType() : Type(),
      /*relu_mask=*/Type(), product.getLhs(), product.getRhs(),
      /*bias=*/Value(), /*sum=*/Value(), mask, product.getTransposeLhs(),
      product.getTransposeRhs(), /*relu=*/false,
      /*sumsLhs=*/false, /*sumsRhs=*/false, /*sumsResult=*/bool(columnSums));
  gemm->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  if (columnSums) {
    columnSums.replaceAllUsesWith(gemm.getColumnSums());
    columnSums.erase();
  }
  select.replaceAllUsesWith(gemm.getResult());
  select.erase();
  product.erase();
}

namespace {

struct FormReluGradientsPass
    : shardc::impl::FormReluGradientsPassBase<FormReluGradientsPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Kernels)))
      return signalPassFailure();
    SmallVector<SelectOp> selects;
    getOperation().walk([&](SelectOp select) { selects.push_back(select); });
    llvm::for_each(selects, form);
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        for (Block *block : llvm::reverse(getBlocks(function)))
          eraseDeadOps(*block);
  }
};

} // namespace
