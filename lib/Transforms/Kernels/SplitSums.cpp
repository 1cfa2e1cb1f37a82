//===- SplitSums.cpp - Sums over many rows, block by block ----------------===//
//
// The gradient of a weight adds up over all rows of the batch. Its own rows are
// few, and to divide them among workers makes each read all rows of both
// factors, half of which other workers have written. Cut into blocks of rows of
// the batch, a worker adds up those that it has in its caches, and the sums of
// blocks are little to read. The blocks are a matter of the shape.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/GemmView.h"
#include "shardc/Analysis/GroupKernels.h"
#include "shardc/Analysis/KernelNest.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/Builders.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-split-sums"

namespace shardc {
#define GEN_PASS_DEF_SPLITSUMSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// Whether `value` is a matrix in memory.
static bool isMatrix(Value value) {
  return isa<BlockArgument>(value) && getTensorShape(value).size() == 2;
}

static bool isF32(Value value) {
  return getElementTypeOrSelf(value.getType()).isF32();
}

/// Blocks that the sum which `nest` is about is cut into; 1: none.
static int64_t countBlocks(const KernelNest &nest, Operation *&sum) {
  if (nest.kind == NestKind::Gemm) {
    DotGeneralOp dot = nest.dot;
    sum = dot;
    if (!isMatrix(dot.getLhs()) || !isMatrix(dot.getRhs()) ||
        !dot.getLhsBatching().empty() ||
        dot.getLhsContracting() != ArrayRef<int64_t>{0} ||
        dot.getRhsContracting() != ArrayRef<int64_t>{0})
      return 1;
    auto lhs = getTensorShape(dot.getLhs()), rhs = getTensorShape(dot.getRhs());
    return getBlocksOfRows(lhs[0], lhs[1] + rhs[1], lhs[1] * rhs[1]);
  }
  if (nest.kind != NestKind::Columns || nest.stages.size() != 1 ||
      nest.stages[0].size() != 1 || !nest.fullResults.empty())
    return 1;
  ReduceOp reduce = nest.stages[0][0];
  sum = reduce;
  if (reduce.getKind() != ReductionKind::Sum || !isMatrix(reduce.getOperand()))
    return 1;
  auto shape = getTensorShape(reduce.getOperand());
  // Sums of many columns are divided by these well enough.
  constexpr int64_t mostColumns = 128;
  return shape[1] > mostColumns ? 1
                                : getBlocksOfRows(shape[0], shape[1], shape[1]);
}

/// Whether to cut `sum`, of `kernel`, is in vain: where its result is added up
/// over devices, each has a sum of its own, and workers that have different
/// ones exchange nothing. Large sums gain all the same.
static bool isSmallSumOfDevice(KernelOp kernel, Operation *sum) {
  constexpr int64_t largeElements = 1 << 14;
  int64_t elements = 0;
  for (Value factor : sum->getOperands())
    elements += cast<RankedTensorType>(factor.getType()).getNumElements();
  return elements < largeElements &&
         llvm::any_of(kernel->getResults(), getSumOverDevices);
}

namespace {

/// Cuts one kernel in two.
class SumSplitter {
public:
  SumSplitter(KernelOp kernel, Operation *sum, int64_t blocks)
      : kernel(kernel), sum(sum), blocks(blocks), builder(kernel) {}

  /// Returns the kernel of the sum.
  KernelOp run() {
    LLVM_DEBUG(llvm::dbgs() << "sums of " << blocks
                            << " blocks of rows: " << describeOp(sum) << '\n');
    KernelOp made = buildSum(buildBlocks().getResult(0));
    kernel->replaceAllUsesWith(made->getResults());
    kernel.erase();
    return made;
  }

private:
  KernelOp kernel;
  Operation *sum;
  int64_t blocks;
  OpBuilder builder;

  /// A kernel in the old one's place in the step, with an empty body.
  KernelOp buildKernel(TypeRange results, ValueRange operands) {
    auto made = builder.create<KernelOp>(kernel.getLoc(), results, operands);
    made->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
    Block &body = made.getBody().emplaceBlock();
    for (Value operand : operands)
      body.addArgument(operand.getType(), operand.getLoc());
    return made;
  }
  Value getOperandOf(Value argument) {
    return kernel->getOperand(cast<BlockArgument>(argument).getArgNumber());
  }

  /// A tensor of `shape` for each block.
  RankedTensorType getBlocks(RankedTensorType type, ArrayRef<int64_t> shape) {
    SmallVector<int64_t> sizes = {blocks};
    llvm::append_range(sizes, shape);
    return RankedTensorType::get(sizes, type.getElementType());
  }

  KernelOp buildBlocks() {
    llvm::SetVector<Value> operands;
    for (Value factor : sum->getOperands())
      operands.insert(getOperandOf(factor));
    auto type = cast<RankedTensorType>(sum->getResult(0).getType());
    RankedTensorType ofBlocks = getBlocks(type, type.getShape());
    KernelOp made = buildKernel(ofBlocks, operands.getArrayRef());
    OpBuilder::InsertionGuard guard(builder);
    Block &body = made.getBody().front();
    builder.setInsertionPointToStart(&body);
    SmallVector<Value> cut;
    for (Value factor : sum->getOperands()) {
      auto whole = cast<RankedTensorType>(factor.getType());
      auto shape = {whole.getDimSize(0) / blocks, whole.getDimSize(1)};
      auto argument = llvm::find(operands, getOperandOf(factor));
      cut.push_back(builder.create<ReshapeOp>(
          sum->getLoc(), getBlocks(whole, shape),
          body.getArgument(argument - operands.begin())));
    }
    Value result;
    if (isa<DotGeneralOp>(sum))
      result = builder.create<DotGeneralOp>(
          sum->getLoc(), ofBlocks, cut[0], cut[1], ArrayRef<int64_t>{0},
          ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1});
    else
      result = reduce(builder, sum->getLoc(), ReductionKind::Sum, cut[0], {1});
    builder.create<YieldOp>(kernel.getLoc(), result);
    return made;
  }

