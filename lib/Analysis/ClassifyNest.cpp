//===- ClassifyNest.cpp - Classification of one loop nest -----------------===//

#include "shardc/Analysis/KernelNest.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace shardc {

namespace {

ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The place of a value in its nest.
enum class Place {
  /// Computed from the kernel's inputs by index alone, at any place.
  Anywhere,
  /// Known per iteration of the full shape.
  Full,
  /// Known once per outer index, after the reductions over the inner
  /// dimensions.
  Outer,
};

/// Walks the ops in order and gives each value its place and stage.
class NestClassifier {
public:
  std::optional<KernelNest> run(ArrayRef<Operation *> ops,
                                ArrayRef<Value> results);

private:
  KernelNest nest;
  DenseMap<Value, Place> places;
  DenseMap<Value, unsigned> depths;
  SmallVector<int64_t> outerShape;
  SmallVector<int64_t> keptDims;

  Place getPlace(Value value) {
    auto it = places.find(value);
    return it == places.end() ? Place::Anywhere : it->second;
  }
  bool setUpReductions(ArrayRef<Operation *> ops);
  bool visit(Operation *op);
  bool visitReduce(ReduceOp reduce);
  bool visitElementwise(Operation *op);
};

bool NestClassifier::setUpReductions(ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    if (auto dot = dyn_cast<DotGeneralOp>(op)) {
      if (nest.dot)
        return false;
      nest.dot = dot;
      nest.kind = NestKind::Gemm;
      nest.shape = llvm::to_vector(getShape(dot.getResult()));
    }
  }
  ReduceOp first;
  for (Operation *op : ops) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce)
      continue;
    if (nest.dot)
      return false;
    if (!first) {
      first = reduce;
      nest.shape = llvm::to_vector(getShape(reduce.getOperand()));
      nest.reduced = llvm::to_vector(reduce.getDims());
    } else if (ArrayRef<int64_t>(nest.shape) != getShape(reduce.getOperand()) ||
               ArrayRef<int64_t>(nest.reduced) != reduce.getDims()) {
      return false;
    }
  }
  if (!first)
    return true;
  // Dimensions of size 1 count as neither kept nor reduced.
  int64_t lastKept = -1, firstKept = nest.shape.size();
  int64_t lastReduced = -1, firstReduced = nest.shape.size();
  for (auto [dim, size] : llvm::enumerate(nest.shape)) {
    int64_t index = dim;
    bool isReduced = llvm::is_contained(nest.reduced, index);
    if (!isReduced) {
      outerShape.push_back(size);
      keptDims.push_back(index);
    }
    if (size == 1)
      continue;
    int64_t &lowest = isReduced ? firstReduced : firstKept;
    int64_t &highest = isReduced ? lastReduced : lastKept;
    lowest = std::min(lowest, index);
    highest = std::max(highest, index);
  }
  if (lastKept < firstReduced)
    nest.kind = NestKind::Rows;
  else if (lastReduced < firstKept ||
           (lastReduced < lastKept &&
            getFactorInMemory(first.getOperand()) != first.getOperand()))
    // Of blocks of rows, too, where they are cut out of an argument.
    nest.kind = NestKind::Columns;
  else
    return false;
  return true;
}

bool NestClassifier::visitReduce(ReduceOp reduce) {
  Value operand = reduce.getOperand();
  if (getPlace(operand) == Place::Outer)
    return false;
  unsigned stage = depths.lookup(operand);
  if (nest.stages.size() <= stage)
    nest.stages.resize(stage + 1);
  nest.stages[stage].push_back(reduce);
  places[reduce.getResult()] = Place::Outer;
  depths[reduce.getResult()] = stage + 1;
  return true;
}

bool NestClassifier::visitElementwise(Operation *op) {
  Place place = Place::Anywhere;
  unsigned depth = 0;
  for (Value operand : op->getOperands()) {
    depth = std::max(depth, depths.lookup(operand));
    if (getPlace(operand) == Place::Anywhere)
      continue;
    if (place != Place::Anywhere && place != getPlace(operand))
      return false;
    place = getPlace(operand);
  }
  for (Value result : op->getResults()) {
    places[result] = place;
    depths[result] = depth;
  }
  return true;
}

bool NestClassifier::visit(Operation *op) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return visitReduce(reduce);
  if (auto dot = dyn_cast<DotGeneralOp>(op)) {
    // Operands are read from memory.
    for (Value operand : op->getOperands())
      if (places.count(getFactorInMemory(operand)))
        return false;
    places[dot.getResult()] = Place::Full;
    return true;
  }
  if (isElementwise(op))
    return visitElementwise(op);
  if (movesLanesApart(op))
    return false;
  bool isAnywhere = llvm::all_of(op->getOperands(), [&](Value operand) {
    return getPlace(operand) == Place::Anywhere;
  });
  if (isAnywhere) {
    for (Value result : op->getResults())
      places[result] = Place::Anywhere;
    return true;
  }
  // A row's value, broadcast over the row again.
  auto broadcast = dyn_cast<BroadcastOp>(op);
  if (!broadcast || nest.dot ||
      getPlace(broadcast.getOperand()) != Place::Outer ||
      getShape(broadcast.getResult()) != ArrayRef<int64_t>(nest.shape) ||
      broadcast.getDims() != ArrayRef<int64_t>(keptDims))
    return false;
  places[broadcast.getResult()] = Place::Full;
  depths[broadcast.getResult()] = depths.lookup(broadcast.getOperand());
  return true;
}

std::optional<KernelNest> NestClassifier::run(ArrayRef<Operation *> ops,
                                              ArrayRef<Value> results) {
  nest.kind = NestKind::Map;
  nest.ops = llvm::to_vector(ops);
  if (!setUpReductions(ops))
    return std::nullopt;
  for (Operation *op : ops)
    if (!visit(op))
      return std::nullopt;
  bool hasReductions =
      nest.kind == NestKind::Rows || nest.kind == NestKind::Columns;
  if (nest.kind == NestKind::Map && !results.empty())
    nest.shape = llvm::to_vector(getShape(results.front()));
  for (Value result : results) {
    Place place = getPlace(result);
    ArrayRef<int64_t> shape = getShape(result);
    bool isFull = shape == ArrayRef<int64_t>(nest.shape);
    bool isOuter = hasReductions && shape == ArrayRef<int64_t>(outerShape);
    if (isFull && place != Place::Outer) {
      nest.fullResults.push_back(result);
      nest.fullStage = std::max(nest.fullStage, depths.lookup(result));
    } else if (isOuter && place != Place::Full)
      nest.outerResults.push_back(result);
    else
      return std::nullopt;
  }
  return std::move(nest);
}

} // namespace

std::optional<KernelNest> classifyNest(ArrayRef<Operation *> ops,
                                       ArrayRef<Value> results) {
  return NestClassifier().run(ops, results);
}

} // namespace shardc
