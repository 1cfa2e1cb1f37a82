//===- FormReluGradients.cpp - ReLU gradients as GEMM epilogues -----------===//
//
// In a backward pass, a GEMM that computes the gradient of the result of a relu
// is followed by a select: the gradient where the result is positive, else 0.
// On a GPU the select becomes the epilogue of that GEMM. The GEMM with the relu
// returns a bit mask for it (CUBLASLT_EPILOGUE_RELU_AUX, then DRELU). This
// saves a read of the activation, and a read and a write of the gradient.
//
//===----------------------------------------------------------------------===//

#include "Epilogues.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-form-relu-gradients"

namespace shardc {
#define GEN_PASS_DEF_FORMRELUGRADIENTSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// If `condition` is r > 0, where r is the result of a gemm with a relu,
/// returns that gemm; else null.
static GemmOp findRelu(Value condition) {
  auto compare = condition.getDefiningOp<CompareOp>();
  if (!compare || compare.getKind() != CompareKind::GT ||
      !isZero(compare.getRhs()))
    return nullptr;
  auto gemm = compare.getLhs().getDefiningOp<GemmOp>();
  return gemm && gemm.getRelu() && !gemm.getSum() ? gemm : nullptr;
}

/// If a gemm without an epilogue computes `gradient`, which has no other use,
/// returns that gemm; else null.
static GemmOp findPlainGemm(Value gradient) {
  auto gemm = gradient.getDefiningOp<GemmOp>();
  bool isPlain = gemm && gradient.hasOneUse() && !gemm.getBias() &&
                 !gemm.getSum() && !gemm.getMask() && !gemm.getRelu() &&
                 !gemm.getColumnSums();
  return isPlain ? gemm : nullptr;
}

/// Returns a sum of the columns of `matrix` in its element type that is not
/// part of a gemm yet; null if there is none. It is the gradient of a bias.
static ReduceOp findColumnSums(Value matrix) {
  Type element = getElementTypeOrSelf(matrix.getType());
  for (Operation *user : matrix.getUsers())
    if (auto reduce = dyn_cast<ReduceOp>(user);
        reduce && reduce.getKind() == ReductionKind::Sum &&
        reduce.getDims() == ArrayRef<int64_t>{0} &&
        reduce->getBlock() == matrix.getParentBlock() &&
        areInOneTask(reduce, matrix.getDefiningOp()) &&
        getElementTypeOrSelf(reduce.getResult().getType()) == element)
      return reduce;
  return nullptr;
}

/// Returns the mask of `relu`. If it has none, replaces it by a gemm with one.
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

/// Makes `select` the epilogue of the gemm before it, if it is the gradient of
/// the relu of another gemm.
static void formReluGradient(SelectOp select) {
  GemmOp relu = findRelu(select.getPredicate());
  GemmOp gradientGemm = findPlainGemm(select.getOnTrue());
  auto type = cast<RankedTensorType>(select.getResult().getType());
  if (!relu || !gradientGemm || !isZero(select.getOnFalse()) ||
      type.getRank() != 2 || relu->getBlock() != select->getBlock() ||
      gradientGemm->getBlock() != select->getBlock() ||
      !areInOneTask(gradientGemm, select))
    return;
  LLVM_DEBUG(llvm::dbgs() << "gradient of the relu of " << describeOp(relu)
                          << " in " << describeOp(gradientGemm) << '\n');
  // This may erase `relu`.
  Value mask = getMaskOf(relu);
  ReduceOp columnSums = findColumnSums(select.getResult());
  OpBuilder builder(select);
  auto gemm = builder.create<GemmOp>(
      gradientGemm.getLoc(), type,
      columnSums ? columnSums.getResult().getType() : Type(),
      /*relu_mask=*/Type(), gradientGemm.getLhs(), gradientGemm.getRhs(),
      /*bias=*/Value(), /*sum=*/Value(), mask, gradientGemm.getTransposeLhs(),
      gradientGemm.getTransposeRhs(), /*relu=*/false,
      /*sumsLhs=*/false, /*sumsRhs=*/false, /*sumsResult=*/bool(columnSums));
  gemm->setDiscardableAttrs(gradientGemm->getDiscardableAttrDictionary());
  if (columnSums) {
    columnSums.replaceAllUsesWith(gemm.getColumnSums());
    columnSums.erase();
  }
  select.replaceAllUsesWith(gemm.getResult());
  select.erase();
  gradientGemm.erase();
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
    llvm::for_each(selects, formReluGradient);
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        for (Block *block : llvm::reverse(getBlocks(function)))
          eraseDeadOps(*block);
  }
};

} // namespace
