//===- EvaluateOp.cpp - Core ops by their definitions ---------------------===//

#include "shardc/Interpreter/EvaluateOp.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "Elementwise.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace shardc;

//===----------------------------------------------------------------------===//
// Shapes, contraction and reduction
//===----------------------------------------------------------------------===//

/// Result element `place` is the element of `source` at the sum of coordinates
/// times `strides`.
static Tensor gather(const Tensor &source, ArrayRef<int64_t> shape,
                     ArrayRef<int64_t> strides) {
  Tensor result(shape, 0);
  forEachPlace(shape, strides,
               [&](ArrayRef<int64_t>, int64_t linear, int64_t offset) {
                 result.data[linear] = source.data[offset];
               });
  return result;
}

static Tensor broadcast(BroadcastOp op, const Tensor &operand) {
  SmallVector<int64_t> strides(getTensorType(op.getResult()).getRank(), 0);
  for (auto [dim, stride] :
       llvm::zip_equal(op.getDims(), getStrides(operand.shape)))
    strides[dim] = stride;
  return gather(operand, getTensorType(op.getResult()).getShape(), strides);
}

static Tensor transpose(TransposeOp op, const Tensor &operand) {
  SmallVector<int64_t, 3> from = getStrides(operand.shape);
  SmallVector<int64_t> strides;
  for (int64_t dim : op.getPermutation())
    strides.push_back(from[dim]);
  return gather(operand, getTensorType(op.getResult()).getShape(), strides);
}

/// Copies `part` into `whole`: element i along dimension d becomes
/// `starts[d] + i * strides[d]`. With `isReverse` the elements of `whole` there
/// become those of `part`.
static void copyPart(Tensor &part, Tensor &whole, ArrayRef<int64_t> starts,
                     ArrayRef<int64_t> strides, bool isReverse) {
  SmallVector<int64_t, 3> steps = getStrides(whole.shape);
  int64_t first = 0;
  for (size_t dim = 0; dim < steps.size(); ++dim) {
    first += starts[dim] * steps[dim];
    steps[dim] *= strides[dim];
  }
  forEachPlace(part.shape, steps,
               [&](ArrayRef<int64_t>, int64_t linear, int64_t offset) {
                 double &inPart = part.data[linear],
                        &inWhole = whole.data[first + offset];
                 (isReverse ? inPart : inWhole) = isReverse ? inWhole : inPart;
               });
}

static Tensor extractSlice(ExtractSliceOp op, Tensor operand) {
  Tensor result(getTensorShape(op.getResult()), 0);
  copyPart(result, operand, op.getStarts(), op.getStrides(),
           /*isReverse=*/true);
  return result;
}

static Tensor pad(PadOp op, Tensor operand) {
  Tensor result(getTensorShape(op.getResult()), op.getFill().convertToDouble());
  SmallVector<int64_t> strides(op.getInterior());
  for (int64_t &stride : strides)
    ++stride;
  copyPart(operand, result, op.getLow(), strides, /*isReverse=*/false);
  return result;
}

static Tensor concatenate(ConcatenateOp op, ArrayRef<const Tensor *> operands) {
  Tensor result(getTensorShape(op.getResult()), 0);
  SmallVector<int64_t> starts(result.shape.size(), 0),
      strides(result.shape.size(), 1);
  for (const Tensor *operand : operands) {
    Tensor part = *operand;
    copyPart(part, result, starts, strides, /*isReverse=*/false);
    starts[op.getDim()] += part.shape[op.getDim()];
  }
  return result;
}

static Tensor permuteRows(PermuteRowsOp op, const Tensor &operand) {
  Tensor result = operand;
  int64_t dim = op.getDim(), row = getStrides(operand.shape)[dim];
  forEachPlace(operand.shape, getStrides(operand.shape),
               [&](ArrayRef<int64_t> place, int64_t linear, int64_t) {
                 int64_t moved = op.getSources()[place[dim]] - place[dim];
                 result.data[linear] = operand.data[linear + moved * row];
               });
  return result;
}

