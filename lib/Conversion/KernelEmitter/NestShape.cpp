//===- NestShape.cpp - The shape of a nest --------------------------------===//

#include "shardc/Conversion/KernelEmitter/NestShape.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

using namespace mlir;

namespace shardc {

int64_t getNumElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t getLastLongDim(ArrayRef<int64_t> shape) {
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim)
    if (shape[dim] > 1)
      return dim;
  return -1;
}

/// Whether the value may be computed from its linear place alone.
static bool isFlatValue(Value value, llvm::DenseMap<Value, bool> &memo) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  auto it = memo.find(value);
  if (it != memo.end())
    return it->second;
  bool result = false;
  if (auto constant = dyn_cast<ConstantOp>(op))
    result = true;
  else if (auto broadcast = dyn_cast<BroadcastOp>(op))
    result = getNumElements(getTensorShape(broadcast.getOperand())) == 1 &&
             isFlatValue(broadcast.getOperand(), memo);
  else if (auto mask = dyn_cast<MaskOp>(op))
    result = false;
  else if (isElementwise(op) || isa<ReshapeOp>(op))
    result = llvm::all_of(op->getOperands(), [&](Value operand) {
      return isFlatValue(operand, memo);
    });
  memo[value] = result;
  return result;
}

bool isFlatNest(const KernelNest &nest) {
  llvm::DenseMap<Value, bool> memo;
  SmallVector<Value> values(nest.fullResults);
  if (nest.kind == NestKind::Rows &&
      getNumElements(splitShape(nest).kept) == 1) {
    // The one result of each reduction is known wherever it is needed.
    for (auto &stage : nest.stages)
      for (ReduceOp reduce : stage) {
        memo[reduce.getResult()] = true;
        values.push_back(reduce.getOperand());
      }
  } else if (nest.kind != NestKind::Map) {
    return false;
  }
  return llvm::all_of(values,
                      [&](Value value) { return isFlatValue(value, memo); });
}

bool isScalarNest(const KernelNest &nest) {
  // Such a nest is general, hence a Map; by linear places there are lanes.
  return llvm::any_of(nest.ops, movesLanesApart) && !isFlatNest(nest);
}

SplitShape splitShape(const KernelNest &nest) {
  SplitShape split;
  for (auto [dim, size] : llvm::enumerate(nest.shape))
    (llvm::is_contained(nest.reduced, int64_t(dim)) ? split.reduced
                                                    : split.kept)
        .push_back(size);
  return split;
}

IndexList joinIndex(const KernelNest &nest, ArrayRef<Index> outer,
                    ArrayRef<Index> inner) {
  IndexList index;
  for (size_t dim = 0; dim < nest.shape.size(); ++dim) {
    bool isReduced = llvm::is_contained(nest.reduced, int64_t(dim));
    ArrayRef<Index> &source = isReduced ? inner : outer;
    index.push_back(source.front());
    source = source.drop_front();
  }
  return index;
}

IndexList getGemmIndex(LoopBuilder &loops, DotGeneralOp dot, const Index &batch,
                       const Index &row, const Index &column) {
  IndexList index;
  auto append = [&](const Index &place, Value factor, ArrayRef<int64_t> dims) {
    SmallVector<int64_t> sizes;
    for (int64_t dim : dims)
      sizes.push_back(getTensorShape(factor)[dim]);
    llvm::append_range(index, loops.delinearize(place, sizes));
  };
  append(batch, dot.getLhs(), dot.getLhsBatching());
  append(row, dot.getLhs(), dot.getLhsFree());
  append(column, dot.getRhs(), dot.getRhsFree());
  return index;
}

SmallVector<NestPass> getPasses(const KernelNest &nest) {
  unsigned numStages = nest.stages.size();
  unsigned storeStage = std::max(nest.fullStage, numStages - 1);
  unsigned lastStage = nest.fullResults.empty() ? numStages - 1 : storeStage;
  SmallVector<NestPass> passes;
  for (unsigned stage = 0; stage <= lastStage; ++stage) {
    NestPass &pass = passes.emplace_back();
    if (stage < numStages)
      pass.reductions = nest.stages[stage];
    pass.stores = stage == storeStage && !nest.fullResults.empty();
  }
  return passes;
}

static void storeResults(NestEmitter &emitter, ArrayRef<Value> results,
                         const ResultBuffers &buffers, ArrayRef<Index> index) {
  SmallVector<Value> values;
  for (Value result : results)
    values.push_back(emitter.evaluate(result, index));
  for (auto [result, value] : llvm::zip_equal(results, values))
    for (Value buffer : buffers.lookup(result))
      emitter.memory.store(buffer, result, index, value);
}

void storeFullResults(NestEmitter &emitter, const KernelNest &nest,
                      const ResultBuffers &buffers, ArrayRef<Index> index) {
  storeResults(emitter, nest.fullResults, buffers, index);
}

void storeOuterResults(NestEmitter &emitter, const KernelNest &nest,
                       const ResultBuffers &buffers, ArrayRef<Index> index) {
  storeResults(emitter, nest.outerResults, buffers, index);
}

} // namespace shardc
