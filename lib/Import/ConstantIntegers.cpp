//===- ConstantIntegers.cpp - Integers known at compile time --------------===//

#include "ConstantIntegers.h"

#include "shardc/Dialect/Shardc/IR/Builders.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "llvm/ADT/APInt.h"

using namespace mlir;
using namespace shardc;

static bool isOneInteger(Value value) {
  RankedTensorType type = getTensorType(value);
  return type.getNumElements() == 1 &&
         type.getElementType().isSignlessInteger();
}

std::optional<int64_t> shardc::getConstantInteger(Value value) {
  if (!isOneInteger(value))
    return std::nullopt;
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getOperand();
  std::optional<double> splat = matchSplat(value);
  if (!splat)
    return std::nullopt;
  return static_cast<int64_t>(*splat);
}

static bool holds(CompareKind kind, int64_t lhs, int64_t rhs) {
  switch (kind) {
  case CompareKind::EQ:
    return lhs == rhs;
  case CompareKind::NE:
    return lhs != rhs;
  case CompareKind::LT:
    return lhs < rhs;
  case CompareKind::LE:
    return lhs <= rhs;
  case CompareKind::GT:
    return lhs > rhs;
  case CompareKind::GE:
    return lhs >= rhs;
  }
  return false;
}

/// The result of `op`, whose operands are `values`.
static std::optional<int64_t> evaluate(Operation *op,
                                       ArrayRef<int64_t> values) {
  // In unsigned numbers, in which nothing overflows.
  auto bits = [&](unsigned index) {
    return static_cast<uint64_t>(values[index]);
  };
  if (isa<AddOp>(op))
    return bits(0) + bits(1);
  if (isa<SubOp>(op))
    return bits(0) - bits(1);
  if (isa<MulOp>(op))
    return bits(0) * bits(1);
  if (isa<MaxOp>(op))
    return std::max(values[0], values[1]);
  if (isa<MinOp>(op))
    return std::min(values[0], values[1]);
  if (auto test = dyn_cast<CompareOp>(op))
    return holds(test.getKind(), values[0], values[1]);
  if (isa<SelectOp>(op))
    return values[0] != 0 ? values[1] : values[2];
  if (isa<ConvertOp>(op))
    return values[0];
  return std::nullopt;
}

Value shardc::foldInteger(OpBuilder &builder, Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<ConstantOp>(op) || !isOneInteger(value))
    return value;
  SmallVector<int64_t> values;
  for (Value operand : op->getOperands()) {
    std::optional<int64_t> known = getConstantInteger(operand);
    if (!known)
      return value;
    values.push_back(*known);
  }
  std::optional<int64_t> result = evaluate(op, values);
  if (!result)
    return value;
  RankedTensorType type = getTensorType(value);
  llvm::APInt wrapped = llvm::APInt(64, static_cast<uint64_t>(*result))
                            .trunc(type.getElementTypeBitWidth());
  return builder.create<ConstantOp>(
      op->getLoc(), DenseElementsAttr::get(type, ArrayRef(wrapped)));
}