/// `tensor` as a value of `op`'s result: a sum of bools is whether any is true.
static Tensor asResult(Operation *op, Tensor tensor) {
  if (getTensorType(op->getResult(0)).getElementType().isInteger(1))
    for (double &element : tensor.data)
      element = element != 0;
  return tensor;
}

static Tensor reduce(ReduceOp op, const Tensor &operand) {
  bool isSum = op.getKind() == ReductionKind::Sum;
  bool isBool = getTensorType(op.getResult()).getElementType().isInteger(1);
  Tensor result(getTensorType(op.getResult()).getShape(),
                isSum || isBool ? 0 : -std::numeric_limits<double>::infinity());
  SmallVector<int64_t, 3> kept = getStrides(result.shape);
  SmallVector<int64_t> strides(operand.shape.size(), 0);
  const int64_t *next = kept.begin();
  for (size_t dim = 0; dim < operand.shape.size(); ++dim)
    if (!llvm::is_contained(op.getDims(), int64_t(dim)))
      strides[dim] = *next++;
  forEachPlace(operand.shape, strides,
               [&](ArrayRef<int64_t>, int64_t linear, int64_t offset) {
                 double &element = result.data[offset];
                 element = isSum ? element + operand.data[linear]
                                 : maximum(element, operand.data[linear]);
               });
  return result;
}

/// Offsets into an operand of all elements of `sizes` with `strides`.
static std::vector<int64_t> getOffsets(ArrayRef<int64_t> sizes,
                                       ArrayRef<int64_t> strides) {
  std::vector<int64_t> offsets;
  forEachPlace(sizes, strides, [&](ArrayRef<int64_t>, int64_t, int64_t offset) {
    offsets.push_back(offset);
  });
  return offsets;
}

static Tensor contract(DotGeneralOp op, const Tensor &lhs, const Tensor &rhs) {
  SmallVector<int64_t, 3> left = getStrides(lhs.shape),
                          right = getStrides(rhs.shape);
  // Strides of both operands along the dimensions of the result, and along the
  // contracted ones.
  SmallVector<int64_t> leftStrides, rightStrides, sizes, leftInner, rightInner;
  for (auto [l, r] :
       llvm::zip_equal(op.getLhsBatching(), op.getRhsBatching())) {
    leftStrides.push_back(left[l]);
    rightStrides.push_back(right[r]);
  }
  for (int64_t dim : op.getLhsFree()) {
    leftStrides.push_back(left[dim]);
    rightStrides.push_back(0);
  }
  for (int64_t dim : op.getRhsFree()) {
    leftStrides.push_back(0);
    rightStrides.push_back(right[dim]);
  }
  for (auto [l, r] :
       llvm::zip_equal(op.getLhsContracting(), op.getRhsContracting())) {
    sizes.push_back(lhs.shape[l]);
    leftInner.push_back(left[l]);
    rightInner.push_back(right[r]);
  }
  Tensor result(getTensorType(op.getResult()).getShape(), 0);
  std::vector<int64_t> leftOuter = getOffsets(result.shape, leftStrides),
                       rightOuter = getOffsets(result.shape, rightStrides),
                       leftTerms = getOffsets(sizes, leftInner),
                       rightTerms = getOffsets(sizes, rightInner);
  for (size_t i = 0; i < result.data.size(); ++i)
    for (size_t k = 0; k < leftTerms.size(); ++k)
      result.data[i] += lhs.data[leftOuter[i] + leftTerms[k]] *
                        rhs.data[rightOuter[i] + rightTerms[k]];
  return result;
}

//===----------------------------------------------------------------------===//
// Constants and global indices
//===----------------------------------------------------------------------===//

static FailureOr<Tensor> getConstant(ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return op.emitOpError("has a value that the reference interpreter cannot "
                          "read: expected dense<...>");
  Tensor result(elements.getType().getShape(), 0);
  auto convert = [](auto value) {
    if constexpr (std::is_same_v<decltype(value), APFloat>) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
      return value.convertToDouble();
    } else {
      return value.getBitWidth() == 1 ? double(value.getZExtValue())
                                      : double(value.getSExtValue());
    }
  };
  if (isa<FloatType>(elements.getElementType()))
    llvm::transform(elements.getValues<APFloat>(), result.data.begin(),
                    convert);
  else
    llvm::transform(elements.getValues<APInt>(), result.data.begin(), convert);
  return result;
}

