//===- FormGemms.cpp - Library GEMMs with epilogues -----------------------===//
//
// Pattern matching. A dot_general of two matrices, or of two batches of
// matrices, above a size threshold becomes shardc.gemm. Its epilogue takes in a
// bias that is broadcast over the rows and a relu, or an addition to the
// running sum of a loop. For GPUs, sums over the columns of an operand that
// shardc-split-reductions has marked become a second result: the gradients of
// biases.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/GemmView.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-form-gemms"

namespace shardc {
#define GEN_PASS_DEF_FORMGEMMSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// Whether `op` depends on `on`, an op of the same block, or is it.
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

/// Whether all elements of `value` are known to be zero, of either sign.
static bool isZero(Value value) {
  DenseElementsAttr elements;
  while (auto broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getOperand();
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat() &&
         isa<FloatType>(elements.getElementType()) &&
         elements.getSplatValue<APFloat>().isZero();
}

/// Dead-code elimination in `block`: broadcast biases and the zeros of relus
/// are left without uses.
static void eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

namespace {

/// Turns one dot_general into a gemm with its epilogue.
class GemmFormer {
public:
  GemmFormer(DotGeneralOp dot, bool isForCPU) : dot(dot), isForCPU(isForCPU) {}

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
    if (!isPlain || !isLargeGemm(*view, isForCPU)) {
      LLVM_DEBUG(llvm::dbgs()
                 << "not a gemm: " << describeOp(dot) << " is "
                 << (isPlain ? "small" : "no GEMM of matrices") << '\n');
      return;
    }
    fused.push_back(dot);
    findSum();
    if (!sum) {
      findBias(batch);
      findRelu();
    }
    if (!bias && !hasRelu && batch == 0)
      findColumnSums();
    LLVM_DEBUG(print());
    build(rank);
  }

private:
  DotGeneralOp dot;
  bool isForCPU;
  Value bias, sum;
  bool hasRelu = false;
  /// The column sums of an operand that the gemm returns too; null if none.
  ReduceOp columnSums;
  bool isLhsSummed = false;
  /// The ops that become the gemm. The last computes its result.
  SmallVector<Operation *, 3> fused;

  /// Finds an addition of the matmul to the running sum of a loop. The gemm
  /// then accumulates in place of the sum.
  void findSum() {
    Value matmul = dot.getResult();
    if (!matmul.hasOneUse())
      return;
    auto add = dyn_cast<AddOp>(*matmul.getUsers().begin());
    auto loop = dyn_cast<AccumulateOp>(dot->getParentOp());
    if (!add || !loop || !llvm::is_contained(loop.getSums(), add.getLhs()) ||
        !add.getLhs().hasOneUse() || !areInOneTask(add, dot))
      return;
    sum = add.getLhs();
    fused.push_back(add);
  }

  /// Finds an addition of a bias that is broadcast over the rows.
  void findBias(int64_t batch) {
    Value matmul = dot.getResult();
    if (!matmul.hasOneUse() || batch != 0)
      return;
    auto add = dyn_cast<AddOp>(*matmul.getUsers().begin());
    if (!add || !areInOneTask(add, dot))
      return;
    auto broadcast = getOther(add, matmul).getDefiningOp<BroadcastOp>();
    if (!broadcast || broadcast.getDims() != ArrayRef<int64_t>{1})
      return;
    bias = broadcast.getOperand();
    fused.push_back(add);
  }

  /// Finds a relu max(z, 0) whose z has no other uses than comparisons z > 0.
  /// The comparisons then read the result of the relu, which is positive for
  /// the same elements.
  void findRelu() {
    Value value = fused.back()->getResult(0);
    MaxOp relu;
    for (Operation *user : value.getUsers()) {
      if (auto max = dyn_cast<MaxOp>(user)) {
        if (relu || !isZero(getOther(max, value)) || !areInOneTask(max, dot))
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

  /// Finds column sums of an operand. The library sums over the contracted
  /// dimension, which must therefore be that of the rows.
  void findColumnSums() {
    if (dot.getRhsContracting()[0] == 0)
      columnSums = findColumnSumsOf(dot.getRhs());
    if (columnSums || dot.getLhsContracting()[0] != 0)
      return;
    columnSums = findColumnSumsOf(dot.getLhs());
    isLhsSummed = true;
  }

  /// Returns a marked sum of the columns of `factor`, or of its conversion,
  /// with the element type of the result of the gemm; null if there is none.
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
            areInOneTask(reduce, dot) &&
            getElementTypeOrSelf(reduce.getResult().getType()) == element &&
            !dependsOn(last, reduce))
          return reduce;
    return nullptr;
  }

  void print() {
    llvm::dbgs() << "gemm: " << describeOp(dot);
    if (sum)
      llvm::dbgs() << ", added to the sum of a loop";
    if (bias)
      llvm::dbgs() << ", bias";
    if (hasRelu)
      llvm::dbgs() << ", relu";
    if (columnSums)
      llvm::dbgs() << ", column sums of the " << (isLhsSummed ? "lhs" : "rhs");
    llvm::dbgs() << '\n';
  }

  void build(int64_t rank) {
    // All operands are defined before the last op. Comparisons that read the
    // result of a relu may stand before the gemm; the pass sorts the block.
    Operation *last = fused.back();
    OpBuilder builder(last);
    auto gemm = builder.create<GemmOp>(
        dot.getLoc(), last->getResult(0).getType(),
        columnSums ? columnSums.getResult().getType() : Type(), dot.getLhs(),
        dot.getRhs(), bias, sum, dot.getLhsContracting()[0] == rank - 2,
        dot.getRhsContracting()[0] == rank - 1, hasRelu,
        columnSums && isLhsSummed, columnSums && !isLhsSummed);
    setPlaceInStep(gemm, dot);
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
  using FormGemmsPassBase::FormGemmsPassBase;

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Kernels)))
      return signalPassFailure();
    SmallVector<DotGeneralOp> dots;
    getOperation().walk([&](DotGeneralOp dot) { dots.push_back(dot); });
    for (DotGeneralOp dot : dots)
      GemmFormer(dot, isForCPU).run();
    getOperation().walk(
        [](ReduceOp reduce) { reduce->removeAttr(byProductAttrName); });
    // Comparisons and users of column sums may stand before the gemm.
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
