//===- KernelNest.cpp - Division of a kernel into loop nests --------------===//

#include "shardc/Analysis/KernelNest.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace shardc {

bool isElementwise(Operation *op) {
  return isa<NegOp, AbsOp, SignOp, ExpOp, Expm1Op, LogOp, Log1pOp, SqrtOp,
             RsqrtOp, TanhOp, ErfOp, CosOp, SinOp, FloorOp, StopGradientOp,
             AddOp, SubOp, MulOp, DivOp, RemainderOp, PowerOp, MaxOp, MinOp,
             AndOp, OrOp, XorOp, ShiftLeftOp, ShiftRightLogicalOp,
             ShiftRightArithmeticOp, BitcastOp, CompareOp, SelectOp, ConvertOp,
             MaskOp, ShardingConstraintOp>(op);
}

int64_t getElementWork(Operation *op) {
  if (isa<ExpOp, Expm1Op, LogOp, Log1pOp, TanhOp, ErfOp, SinOp, CosOp, SqrtOp,
          RsqrtOp, DivOp, RandomUniformOp>(op))
    return 16;
  return isa<PowerOp, RemainderOp>(op) ? 64 : 1;
}

bool isFreeToRepeat(Operation *op) {
  if (auto convert = dyn_cast<ConvertOp>(op)) {
    Type from = getElementTypeOrSelf(convert.getOperand());
    return from.isBF16() &&
           isa<FloatType>(getElementTypeOrSelf(convert.getResult()));
  }
  return isa<ConstantOp, IotaOp, BroadcastOp>(op);
}

bool movesLanesApart(Operation *op) {
  if (auto slice = dyn_cast<ExtractSliceOp>(op))
    return llvm::any_of(slice.getStrides(),
                        [](int64_t stride) { return stride > 1; });
  if (isa<PadOp, ConcatenateOp, PermuteRowsOp>(op))
    return true;
  auto reshape = dyn_cast<ReshapeOp>(op);
  if (!reshape || !reshape.getOperand().getDefiningOp())
    return false;
  auto isLong = [](int64_t size) { return size > 1; };
  auto from =
      llvm::make_filter_range(getTensorShape(reshape.getOperand()), isLong);
  auto to =
      llvm::make_filter_range(getTensorShape(reshape.getResult()), isLong);
  return llvm::to_vector(from) != llvm::to_vector(to);
}

Value getFactorInMemory(Value factor) {
  auto reshape = factor.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return factor;
  auto argument = dyn_cast<BlockArgument>(reshape.getOperand());
  return argument && isa<KernelOp>(argument.getOwner()->getParentOp())
             ? Value(argument)
             : factor;
}

std::vector<KernelNest> getKernelNests(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *yield = body.getTerminator();
  // Connected components by union-find; constants do not connect.
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
    // One general nest per shape, which computes every result from the inputs
    // alone.
    llvm::MapVector<ArrayRef<int64_t>, SmallVector<Value>> byShape;
    for (Value result : distinct)
      byShape[getTensorShape(result)].push_back(result);
    for (auto &[shape, values] : byShape) {
      KernelNest nest;
      nest.kind = NestKind::Map;
      nest.shape = llvm::to_vector(shape);
      nest.ops = component.ops;
      nest.fullResults = values;
      nests.push_back(std::move(nest));
    }
  }
  // Results that are operands passed through; each is a copy.
  llvm::SetVector<Value> arguments;
  for (Value result : yield->getOperands())
    if (!result.getDefiningOp())
      arguments.insert(result);
  for (Value argument : arguments) {
    KernelNest nest;
    nest.kind = NestKind::Map;
    nest.shape = llvm::to_vector(getTensorShape(argument));
    nest.fullResults = {argument};
    nests.push_back(std::move(nest));
  }
  return nests;
}

/// Whether `nest` reads `argument` only where it computes the element of
/// `result` at the same place.
static bool isReadInPlace(const KernelNest &nest, BlockArgument argument,
                          ArrayRef<int64_t> resultShape) {
  for (Operation *user : argument.getUsers()) {
    if (isa<YieldOp>(user))
      return false;
    if (!isElementwise(user) ||
        getTensorShape(user->getResult(0)) != resultShape)
      return false;
    // Forward through elementwise ops: no user may read the value at another
    // place (transposed, broadcast, reduced over other dimensions).
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

bool mayUpdateInPlace(KernelOp kernel, ArrayRef<KernelNest> nests,
                      unsigned operand, unsigned result) {
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
  // A general nest computes reductions and dot_generals at any place.
  bool isGeneral = owner->kind == NestKind::Map &&
                   llvm::any_of(owner->ops, [](Operation *op) {
                     return isa<ReduceOp, DotGeneralOp>(op);
                   });
  if (isGeneral)
    return false;
  return isReadInPlace(*owner, argument, resultType.getShape());
}

} // namespace shardc
