//===- AccumulateOp.cpp - Sums over the microbatches of a batch -----------===//

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace shardc;

YieldOp AccumulateOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

int64_t AccumulateOp::getRows() {
  return getTensorType(getSlices().front()).getDimSize(0);
}

LogicalResult AccumulateOp::verify() {
  auto count = static_cast<int64_t>(getCount());
  if (count < 1)
    return emitOpError("must run at least once, got ") << count;
  if (isa_and_nonnull<AccumulateOp>((*this)->getParentOp()))
    return emitOpError("must not be inside of another loop");
  if (getOperands().empty())
    return emitOpError("needs an operand to take rows of");
  size_t numArguments = getBody().getNumArguments();
  if (numArguments != getNumOperands() &&
      numArguments != getNumOperands() + getNumResults())
    return emitOpError("body must have an argument per operand, and after "
                       "them one per result or none, got ")
           << numArguments << " for " << getNumOperands() << " operands and "
           << getNumResults() << " results";
  for (auto [operand, slice] : llvm::zip_equal(getOperands(), getSlices())) {
    RankedTensorType whole = getTensorType(operand);
    SmallVector<int64_t> shape(whole.getShape());
    bool divides = !shape.empty() && shape[0] % count == 0;
    if (divides)
      shape[0] /= count;
    if (!divides || slice.getType() != whole.clone(shape))
      return emitOpError("body argument ")
             << slice.getArgNumber() << " must be 1/" << count
             << " of the rows of " << whole << ", got " << slice.getType();
  }
  for (auto [result, sum] : llvm::zip(getResults(), getSums()))
    if (result.getType() != sum.getType())
      return emitOpError("body argument ")
             << sum.getArgNumber() << " must have the type of its result, "
             << result.getType() << ", got " << sum.getType();
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield)
    return emitOpError("body must end in shardc.yield");
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError("must yield the types of its results, got (")
           << yield.getOperandTypes() << ") for (" << getResultTypes() << ")";
  return success();
}

/// Factor 0 is the rows of a microbatch, shared by all operands; each other
/// dimension is a factor of its own. Where a run takes one row, a row is a
/// microbatch, and dimensions 1 of one size are its rows: one factor, too.
ShardingRule AccumulateOp::getShardingRule() {
  ShardingRule rule;
  // A device takes the same number of rows in each run, so that it takes all of
  // its own. In a single run it may take fewer, as it may without the loop.
  rule.factors.push_back(
      {getRows(), FactorKind::Parallel, /*mustDivide=*/getCount() > 1});
  int inner = -1;
  for (Value slice : getSlices()) {
    ShardingRule::TensorFactors dims = {{0}};
    for (int64_t size : getTensorType(slice).getShape().drop_front()) {
      bool isInner = dims.size() == 1 && getRows() == 1;
      if (isInner && inner >= 0 && rule.factors[inner].size == size) {
        dims.push_back({inner});
        continue;
      }
      if (isInner && inner < 0)
        inner = static_cast<int>(rule.factors.size());
      dims.push_back({static_cast<int>(rule.factors.size())});
      rule.factors.push_back({size});
    }
    rule.operands.push_back(dims);
    rule.results.push_back(dims);
  }
  return rule;
}

LogicalResult ScatterRowsOp::verify() {
  auto count = static_cast<int64_t>(getCount());
  auto loop = dyn_cast_or_null<AccumulateOp>((*this)->getParentOp());
  if (!loop || loop.getCount() != getCount())
    return emitOpError("must be in the body of a shardc.accumulate with ")
           << count << " runs";
  RankedTensorType type = getTensorType(getOperand());
  SmallVector<int64_t> shape(type.getShape());
  if (count < 1 || shape.empty() ||
      llvm::MulOverflow(shape[0], count, shape[0]) ||
      getResult().getType() != type.clone(shape))
    return emitOpError("result must have ")
           << count << " times the rows of " << type << ", got "
           << getResult().getType();
  return success();
}

/// Factor 0 is the rows, of which a device has as many in each microbatch.
ShardingRule ScatterRowsOp::getShardingRule() {
  ShardingRule rule;
  ShardingRule::TensorFactors dims;
  for (int64_t size : getTensorShape(getOperand())) {
    dims.push_back({static_cast<int>(rule.factors.size())});
    rule.factors.push_back({size});
  }
  rule.factors[0].mustDivide = true;
  rule.operands = {dims};
  rule.results = {dims};
  rule.partial = PartialRule::Additive;
  return rule;
}