/// By dimension the global coordinate of each position in the shard of
/// `device`; the position itself without a sharding.
static std::vector<std::vector<int64_t>>
getElements(std::optional<ShardingAttr> shard, ArrayRef<int64_t> local,
            const Devices &devices, int64_t device) {
  std::vector<std::vector<int64_t>> elements;
  for (size_t dim = 0; dim < local.size(); ++dim) {
    AxisList axes;
    if (shard)
      axes = devices.getAxes(shard->getAxes(dim));
    elements.push_back(devices.getElements(device, axes, local[dim]));
  }
  return elements;
}

/// The row of the batch for `row` of a microbatch. `attribute` is that of an op
/// in a microbatch: [number of microbatches, rows taken at once].
static int64_t getBatchRow(int64_t row,
                           std::optional<ArrayRef<int64_t>> attribute,
                           const MicrobatchRows &microbatch) {
  if (!attribute)
    return row;
  if (!microbatch.rows.empty())
    return microbatch.rows[row];
  int64_t count = (*attribute)[0], rows = (*attribute)[1];
  return row / rows * count * rows + microbatch.run * rows + row % rows;
}

static Tensor getIota(IotaOp op, const Devices &devices, int64_t device,
                      const MicrobatchRows &microbatch) {
  Tensor result(getTensorType(op.getResult()).getShape(), 0);
  std::vector<std::vector<int64_t>> elements =
      getElements(op.getShard(), result.shape, devices, device);
  int64_t dim = op.getDim();
  forEachPlace(result.shape, getStrides(result.shape),
               [&](ArrayRef<int64_t> place, int64_t linear, int64_t) {
                 result.data[linear] =
                     double(getBatchRow(elements[dim][place[dim]],
                                        op.getMicrobatch(), microbatch));
               });
  return result;
}

static Tensor scatterRows(ScatterRowsOp op, const Tensor &operand,
                          const MicrobatchRows &microbatch) {
  Tensor result(getTensorShape(op.getResult()), 0);
  int64_t rows = operand.shape[0], size = getStrides(operand.shape)[0];
  for (int64_t row = 0; row < rows; ++row) {
    int64_t place = microbatch.rows.empty() ? microbatch.run * rows + row
                                            : microbatch.rows[row];
    std::copy_n(operand.data.begin() + row * size, size,
                result.data.begin() + place * size);
  }
  return result;
}

static Tensor getRandom(RandomUniformOp op, double step, const Devices &devices,
                        int64_t device, const MicrobatchRows &microbatch) {
  Tensor result(getTensorType(op.getResult()).getShape(), 0);
  std::vector<std::vector<int64_t>> elements =
      getElements(op.getShard(), result.shape, devices, device);
  SmallVector<int64_t, 3> global = result.shape;
  if (op.getGlobalShape())
    global.assign(op.getGlobalShape()->begin(), op.getGlobalShape()->end());
  SmallVector<int64_t, 3> strides = getStrides(global);
  forEachPlace(result.shape, getStrides(result.shape),
               [&](ArrayRef<int64_t> place, int64_t linear, int64_t) {
                 uint64_t index = 0;
                 for (size_t dim = 0; dim < place.size(); ++dim) {
                   int64_t element = elements[dim][place[dim]];
                   if (dim == 0)
                     element =
                         getBatchRow(element, op.getMicrobatch(), microbatch);
                   index += element * strides[dim];
                 }
                 // SplitMix64 (Steele et al., OOPSLA 2014).
                 uint64_t bits = index + (uint64_t(step) << 40) +
                                 (uint64_t(op.getStream()) << 56);
                 bits *= 0x9E3779B97F4A7C15u;
                 bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
                 bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
                 result.data[linear] = std::ldexp(double(bits >> 40), -24);
               });
  return result;
}

