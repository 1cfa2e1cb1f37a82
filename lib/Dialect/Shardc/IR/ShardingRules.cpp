//===- ShardingRules.cpp - The sharding rule of each core op --------------===//
//
// One statement per op of how its dimensions map to factors (see
// ShardingRule.h). A factor's number is its place in the op's iteration space:
// result dimensions first, in order, then what is reduced.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

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
  RankedTensorType type = typeOf(op->getResult(0));
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
SHARDC_ELEMENTWISE(MaxOp, Never)
SHARDC_ELEMENTWISE(MinOp, Never)
SHARDC_ELEMENTWISE(CompareOp, Never)
SHARDC_ELEMENTWISE(SelectOp, Never)

#undef SHARDC_ELEMENTWISE

ShardingRule DivOp::getShardingRule() {
  // Integer division is not linear.
  bool isFloat = isa<FloatType>(typeOf(getResult()).getElementType());
  return elementwise(*this,
                     isFloat ? PartialRule::FirstOperand : PartialRule::Never);
}

ShardingRule ConvertOp::getShardingRule() {
  // Only widening is exact, so only there do partial sums add up to the same.
  auto from = dyn_cast<FloatType>(typeOf(getOperand()).getElementType());
  auto to = dyn_cast<FloatType>(typeOf(getResult()).getElementType());
  bool widens = from && to && from.getWidth() <= to.getWidth();
  return elementwise(*this,
                     widens ? PartialRule::Additive : PartialRule::Never);
}

ShardingRule ShardingConstraintOp::getShardingRule() {
  // The constraint asks for a reduced value unless it says otherwise.
  bool unreduced = getSharding() && !getSharding()->getUnreduced().empty();
  return elementwise(*this,
                     unreduced ? PartialRule::Additive : PartialRule::Never);
}

//===----------------------------------------------------------------------===//
// Contraction and reduction
//===----------------------------------------------------------------------===//

ShardingRule DotGeneralOp::getShardingRule() {
  RankedTensorType lhs = typeOf(getLhs()), rhs = typeOf(getRhs());
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
  RankedTensorType operand = typeOf(getOperand());
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
  RankedTensorType result = typeOf(getResult());
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
  RankedTensorType result = typeOf(getResult());
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

namespace {

/// Splits the dimensions of a reshape into common factors. Both shapes are
/// walked from the major side; where one dimension is a multiple of the other
/// the quotient is carried on, and where neither is, the rest of the group
/// cannot be sharded.
class ReshapeFactors {
public:
  ReshapeFactors(ArrayRef<int64_t> from, ArrayRef<int64_t> to)
      : from(from), to(to), fromDims(from.size()), toDims(to.size()) {}

  ShardingRule build() {
    if (llvm::is_contained(from, 0) || llvm::is_contained(to, 0)) {
      addWhole(from, fromDims);
      addWhole(to, toDims);
    } else {
      split();
    }
    restrict();
    rule.operands = {fromDims};
    rule.results = {toDims};
    rule.partial = PartialRule::Additive;
    return std::move(rule);
  }

private:
  int add(int64_t size, FactorKind kind = FactorKind::Parallel) {
    rule.factors.push_back({size, kind});
    return static_cast<int>(rule.factors.size()) - 1;
  }

  void addWhole(ArrayRef<int64_t> shape, ShardingRule::TensorFactors &dims) {
    for (auto [size, dim] : llvm::zip_equal(shape, dims))
      dim = {add(size, FactorKind::Whole)};
  }

  void split() {
    size_t i = 0, j = 0;
    // What is left of the current dimension on each side.
    int64_t left = 1, right = 1;
    while (i < from.size() || j < to.size()) {
      bool fresh = left == 1 && right == 1;
      if (fresh && i < from.size() && j < to.size() && from[i] == to[j]) {
        fromDims[i] = toDims[j] = {add(from[i])};
        ++i, ++j;
        continue;
      }
      if (fresh && i < from.size() && from[i] == 1) {
        fromDims[i++] = {add(1, FactorKind::Whole)};
        continue;
      }
      if (fresh && j < to.size() && to[j] == 1) {
        toDims[j++] = {add(1)};
        continue;
      }
      splitGroup(i, j, left, right);
    }
  }

  /// One group: dimensions whose products agree on both sides.
  void splitGroup(size_t &i, size_t &j, int64_t &left, int64_t &right) {
    left = from[i];
    right = to[j];
    while (true) {
      int64_t common = std::min(left, right);
      if (left % common != 0 || right % common != 0)
        return skipGroup(i, j, left, right);
      int factor = add(common);
      fromDims[i].push_back(factor);
      toDims[j].push_back(factor);
      left /= common;
      right /= common;
      if (left == 1)
        ++i;
      if (right == 1)
        ++j;
      if (left == 1 && right == 1)
        return;
      if (left == 1)
        left = from[i];
      if (right == 1)
        right = to[j];
    }
  }

  /// Gives the rest of a group without common factors one unshardable factor
  /// per dimension.
  void skipGroup(size_t &i, size_t &j, int64_t &left, int64_t &right) {
    fromDims[i].push_back(add(left, FactorKind::Whole));
    toDims[j].push_back(add(right, FactorKind::Whole));
    while (left != right) {
      if (left < right) {
        left *= from[++i];
        fromDims[i] = {add(from[i], FactorKind::Whole)};
      } else {
        right *= to[++j];
        toDims[j] = {add(to[j], FactorKind::Whole)};
      }
    }
    ++i, ++j;
    left = right = 1;
  }

  /// A dimension made of several factors can only be cut along its major one,
  /// and evenly: anything else is not a block of the dimension.
  void restrict() {
    for (const ShardingRule::TensorFactors *dims : {&fromDims, &toDims})
      for (const ShardingRule::DimFactors &dim : *dims) {
        if (dim.size() < 2)
          continue;
        rule.factors[dim.front()].mustDivide = true;
        for (int factor : llvm::drop_begin(dim))
          rule.factors[factor].kind = FactorKind::Whole;
      }
  }

  ArrayRef<int64_t> from, to;
  ShardingRule::TensorFactors fromDims, toDims;
  ShardingRule rule;
};

} // namespace

ShardingRule ReshapeOp::getShardingRule() {
  return ReshapeFactors(typeOf(getOperand()).getShape(),
                        typeOf(getResult()).getShape())
      .build();
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
