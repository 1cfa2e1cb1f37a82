//===- KernelNest.cpp - The loop nests that a kernel becomes --------------===//

#include "shardc/Analysis/KernelNest.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace shardc {

namespace {

ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// What a value is to the nest it belongs to.
enum class Place {
  /// Computed from the kernel's inputs by index alone, at any place.
  Anywhere,
  /// Known per iteration of the full shape.
  Full,
  /// Known once the reductions over the inner dimensions are.
  Outer,
};

/// Walks the ops in order, giving each value its place and stage.
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
  // Dimensions of size 1 are on no side.
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
  else if (lastReduced < firstKept)
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
      if (places.count(operand))
        return false;
    places[dot.getResult()] = Place::Full;
    return true;
  }
  if (isElementwise(op))
    return visitElementwise(op);
  if (isHardReshape(op))
    return false;
  bool isAnywhere = llvm::all_of(op->getOperands(), [&](Value operand) {
    return getPlace(operand) == Place::Anywhere;
  });
  if (isAnywhere) {
    for (Value result : op->getResults())
      places[result] = Place::Anywhere;
    return true;
  }
  // A row's value spread over the row again.
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

bool isElementwise(Operation *op) {
  return isa<NegOp, AbsOp, SignOp, ExpOp, Expm1Op, LogOp, Log1pOp, SqrtOp,
             RsqrtOp, TanhOp, ErfOp, CosOp, SinOp, StopGradientOp, AddOp, SubOp,
             MulOp, DivOp, MaxOp, MinOp, CompareOp, SelectOp, ConvertOp, MaskOp,
             ShardingConstraintOp>(op);
}

bool isFreeToRepeat(Operation *op) {
  return isa<ConstantOp, IotaOp, BroadcastOp>(op);
}

bool isHardReshape(Operation *op) {
  auto reshape = dyn_cast<ReshapeOp>(op);
  if (!reshape || !reshape.getOperand().getDefiningOp())
    return false;
  auto isLong = [](int64_t size) { return size > 1; };
  auto from = llvm::make_filter_range(getShape(reshape.getOperand()), isLong);
  auto to = llvm::make_filter_range(getShape(reshape.getResult()), isLong);
  return llvm::to_vector(from) != llvm::to_vector(to);
}

std::optional<KernelNest> classifyNest(ArrayRef<Operation *> ops,
                                       ArrayRef<Value> results) {
  return NestClassifier().run(ops, results);
}

std::vector<KernelNest> getKernelNests(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *yield = body.getTerminator();
  // Connected components; constants do not connect.
  llvm::EquivalenceClasses<Operation *> classes;
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator()) {
    ops.push_back(&op);
    classes.insert(&op);
  }
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp())
        if (!isa<ConstantOp>(def))
          classes.unionSets(op, def);
  auto collect = [&] {
    llvm::MapVector<Operation *, KernelNest> components;
    for (Value result : yield->getOperands()) {
      Operation *def = result.getDefiningOp();
      if (!def)
        continue;
      components[classes.getLeaderValue(def)].fullResults.push_back(result);
    }
    for (Operation *op : ops) {
      auto it = components.find(classes.getLeaderValue(op));
      if (it != components.end())
        it->second.ops.push_back(op);
    }
    return components;
  };
  std::vector<KernelNest> nests;
  for (auto &[leader, component] : collect()) {
    SmallVector<Value> results(component.fullResults);
    llvm::SetVector<Value> distinct(results.begin(), results.end());
    if (auto nest = classifyNest(component.ops, distinct.getArrayRef())) {
      nests.push_back(std::move(*nest));
      continue;
    }
    // One general nest per shape: every result computed from the inputs alone.
    llvm::MapVector<ArrayRef<int64_t>, SmallVector<Value>> byShape;
    for (Value result : distinct)
      byShape[getShape(result)].push_back(result);
    for (auto &[shape, values] : byShape) {
      KernelNest nest;
      nest.kind = NestKind::Map;
      nest.shape = llvm::to_vector(shape);
      nest.ops = component.ops;
      nest.fullResults = values;
      nests.push_back(std::move(nest));
    }
  }
  // Results that are operands passed through, each a copy.
  llvm::SetVector<Value> arguments;
  for (Value result : yield->getOperands())
    if (!result.getDefiningOp())
      arguments.insert(result);
  for (Value argument : arguments) {
    KernelNest nest;
    nest.kind = NestKind::Map;
    nest.shape = llvm::to_vector(getShape(argument));
    nest.fullResults = {argument};
    nests.push_back(std::move(nest));
  }
  return nests;
}

/// Whether `argument` is read in `nest` only where the element of `result` at
/// the same place is computed.
static bool isReadInPlace(const KernelNest &nest, BlockArgument argument,
                          ArrayRef<int64_t> resultShape) {
  for (Operation *user : argument.getUsers()) {
    if (isa<YieldOp>(user))
      return false;
    if (!isElementwise(user) || getShape(user->getResult(0)) != resultShape)
      return false;
    // Forward through elementwise ops: the value must not be looked at from
    // another place (transposed, broadcast, reduced over other dimensions).
    SmallVector<Operation *> worklist{user};
    llvm::SmallPtrSet<Operation *, 8> seen;
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      if (!seen.insert(op).second)
        continue;
      for (Operation *next : op->getUsers()) {
        if (isa<YieldOp>(next))
          continue;
        bool isStageReduction =
            isa<ReduceOp>(next) &&
            (nest.kind == NestKind::Rows || nest.kind == NestKind::Columns) &&
            resultShape == ArrayRef<int64_t>(nest.shape);
        if (isStageReduction)
          continue;
        if (!isElementwise(next))
          return false;
        worklist.push_back(next);
      }
    }
  }
  return true;
}

bool mayUpdateInPlace(KernelOp kernel, unsigned operand, unsigned result) {
  Block &body = kernel.getBody().front();
  BlockArgument argument = body.getArgument(operand);
  Value value = body.getTerminator()->getOperand(result);
  auto argumentType = cast<RankedTensorType>(argument.getType());
  auto resultType = cast<RankedTensorType>(value.getType());
  if (argumentType.getShape() != resultType.getShape() ||
      argumentType.getElementTypeBitWidth() !=
          resultType.getElementTypeBitWidth())
    return false;
  Operation *def = value.getDefiningOp();
  if (!def)
    return false;
  // All nests that read the operand must be the one that writes the result.
  std::vector<KernelNest> nests = getKernelNests(kernel);
  const KernelNest *owner = nullptr;
  for (const KernelNest &nest : nests) {
    bool reads = llvm::any_of(nest.ops, [&](Operation *op) {
      return llvm::is_contained(op->getOperands(), argument);
    });
    bool writes = llvm::is_contained(nest.fullResults, value) ||
                  llvm::is_contained(nest.outerResults, value);
    if (writes) {
      if (owner)
        return false;
      owner = &nest;
    } else if (reads) {
      return false;
    }
  }
  if (!owner)
    return false;
  // A general nest computes reductions and products at any place.
  bool isGeneral = owner->kind == NestKind::Map &&
                   llvm::any_of(owner->ops, [](Operation *op) {
                     return isa<ReduceOp, DotGeneralOp>(op);
                   });
  if (isGeneral)
    return false;
  return isReadInPlace(*owner, argument, resultType.getShape());
}

} // namespace shardc
