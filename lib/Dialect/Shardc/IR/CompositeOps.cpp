//===- CompositeOps.cpp - Verifiers of the composites ---------------------===//
//
// Each verifier checks the numbered constraints of its op in
// ShardcCompositeOps.td.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

LogicalResult LinearOp::verify() {
  RankedTensorType x = getTensorType(getX()), w = getTensorType(getW());
  if (w.getRank() != 2 || x.getRank() < 2)
    return emitOpError("needs w of rank 2 and x of rank 2 or more, got ")
           << w << " and " << x;
  int64_t in = w.getDimSize(0), out = w.getDimSize(1);
  if (x.getShape().back() != in)
    return emitOpError("last dimension of x must be the first of w, got ")
           << x.getShape().back() << " and " << in;
  Type element = x.getElementType();
  if (w.getElementType() != element)
    return emitOpError("x and w must have the same element type, got ")
           << element << " and " << w.getElementType();
  if (Value bias = getB())
    if (auto expected = RankedTensorType::get({out}, element);
        bias.getType() != expected)
      return emitOpError("bias must be ")
             << expected << ", got " << bias.getType();
  SmallVector<int64_t> shape(x.getShape());
  shape.back() = out;
  if (auto expected = RankedTensorType::get(shape, element);
      getResult().getType() != expected)
    return emitOpError("result must be ")
           << expected << ", got " << getResult().getType();
  return success();
}

LogicalResult LayerNormOp::verify() {
  RankedTensorType x = getTensorType(getX());
  if (x.getRank() < 1)
    return emitOpError("needs x of rank 1 or more, got ") << x;
  auto expected =
      RankedTensorType::get({x.getShape().back()}, x.getElementType());
  if (getScale().getType() != expected)
    return emitOpError("scale and bias must be ")
           << expected << ", got " << getScale().getType();
  double epsilon = getEpsilon().convertToDouble();
  if (!(epsilon > 0) || !std::isfinite(epsilon))
    return emitOpError("epsilon must be positive and finite, got ") << epsilon;
  return success();
}

LogicalResult DropoutOp::verify() {
  double rate = getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return emitOpError("rate must be in [0, 1), got ") << rate;
  return success();
}

LogicalResult SoftmaxCrossEntropyOp::verify() {
  RankedTensorType logits = getTensorType(getLogits()),
                   labels = getTensorType(getLabels());
  if (logits.getRank() != 2 || labels.getRank() != 1 ||
      labels.getDimSize(0) != logits.getDimSize(0))
    return emitOpError("needs logits [rows, classes] and labels [rows], got ")
           << logits << " and " << labels;
  auto expected = RankedTensorType::get({}, logits.getElementType());
  if (getLoss().getType() != expected)
    return emitOpError("result must be ")
           << expected << ", got " << getLoss().getType();
  return success();
}

LogicalResult MseOp::verify() {
  auto expected = RankedTensorType::get(
      {}, getTensorType(getPrediction()).getElementType());
  if (getLoss().getType() != expected)
    return emitOpError("result must be ")
           << expected << ", got " << getLoss().getType();
  return success();
}