static Tensor mask(MaskOp op, const Tensor &operand, const Devices &devices,
                   int64_t device) {
  Tensor result = operand;
  std::vector<std::vector<int64_t>> elements =
      getElements(op.getShard(), operand.shape, devices, device);
  forEachPlace(operand.shape, getStrides(operand.shape),
               [&](ArrayRef<int64_t> place, int64_t linear, int64_t) {
                 for (int64_t dim : op.getDims())
                   if (elements[dim][place[dim]] >= op.getGlobalShape()[dim])
                     result.data[linear] = op.getFill().convertToDouble();
               });
  return result;
}

//===----------------------------------------------------------------------===//
// All core ops
//===----------------------------------------------------------------------===//

bool shardc::isCoreOp(Operation *op) {
  return getUnary(op) || getBinary(op) ||
         isa<SelectOp, BroadcastOp, TransposeOp, ReshapeOp, ExtractSliceOp,
             PadOp, ConcatenateOp, PermuteRowsOp, ReduceOp, DotGeneralOp,
             ConstantOp, IotaOp, RandomUniformOp, MaskOp, ScatterRowsOp>(op);
}

FailureOr<Tensor> shardc::evaluateOp(Operation *op,
                                     ArrayRef<const Tensor *> operands,
                                     const Devices &devices, int64_t device,
                                     const MicrobatchRows &microbatch) {
  if (UnaryFunction function = getUnary(op)) {
    Tensor result = *operands[0];
    llvm::transform(result.data, result.data.begin(), function);
    return result;
  }
  if (BinaryFunction function = getBinary(op)) {
    Tensor result = *operands[0];
    for (size_t i = 0; i < result.data.size(); ++i)
      result.data[i] = function(result.data[i], operands[1]->data[i]);
    return asResult(op, std::move(result));
  }
  return llvm::TypeSwitch<Operation *, FailureOr<Tensor>>(op)
      .Case<SelectOp>([&](auto) {
        Tensor result = *operands[0];
        for (size_t i = 0; i < result.data.size(); ++i)
          result.data[i] = operands[result.data[i] != 0 ? 1 : 2]->data[i];
        return result;
      })
      .Case<BroadcastOp>(
          [&](BroadcastOp op) { return broadcast(op, *operands[0]); })
      .Case<TransposeOp>(
          [&](TransposeOp op) { return transpose(op, *operands[0]); })
      .Case<ReshapeOp>([&](ReshapeOp op) {
        Tensor result = *operands[0];
        ArrayRef<int64_t> shape = getTensorType(op.getResult()).getShape();
        result.shape.assign(shape.begin(), shape.end());
        return result;
      })
      .Case<ExtractSliceOp>(
          [&](ExtractSliceOp op) { return extractSlice(op, *operands[0]); })
      .Case<PadOp>([&](PadOp op) { return pad(op, *operands[0]); })
      .Case<ConcatenateOp>(
          [&](ConcatenateOp op) { return concatenate(op, operands); })
      .Case<PermuteRowsOp>(
          [&](PermuteRowsOp op) { return permuteRows(op, *operands[0]); })
      .Case<ReduceOp>(
          [&](ReduceOp op) { return asResult(op, reduce(op, *operands[0])); })
      .Case<DotGeneralOp>([&](DotGeneralOp op) {
        return asResult(op, contract(op, *operands[0], *operands[1]));
      })
      .Case<ConstantOp>([&](ConstantOp op) { return getConstant(op); })
      .Case<IotaOp>(
          [&](IotaOp op) { return getIota(op, devices, device, microbatch); })
      .Case<RandomUniformOp>([&](RandomUniformOp op) {
        return getRandom(op, operands[0]->data[0], devices, device, microbatch);
      })
      .Case<ScatterRowsOp>([&](ScatterRowsOp op) {
        return scatterRows(op, *operands[0], microbatch);
      })
      .Case<MaskOp>(
          [&](MaskOp op) { return mask(op, *operands[0], devices, device); })
      .Default([](Operation *op) {
        return op->emitOpError(
            "is not an op that the reference interpreter knows");
      });
}
