//===- ShardingRules.cpp - The sharding rule of each core op --------------===//
//
// For each op the mapping of its dimensions to factors (see ShardingRule.h). A
// factor's number is its place in the op's iteration space: result dimensions
// first, in order, then the reduced ones. ReshapeRule.cpp has the rule of
// reshapes, whose factors have to be found.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;

/// Factors 0, 1, ... for the dimensions of a tensor.
static ShardingRule::TensorFactors consecutive(int64_t rank) {
  ShardingRule::TensorFactors dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    dims.push_back({static_cast<int>(dim)});
  return dims;
}

/// A parallel factor per dimension of the only result; every operand has the
/// shape of the result.
static ShardingRule elementwise(Operation *op, PartialRule partial) {
  RankedTensorType type = getTensorType(op->getResult(0));
  ShardingRule rule;
  for (int64_t size : type.getShape())
    rule.factors.push_back({size});
  rule.operands.assign(op->getNumOperands(), consecutive(type.getRank()));
  rule.results.push_back(consecutive(type.getRank()));
  rule.partial = partial;
  return rule;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

#define SHARDC_ELEMENTWISE(OP, PARTIAL)                                        \
  ShardingRule OP::getShardingRule() {                                         \
    return elementwise(*this, PartialRule::PARTIAL);                           \
  }

SHARDC_ELEMENTWISE(NegOp, Additive)
SHARDC_ELEMENTWISE(StopGradientOp, Additive)
SHARDC_ELEMENTWISE(AddOp, Additive)
SHARDC_ELEMENTWISE(SubOp, Additive)
SHARDC_ELEMENTWISE(MulOp, Multilinear)
SHARDC_ELEMENTWISE(AbsOp, Never)
SHARDC_ELEMENTWISE(SignOp, Never)
SHARDC_ELEMENTWISE(ExpOp, Never)
SHARDC_ELEMENTWISE(Expm1Op, Never)
SHARDC_ELEMENTWISE(LogOp, Never)
SHARDC_ELEMENTWISE(Log1pOp, Never)
SHARDC_ELEMENTWISE(SqrtOp, Never)
SHARDC_ELEMENTWISE(RsqrtOp, Never)
SHARDC_ELEMENTWISE(TanhOp, Never)
SHARDC_ELEMENTWISE(ErfOp, Never)
SHARDC_ELEMENTWISE(CosOp, Never)
SHARDC_ELEMENTWISE(SinOp, Never)
SHARDC_ELEMENTWISE(FloorOp, Never)
SHARDC_ELEMENTWISE(RemainderOp, Never)
SHARDC_ELEMENTWISE(PowerOp, Never)
SHARDC_ELEMENTWISE(MaxOp, Never)
SHARDC_ELEMENTWISE(MinOp, Never)
SHARDC_ELEMENTWISE(AndOp, Never)
SHARDC_ELEMENTWISE(OrOp, Never)
SHARDC_ELEMENTWISE(XorOp, Never)
SHARDC_ELEMENTWISE(ShiftLeftOp, Never)
SHARDC_ELEMENTWISE(ShiftRightLogicalOp, Never)
SHARDC_ELEMENTWISE(ShiftRightArithmeticOp, Never)
SHARDC_ELEMENTWISE(BitcastOp, Never)
SHARDC_ELEMENTWISE(CompareOp, Never)
SHARDC_ELEMENTWISE(SelectOp, Never)

#undef SHARDC_ELEMENTWISE

ShardingRule DivOp::getShardingRule() {
  // Integer division is not linear.
  bool isFloat = isa<FloatType>(getTensorType(getResult()).getElementType());
  return elementwise(*this,
                     isFloat ? PartialRule::FirstOperand : PartialRule::Never);
}

ShardingRule ConvertOp::getShardingRule() {
  // Only widening is exact, so that converted partial sums add up to the same.
  auto from = dyn_cast<FloatType>(getTensorType(getOperand()).getElementType());
  auto to = dyn_cast<FloatType>(getTensorType(getResult()).getElementType());
  bool widens = from && to && from.getWidth() <= to.getWidth();
  return elementwise(*this,
                     widens ? PartialRule::Additive : PartialRule::Never);
}

ShardingRule ShardingConstraintOp::getShardingRule() {
  // The constraint requires a reduced value unless it has unreduced axes.
  bool unreduced = getSharding() && !getSharding()->getUnreduced().empty();
  return elementwise(*this,
                     unreduced ? PartialRule::Additive : PartialRule::Never);
}

//===----------------------------------------------------------------------===//
// Contraction and reduction
//===----------------------------------------------------------------------===//

ShardingRule DotGeneralOp::getShardingRule() {
  RankedTensorType lhs = getTensorType(getLhs()), rhs = getTensorType(getRhs());
  ShardingRule rule;
  ShardingRule::TensorFactors lhsDims(lhs.getRank()), rhsDims(rhs.getRank()),
      resultDims;
  auto add = [&](int64_t size, FactorKind kind) {
    rule.factors.push_back({size, kind});
    return static_cast<int>(rule.factors.size()) - 1;
  };
  for (auto [left, right] :
       llvm::zip_equal(getLhsBatching(), getRhsBatching())) {
    int factor = add(lhs.getDimSize(left), FactorKind::Parallel);
    lhsDims[left] = rhsDims[right] = {factor};
    resultDims.push_back({factor});
  }
  for (int64_t dim : getLhsFree()) {
    lhsDims[dim] = {add(lhs.getDimSize(dim), FactorKind::Parallel)};
    resultDims.push_back(lhsDims[dim]);
  }
  for (int64_t dim : getRhsFree()) {
    rhsDims[dim] = {add(rhs.getDimSize(dim), FactorKind::Parallel)};
    resultDims.push_back(rhsDims[dim]);
  }
  for (auto [left, right] :
       llvm::zip_equal(getLhsContracting(), getRhsContracting()))
    lhsDims[left] =
        rhsDims[right] = {add(lhs.getDimSize(left), FactorKind::Sum)};

  rule.operands = {lhsDims, rhsDims};
  rule.results = {resultDims};
  rule.partial = PartialRule::Multilinear;
  return rule;
}

ShardingRule ReduceOp::getShardingRule() {
  RankedTensorType operand = getTensorType(getOperand());
  bool isSum = getKind() == ReductionKind::Sum;
  ShardingRule rule;
  ShardingRule::TensorFactors operandDims(operand.getRank()), resultDims;
  for (int64_t dim = 0; dim < operand.getRank(); ++dim) {
    if (llvm::is_contained(getDims(), dim))
      continue;
    operandDims[dim] = {static_cast<int>(rule.factors.size())};
    resultDims.push_back(operandDims[dim]);
    rule.factors.push_back({operand.getDimSize(dim)});
  }
  for (int64_t dim : getDims()) {
    operandDims[dim] = {static_cast<int>(rule.factors.size())};
    rule.factors.push_back(
        {operand.getDimSize(dim), isSum ? FactorKind::Sum : FactorKind::Max});
  }
  rule.operands = {operandDims};
  rule.results = {resultDims};
  rule.partial = isSum ? PartialRule::Additive : PartialRule::Never;
  return rule;
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

ShardingRule BroadcastOp::getShardingRule() {
  RankedTensorType result = getTensorType(getResult());
  ShardingRule rule;
  for (int64_t size : result.getShape())
    rule.factors.push_back({size});
  ShardingRule::TensorFactors operandDims;
  for (int64_t dim : getDims())
    operandDims.push_back({static_cast<int>(dim)});
  rule.operands = {operandDims};
  rule.results = {consecutive(result.getRank())};
  rule.partial = PartialRule::Additive;
  return rule;
}

ShardingRule TransposeOp::getShardingRule() {
  RankedTensorType result = getTensorType(getResult());
  ShardingRule rule;
  ShardingRule::TensorFactors operandDims(result.getRank());
  for (auto [dim, from] : llvm::enumerate(getPermutation())) {
    rule.factors.push_back({result.getDimSize(dim)});
    operandDims[from] = {static_cast<int>(dim)};
  }
  rule.operands = {operandDims};
  rule.results = {consecutive(result.getRank())};
  rule.partial = PartialRule::Additive;
  return rule;
}

/// A parallel factor for each dimension of the result that `isWhole`; operands
/// and result have unshardable factors of their own for the others.
static ShardingRule moved(Operation *op, function_ref<bool(int64_t)> isWhole) {
  RankedTensorType type = getTensorType(op->getResult(0));
  ShardingRule rule;
  rule.operands.resize(op->getNumOperands());
  rule.results.resize(1);
  auto add = [&](ShardingRule::TensorFactors &dims, int64_t size,
                 FactorKind kind) {
    dims.push_back({static_cast<int>(rule.factors.size())});
    rule.factors.push_back({size, kind});
  };
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (isWhole(dim)) {
      add(rule.results[0], type.getDimSize(dim), FactorKind::Parallel);
      for (ShardingRule::TensorFactors &dims : rule.operands)
        dims.push_back(rule.results[0].back());
      continue;
    }
    add(rule.results[0], type.getDimSize(dim), FactorKind::Whole);
    for (auto [operand, dims] :
         llvm::zip_equal(op->getOperands(), rule.operands))
      add(dims, getTensorType(operand).getDimSize(dim), FactorKind::Whole);
  }
  rule.partial = PartialRule::Additive;
  return rule;
}

ShardingRule ExtractSliceOp::getShardingRule() {
  return moved(*this, [&](int64_t dim) { return isWhole(dim); });
}

ShardingRule PadOp::getShardingRule() {
  ShardingRule rule = moved(*this, [&](int64_t dim) { return isWhole(dim); });
  // Only zeros add up to the fill.
  if (!getFill().isZero())
    rule.partial = PartialRule::Never;
  return rule;
}

ShardingRule ConcatenateOp::getShardingRule() {
  return moved(*this, [&](int64_t dim) {
    return dim != static_cast<int64_t>(getDim());
  });
}

ShardingRule PermuteRowsOp::getShardingRule() {
  ShardingRule rule = elementwise(*this, PartialRule::Additive);
  rule.factors[getDim()].oneEach = true;
  rule.needsBlocks = true;
  return rule;
}

//===----------------------------------------------------------------------===//
// Ops without tensor operands
//===----------------------------------------------------------------------===//

ShardingRule ConstantOp::getShardingRule() {
  ShardingRule rule = elementwise(*this, PartialRule::Never);
  // A shard of a splat is a splat; other constants are sliced after the fact.
  auto elements = dyn_cast<DenseElementsAttr>(getValue());
  if (!elements || !elements.isSplat())
    for (Factor &factor : rule.factors)
      factor.kind = FactorKind::Whole;
  return rule;
}

ShardingRule IotaOp::getShardingRule() {
  ShardingRule rule = elementwise(*this, PartialRule::Never);
  rule.needsBlocks = true;
  return rule;
}

ShardingRule RandomUniformOp::getShardingRule() {
  ShardingRule rule = elementwise(*this, PartialRule::Never);
  rule.operands = {ShardingRule::TensorFactors()};
  rule.needsBlocks = true;
  return rule;
}
