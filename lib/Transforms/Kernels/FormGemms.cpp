//===- FormGemms.cpp - Give large matrix products to the library ----------===//
//
// A dot_general of two matrices (or of two batches of them) above the threshold
// becomes shardc.gemm; a bias broadcast over its rows and a relu that follow it
// become the product's epilogue, and so does a loop's sum that it is added to.
// Sums of columns of a factor are a second result where shardc-split-reductions
// has marked them: the gradients of biases, for GPUs.
//
//===----------------------------------------------------------------------===//

#include "Epilogues.h"

#include "shardc/Analysis/GemmView.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {
#define GEN_PASS_DEF_FORMGEMMSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// Whether what `op` computes depends on `on`, of the same block.
static bool dependsOn(Operation *op, Operation *on) {
  llvm::SetVector<Operation *> ops;
  ops.insert(op);
  for (size_t i = 0; i < ops.size(); ++i)
    for (Value value : getUsedValues(ops[i]))
      if (Operation *def = value.getDefiningOp();
          def && def->getBlock() == op->getBlock())
        ops.insert(def);
  return ops.contains(on);
}

/// The other operand of a binary op.
static Value getOther(Operation *op, Value value) {
  return op->getOperand(op->getOperand(0) == value ? 1 : 0);
}

namespace {

/// Turns one product into a gemm with what may follow.
class GemmFormer {
public:
  explicit GemmFormer(DotGeneralOp dot) : dot(dot) {}

  void run() {
    int64_t rank = cast<RankedTensorType>(dot.getResult().getType()).getRank();
    int64_t batch = dot.getLhsBatching().size();
    Type element = getElementTypeOrSelf(dot.getLhs().getType());
    std::optional<GemmView> view = getGemmView(dot);
    bool isPlain =
        view && (element.isF32() || element.isBF16()) && rank == 2 + batch &&
        batch <= 1 &&
        cast<RankedTensorType>(dot.getLhs().getType()).getRank() == rank &&
        cast<RankedTensorType>(dot.getRhs().getType()).getRank() == rank &&
        (batch == 0 ||
         (dot.getLhsBatching()[0] == 0 && dot.getRhsBatching()[0] == 0));
    if (!isPlain || !isLargeGemm(*view))
      return;
    fused.push_back(dot);
    findSum();
    if (!sum) {
      findBias(batch);
      findRelu();
    }
    if (!bias && !hasRelu && batch == 0)
      findColumnSums();
    build(rank);
  }

private:
  DotGeneralOp dot;
  Value bias, sum;
  bool hasRelu = false;
  /// The sums of columns of the left or of the right operand, if of any.
  ReduceOp columnSums;
  bool areOfLhs = false;
  /// The ops that the gemm computes; its result is that of the last.
  SmallVector<Operation *, 3> fused;

  /// The addition to the sum of a loop's runs before: the product then goes
  /// where the sum is.
  void findSum() {
    Value product = dot.getResult();
    if (!product.hasOneUse())
      return;
    auto add = dyn_cast<AddOp>(*product.getUsers().begin());
    auto loop = dyn_cast<AccumulateOp>(dot->getParentOp());
    if (!add || !loop || !llvm::is_contained(loop.getSums(), add.getLhs()) ||
        !add.getLhs().hasOneUse())
      return;
    sum = add.getLhs();
    fused.push_back(add);
  }

  void findBias(int64_t batch) {
    Value product = dot.getResult();
    if (!product.hasOneUse() || batch != 0)
      return;
    auto add = dyn_cast<AddOp>(*product.getUsers().begin());
    if (!add)
      return;
    auto broadcast = getOther(add, product).getDefiningOp<BroadcastOp>();
    if (!broadcast || broadcast.getDims() != ArrayRef<int64_t>{1})
      return;
    bias = broadcast.getOperand();
    fused.push_back(add);
  }