  KernelOp buildSum(Value ofBlocks) {
    Block &old = kernel.getBody().front();
    SmallVector<Value> operands = {ofBlocks};
    SmallVector<BlockArgument> kept;
    for (BlockArgument argument : old.getArguments())
      if (llvm::any_of(argument.getUsers(),
                       [&](Operation *user) { return user != sum; })) {
        operands.push_back(getOperandOf(argument));
        kept.push_back(argument);
      }
    KernelOp made = buildKernel(kernel->getResultTypes(), operands);
    OpBuilder::InsertionGuard guard(builder);
    Block &body = made.getBody().front();
    builder.setInsertionPointToStart(&body);
    IRMapping mapping;
    for (auto [old, argument] :
         llvm::zip_equal(kept, body.getArguments().drop_front()))
      mapping.map(old, argument);
    for (Operation &op : old) {
      if (&op == sum)
        mapping.map(sum->getResult(0),
                    reduce(builder, sum->getLoc(), ReductionKind::Sum,
                           body.getArgument(0), {0}));
      else
        builder.clone(op, mapping);
    }
    return made;
  }
};

/// Puts kernels of sums into one, in the place of the last: with few elements
/// each, they are one thing to wait for. The sums of blocks are in memory until
/// then, and a kernel takes longer to compile than its parts: so neither the
/// sums nor their bytes may be many. Eight gain what all of a step do.
class SumMerger {
public:
  void add(KernelOp sum) {
    const int64_t bytes = getBytesOfBlocks(sum);
    // Blocks wait for the last sum of their group: those of one group at a
    // time.
    if (!groups.empty() && groups.back().sums.size() < mostSums &&
        groups.back().bytes + bytes <= mostBytes &&
        mayFollow(groups.back().sums, sum)) {
      groups.back().sums.push_back(sum);
      groups.back().bytes += bytes;
      return;
    }
    groups.push_back({{sum}, bytes});
  }

  void run() {
    for (const Group &group : groups)
      if (group.sums.size() > 1)
        merge(group.sums);
  }

private:
  static constexpr size_t mostSums = 8;
  static constexpr int64_t mostBytes = 1 << 18;

  struct Group {
    SmallVector<KernelOp> sums; ///< Of one block, in order.
    int64_t bytes;              ///< Of the sums of blocks of rows.
  };
  SmallVector<Group> groups;

  static int64_t getBytesOfBlocks(KernelOp sum) {
    return cast<RankedTensorType>(sum->getOperand(0).getType())
               .getNumElements() *
           sizeof(float);
  }

  static bool mayFollow(ArrayRef<KernelOp> group, KernelOp sum) {
    if (group.front()->getBlock() != sum->getBlock() ||
        group.front()->getDiscardableAttrDictionary() !=
            sum->getDiscardableAttrDictionary())
      return false;
    auto isAfter = [&](Operation *user) {
      Operation *ancestor = sum->getBlock()->findAncestorOpInBlock(*user);
      return ancestor && sum->isBeforeInBlock(ancestor);
    };
    return llvm::all_of(group, [&](KernelOp other) {
      return llvm::all_of(other->getUsers(), isAfter);
    });
  }

  static void merge(ArrayRef<KernelOp> group) {
    KernelOp last = group.back();
    llvm::SetVector<Value> operands;
    SmallVector<Type> types;
    for (KernelOp sum : group) {
      operands.insert(sum->operand_begin(), sum->operand_end());
      llvm::append_range(types, sum->getResultTypes());
    }
    OpBuilder builder(last);
    auto made =
        builder.create<KernelOp>(last.getLoc(), types, operands.getArrayRef());
    made->setDiscardableAttrs(last->getDiscardableAttrDictionary());
    Block *body = builder.createBlock(&made.getBody());
    IRMapping arguments;
    for (Value operand : operands)
      arguments.map(operand,
                    body->addArgument(operand.getType(), operand.getLoc()));
    SmallVector<Value> yielded;
    auto results = made->result_begin();
    for (KernelOp sum : group) {
      IRMapping mapping;
      for (auto [argument, operand] : llvm::zip_equal(
               sum.getBody().front().getArguments(), sum->getOperands()))
        mapping.map(argument, arguments.lookup(operand));
      for (Operation &op : sum.getBody().front().without_terminator())
        builder.clone(op, mapping);
      for (Value value : sum.getBody().front().getTerminator()->getOperands())
        yielded.push_back(mapping.lookupOrDefault(value));
      for (Value result : sum->getResults())
        result.replaceAllUsesWith(*results++);
    }
    builder.create<YieldOp>(last.getLoc(), yielded);
    for (KernelOp sum : group)
      sum.erase();
  }
};

struct SplitSumsPass : shardc::impl::SplitSumsPassBase<SplitSumsPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Kernels,
                               ModulePhase::Kernels)))
      return signalPassFailure();
    SmallVector<SumSplitter> splitters;
    getOperation().walk([&](KernelOp kernel) {
      std::vector<KernelNest> nests = getKernelNests(kernel);
      if (nests.size() != 1)
        return;
      Operation *sum = nullptr;
      int64_t blocks = countBlocks(nests[0], sum);
      if (blocks > 1 && isF32(sum->getResult(0)) &&
          !isSmallSumOfDevice(kernel, sum))
        splitters.emplace_back(kernel, sum, blocks);
    });
    SumMerger merger;
    for (SumSplitter &splitter : splitters)
      merger.add(splitter.run());
    merger.run();
  }
};

} // namespace
