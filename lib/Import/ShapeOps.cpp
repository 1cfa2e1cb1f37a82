//===- ShapeOps.cpp - Ops of StableHLO on dimensions ----------------------===//

#include "Lowering.h"
#include "OpaqueText.h"

using namespace mlir;
using namespace shardc;

static LogicalResult lowerConstant(Lowering &lowering, Operation *op) {
  auto value = op->getAttrOfType<DenseElementsAttr>("value");
  if (!value)
    return emitError(op->getLoc()) << "a constant has no dense value";
  return lowering.set(
      op, lowering.getBuilder().create<ConstantOp>(op->getLoc(), value));
}

static LogicalResult lowerBroadcast(Lowering &lowering, Operation *op) {
  ArrayRef<int64_t> dims = getDims(op, "broadcast_dimensions");
  Value x = lowering.get(op, 0);
  RankedTensorType from = getTensorType(x), type = lowering.at(op).getType();
  bool isRight = static_cast<int64_t>(dims.size()) == from.getRank();
  for (size_t i = 0; isRight && i < dims.size(); ++i)
    isRight = dims[i] >= 0 && dims[i] < type.getRank() &&
              (from.getDimSize(i) == 1 ||
               from.getDimSize(i) == type.getDimSize(dims[i]));
  if (!isRight || from.getElementType() != type.getElementType())
    return emitError(op->getLoc()) << "a broadcast has the wrong dimensions";
  return lowering.set(op, lowering.broadcast(op->getLoc(), x, type, dims));
}

static LogicalResult lowerReshape(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  RankedTensorType type = lowering.at(op).getType();
  if (auto constant = x.getDefiningOp<ConstantOp>())
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
      if (elements.getType().getNumElements() == type.getNumElements())
        return lowering.set(op, lowering.getBuilder().create<ConstantOp>(
                                    op->getLoc(), elements.reshape(type)));
  return lowering.set(op, lowering.reshape(op->getLoc(), x, type));
}

static LogicalResult lowerTranspose(Lowering &lowering, Operation *op) {
  ArrayRef<int64_t> permutation = getDims(op, "permutation");
  Value x = lowering.get(op, 0);
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return lowering.set(op, x);
  // A gradient of a weight that JAX makes transposed. The product of the
  // exchanged factors may be a partial sum where the parameter is sharded.
  auto product = x.getDefiningOp<DotGeneralOp>();
  bool isMatrix = product && getTensorType(product.getLhs()).getRank() == 2 &&
                  getTensorType(product.getRhs()).getRank() == 2;
  if (isMatrix && permutation.size() == 2 &&
      product.getLhsContracting().size() == 1)
    return lowering.set(
        op, lowering.getBuilder().create<DotGeneralOp>(
                product.getLoc(), lowering.at(op).getType(), product.getRhs(),
                product.getLhs(), ArrayRef<int64_t>(), ArrayRef<int64_t>(),
                product.getRhsContracting(), product.getLhsContracting()));
  return lowering.set(
      op, lowering.getBuilder().create<TransposeOp>(
              op->getLoc(), lowering.at(op).getType(), x, permutation));
}

static LogicalResult lowerIota(Lowering &lowering, Operation *op) {
  auto dim = op->getAttrOfType<IntegerAttr>("iota_dimension");
  if (!dim)
    return emitError(op->getLoc()) << "an iota has no dimension";
  return lowering.set(
      op,
      lowering.count(op->getLoc(), lowering.at(op).getType(), dim.getInt()));
}

static LogicalResult lowerDot(Lowering &lowering, Operation *op) {
  Attribute numbers = op->getAttr("dot_dimension_numbers");
  Value lhs = lowering.get(op, 0), rhs = lowering.get(op, 1);
  RankedTensorType type = lowering.at(op).getType();
  OpBuilder &builder = lowering.getBuilder();
  Type element = getTensorType(lhs).getElementType();
  if (element != getTensorType(rhs).getElementType())
    return emitError(op->getLoc()) << "a product of " << element << " and "
                                   << getTensorType(rhs).getElementType()
                                   << " is not supported: convert one operand";
  if (type.getElementType() != element &&
      !(element.isBF16() && type.getElementType().isF32())) {
    element = type.getElementType();
    lhs = convertTo(builder, op->getLoc(), lhs, element);
    rhs = convertTo(builder, op->getLoc(), rhs, element);
  }
  return lowering.set(op,
                      builder.create<DotGeneralOp>(
                          op->getLoc(), type, lhs, rhs,
                          getNumbers(numbers, "lhs_batching_dimensions"),
                          getNumbers(numbers, "rhs_batching_dimensions"),
                          getNumbers(numbers, "lhs_contracting_dimensions"),
                          getNumbers(numbers, "rhs_contracting_dimensions")));
}

ArrayRef<OpLowering> shardc::getShapeLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.constant", lowerConstant, 0},
      {"stablehlo.broadcast_in_dim", lowerBroadcast, 1},
      {"stablehlo.reshape", lowerReshape, 1},
      {"stablehlo.transpose", lowerTranspose, 1},
      {"stablehlo.iota", lowerIota, 0},
      {"stablehlo.dot_general", lowerDot, 2},
  };
  return table;
}
