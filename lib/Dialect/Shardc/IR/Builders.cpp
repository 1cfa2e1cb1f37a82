//===- Builders.cpp - Short spellings for common core ops -----------------===//

#include "shardc/Dialect/Shardc/IR/Builders.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace shardc;

DenseElementsAttr shardc::getSplat(RankedTensorType type, double value) {
  Type element = type.getElementType();
  Builder builder(type.getContext());
  if (isa<FloatType>(element))
    return DenseElementsAttr::get(type, builder.getFloatAttr(element, value));
  if (element.isInteger(1))
    return DenseElementsAttr::get(type, value != 0);
  return DenseElementsAttr::get(
      type, builder.getIntegerAttr(element, static_cast<int64_t>(value)));
}

Value shardc::constantSplat(OpBuilder &builder, Location loc,
                            RankedTensorType type, double value) {
  return builder.create<ConstantOp>(loc, type,
                                    cast<ElementsAttr>(getSplat(type, value)));
}

std::optional<double> shardc::matchSplat(Value value) {
  while (auto broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getOperand();
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant)
    return std::nullopt;
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!elements || !elements.isSplat())
    return std::nullopt;
  Type element = elements.getElementType();
  if (isa<FloatType>(element)) {
    APFloat splat = elements.getSplatValue<APFloat>();
    bool losesInfo = false;
    splat.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    return splat.convertToDouble();
  }
  APInt splat = elements.getSplatValue<APInt>();
  if (element.isInteger(1))
    return splat.isZero() ? 0.0 : 1.0;
  return static_cast<double>(splat.getSExtValue());
}

Value shardc::broadcastScalar(OpBuilder &builder, Location loc, Value scalar,
                              RankedTensorType type) {
  return broadcastTo(builder, loc, scalar, type, {});
}

Value shardc::broadcastTo(OpBuilder &builder, Location loc, Value operand,
                          RankedTensorType type, ArrayRef<int64_t> dims) {
  if (operand.getType() == type)
    return operand;
  return builder.create<BroadcastOp>(loc, type, operand, dims);
}

Value shardc::convertTo(OpBuilder &builder, Location loc, Value operand,
                        Type element) {
  auto type = cast<RankedTensorType>(operand.getType());
  if (type.getElementType() == element)
    return operand;
  return builder.create<ConvertOp>(loc, type.clone(element), operand);
}

Value shardc::reduce(OpBuilder &builder, Location loc, ReductionKind kind,
                     Value operand, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return operand;
  auto type = cast<RankedTensorType>(operand.getType());
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return builder.create<ReduceOp>(
      loc, RankedTensorType::get(shape, type.getElementType()), kind, operand,
      dims);
}

Value shardc::reduceAll(OpBuilder &builder, Location loc, ReductionKind kind,
                        Value operand) {
  int64_t rank = cast<RankedTensorType>(operand.getType()).getRank();
  return reduce(builder, loc, kind, operand,
                llvm::to_vector(llvm::seq<int64_t>(0, rank)));
}

Value shardc::dot(OpBuilder &builder, Location loc, Value lhs, Value rhs,
                  ArrayRef<int64_t> lhsContracting,
                  ArrayRef<int64_t> rhsContracting) {
  auto lhsType = cast<RankedTensorType>(lhs.getType());
  auto rhsType = cast<RankedTensorType>(rhs.getType());
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(lhsType.getShape()))
    if (!llvm::is_contained(lhsContracting, static_cast<int64_t>(dim)))
      shape.push_back(size);
  for (auto [dim, size] : llvm::enumerate(rhsType.getShape()))
    if (!llvm::is_contained(rhsContracting, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return builder.create<DotGeneralOp>(
      loc, RankedTensorType::get(shape, lhsType.getElementType()), lhs, rhs,
      ArrayRef<int64_t>(), ArrayRef<int64_t>(), lhsContracting, rhsContracting);
}

Value shardc::compare(OpBuilder &builder, Location loc, CompareKind kind,
                      Value lhs, Value rhs) {
  auto type = cast<RankedTensorType>(lhs.getType());
  return builder.create<CompareOp>(
      loc, RankedTensorType::get(type.getShape(), builder.getI1Type()), kind,
      lhs, rhs);
}