  /// max(z, 0) is the gemm's result if everything else that reads z asks only
  /// whether it is positive, which the result answers as well.
  void findRelu() {
    Value value = fused.back()->getResult(0);
    MaxOp relu;
    for (Operation *user : value.getUsers()) {
      if (auto max = dyn_cast<MaxOp>(user)) {
        if (relu || !isZero(getOther(max, value)))
          return;
        relu = max;
        continue;
      }
      auto compare = dyn_cast<CompareOp>(user);
      if (!compare || compare.getKind() != CompareKind::GT ||
          compare.getLhs() != value || !isZero(compare.getRhs()))
        return;
    }
    if (!relu)
      return;
    value.replaceUsesWithIf(relu.getResult(), [&](OpOperand &use) {
      return isa<CompareOp>(use.getOwner());
    });
    hasRelu = true;
    fused.push_back(relu);
  }

  /// The library sums what it reads anyway, but only rows that are contracted.
  void findColumnSums() {
    if (dot.getRhsContracting()[0] == 0)
      columnSums = findColumnSumsOf(dot.getRhs());
    if (columnSums || dot.getLhsContracting()[0] != 0)
      return;
    columnSums = findColumnSumsOf(dot.getLhs());
    areOfLhs = true;
  }

  /// A marked sum of the columns of `factor`, which may be widened first, in
  /// the product's type; null: none.
  ReduceOp findColumnSumsOf(Value factor) {
    Operation *last = fused.back();
    Type element = getElementTypeOrSelf(last->getResult(0).getType());
    SmallVector<Value> values = {factor};
    for (Operation *user : factor.getUsers())
      if (isa<ConvertOp>(user))
        values.push_back(user->getResult(0));
    for (Value value : values)
      for (Operation *user : value.getUsers())
        if (auto reduce = dyn_cast<ReduceOp>(user);
            reduce && reduce->hasAttr(byProductAttrName) &&
            reduce->getBlock() == dot->getBlock() &&
            getElementTypeOrSelf(reduce.getResult().getType()) == element &&
            !dependsOn(last, reduce))
          return reduce;
    return nullptr;
  }

  void build(int64_t rank) {
    // Every operand is there where the last op of the epilogue stands; users of
    // the result may come before comparisons that now read it.
    Operation *last = fused.back();
    OpBuilder builder(last);
    auto gemm = builder.create<GemmOp>(
        dot.getLoc(), last->getResult(0).getType(),
        columnSums ? columnSums.getResult().getType() : Type(),
        /*relu_mask=*/Type(), dot.getLhs(), dot.getRhs(), bias, sum,
        /*mask=*/Value(), dot.getLhsContracting()[0] == rank - 2,
        dot.getRhsContracting()[0] == rank - 1, hasRelu, columnSums && areOfLhs,
        columnSums && !areOfLhs, /*sumsResult=*/false);
    if (Attribute part = dot->getAttr(partAttrName))
      gemm->setAttr(partAttrName, part);
    last->getResult(0).replaceAllUsesWith(gemm.getResult());
    if (columnSums) {
      columnSums.replaceAllUsesWith(gemm.getColumnSums());
      columnSums.erase();
    }
    for (Operation *op : llvm::reverse(fused))
      op->erase();
  }
};

struct FormGemmsPass : shardc::impl::FormGemmsPassBase<FormGemmsPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Kernels)))
      return signalPassFailure();
    SmallVector<DotGeneralOp> dots;
    getOperation().walk([&](DotGeneralOp dot) { dots.push_back(dot); });
    for (DotGeneralOp dot : dots)
      GemmFormer(dot).run();
    getOperation().walk(
        [](ReduceOp reduce) { reduce->removeAttr(byProductAttrName); });
    // Comparisons and users of sums may now stand before what they read:
    // restore the order.
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal()) {
        SmallVector<Block *> blocks = getBlocks(function);
        for (Block *block : llvm::reverse(blocks)) {
          mlir::sortTopologically(block);
          eraseDeadOps(*block);
        }
      }
  }
};

} // namespace
