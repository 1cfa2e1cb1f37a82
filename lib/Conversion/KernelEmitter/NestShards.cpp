//===- NestShards.cpp - What a device computes by its place ---------------===//
//
// Values that depend on which shard of a tensor the device has: where its
// slices start, what it numbers, draws or masks.
//
//===----------------------------------------------------------------------===//

#include "shardc/Conversion/KernelEmitter/NestEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace shardc {

Value NestEmitter::loadContext(int64_t position) {
  Value address =
      getAddress(context, builder.getI64Type(), constantI64(position));
  return builder.create<LLVM::LoadOp>(loc, builder.getI64Type(), address, 8);
}

Value NestEmitter::getShardIndex(ArrayRef<StringAttr> axes) {
  Value result;
  for (StringAttr axis : axes) {
    int64_t number = mesh.getAxisIndex(axis.getValue());
    coordinateAxes.insert(number);
    Value coordinate = loadContext(number);
    if (!result) {
      result = coordinate;
      continue;
    }
    Value size = constantI64(mesh.getAxisSize(axis.getValue()));
    result = math.add(math.mul(result, size), coordinate);
  }
  return result ? result : constantI64(0);
}

Value NestEmitter::getPlaces(const Index &index) {
  Value base = index.value ? index.value : constantI64(0);
  if (!index.lanes)
    return base;
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < math.numLanes; ++lane)
    lanes.push_back(lane);
  auto type = VectorType::get({math.numLanes}, builder.getI64Type());
  Value offsets = builder.create<arith::ConstantOp>(
      loc, DenseElementsAttr::get(type, ArrayRef<int64_t>(lanes)));
  return math.add(math.splat(base), offsets);
}

Value NestEmitter::getGlobalPlaces(
    Value result, int64_t dim, const Index &index,
    std::optional<ShardingAttr> shard,
    std::optional<ArrayRef<int64_t>> microbatch) {
  Value places = getPlaces(index);
  int64_t size = getShape(result)[dim];
  if (shard)
    places = math.add(places, math.mul(getShardIndex(shard->getAxes(dim)),
                                       constantI64(size)));
  if (!microbatch)
    return places;
  int64_t count = microbatch->front(), rows = microbatch->back();
  // places / rows · count · rows + run · rows + places mod rows.
  Value block = builder.create<arith::DivUIOp>(loc, places,
                                               math.constantLike(places, rows));
  Value before = math.mul(block, math.constantLike(places, (count - 1) * rows));
  Value run = loadContext(mesh.getAxes().size() + 1);
  Value start = math.mul(run, constantI64(rows));
  return math.add(math.add(places, before), start);
}

Value NestEmitter::computeIota(IotaOp op, ArrayRef<Index> index) {
  int64_t dim = op.getDim();
  Value places = getGlobalPlaces(op.getResult(), dim, index[dim], op.getShard(),
                                 op.getMicrobatch());
  Type type = getComputeType(op.getResult());
  // Dimensions are far below 2^31; conversion from i32 has instructions.
  if (isa<FloatType>(type))
    places = math.convert(places, builder.getI32Type());
  return math.convert(places, type);
}

Value NestEmitter::computeMask(MaskOp op, ArrayRef<Index> index) {
  Value value = evaluate(op.getOperand(), index);
  Type type = getComputeType(op.getResult());
  double fillValue = op.getFill().convertToDouble();
  Value fill;
  if (isa<FloatType>(type))
    fill = math.constant(type, fillValue);
  else
    fill = fillValue < -9.0e18 ? getIdentity(ReductionKind::Max, type)
                               : math.constantInt(type, int64_t(fillValue));
  Type i32 = builder.getI32Type();
  for (int64_t dim : op.getDims()) {
    int64_t size = getShape(op.getResult())[dim];
    int64_t globalSize = op.getGlobalShape()[dim];
    ArrayRef<StringAttr> axes = op.getShard().getAxes(dim);
    if (mesh.getNumShards(axes) * size == globalSize)
      continue;
    Value valid = math.sub(constantI64(globalSize),
                           math.mul(getShardIndex(axes), constantI64(size)));
    Value places = math.convert(getPlaces(index[dim]), i32);
    Value inside = math.compareInt(arith::CmpIPredicate::slt, places,
                                   math.convert(valid, i32));
    value = math.select(inside, value, fill);
  }
  return value;
}

Value NestEmitter::computeSlice(SliceOp op, ArrayRef<Index> index) {
  int64_t dim = op.getDim();
  int64_t size = getShape(op.getResult())[dim];
  int64_t whole = getShape(op.getOperand())[dim];
  SmallVector<StringAttr> axes;
  for (Attribute axis : op.getAxes())
    axes.push_back(cast<StringAttr>(axis));
  IndexList operandIndex(index.begin(), index.end());
  Index &place = operandIndex[dim];
  unsigned level = place.level;
  place.value = atLevel(level, [&]() -> Value {
    Value start = math.mul(getShardIndex(axes), constantI64(size));
    return place.value ? math.add(start, place.value) : start;
  });
  // Trailing shards reach beyond the end; what they read there is padding.
  if (mesh.getNumShards(axes) * size != whole)
    place.last = whole - 1;
  return evaluate(op.getOperand(), operandIndex);
}

/// The full product of unsigned 32-bit numbers: its halves.
static std::pair<Value, Value> multiplyWide(OpBuilder &builder, Location loc,
                                            VectorMath &math, Value value,
                                            int64_t factor) {
  Type i64 = VectorMath::getTypeLike(builder.getI64Type(), value);
  Value wide = builder.create<arith::ExtUIOp>(loc, i64, value);
  Value product =
      math.mul(wide, math.constantLike(wide, static_cast<double>(factor)));
  Value high = builder.create<arith::ShRUIOp>(loc, product,
                                              math.constantLike(product, 32));
  return {builder.create<arith::TruncIOp>(loc, value.getType(), high),
          builder.create<arith::TruncIOp>(loc, value.getType(), product)};
}

Value NestEmitter::computeRandom(RandomUniformOp op, ArrayRef<Index> index) {
  ArrayRef<int64_t> shape = getShape(op.getResult());
  SmallVector<int64_t> globalShape(shape);
  if (auto given = op.getGlobalShape())
    globalShape.assign(given->begin(), given->end());
  // The global row-major index of each element.
  Value linear = constantI64(0);
  int64_t stride = 1;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    Value place =
        getGlobalPlaces(op.getResult(), dim, index[dim], op.getShard(),
                        dim == 0 ? op.getMicrobatch() : std::nullopt);
    linear = math.add(linear, math.mul(place, constantI64(stride)));
    stride *= globalShape[dim];
  }
  Type i32 = builder.getI32Type();
  auto lowWord = [&](Value value) { return math.convert(value, i32); };
  auto highWord = [&](Value value) {
    Value shifted = builder.create<arith::ShRUIOp>(
        loc, value, math.constantLike(value, 32));
    return math.convert(shifted, i32);
  };
  Value seed = loadContext(mesh.getAxes().size());
  Value step = evaluate(op.getStep(), {});
  Value stream = math.constantInt(i32, int32_t(op.getStream()));
  Value like = lowWord(linear);
  bool hasLanes = VectorMath::isVector(like);
  auto shaped = [&](Value value) {
    return hasLanes ? math.splat(value) : value;
  };
  Value counter[] = {like, highWord(linear), shaped(step), shaped(stream)};
  Value key[] = {shaped(lowWord(seed)), shaped(highWord(seed))};
  auto exclusiveOr = [&](Value lhs, Value rhs) -> Value {
    return builder.create<arith::XOrIOp>(loc, lhs, rhs);
  };
  // Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key[0] = math.add(
          key[0], shaped(math.constantInt(i32, int32_t(uint32_t(0x9E3779B9)))));
      key[1] = math.add(
          key[1], shaped(math.constantInt(i32, int32_t(uint32_t(0xBB67AE85)))));
    }
    auto [high0, low0] =
        multiplyWide(builder, loc, math, counter[0], 0xD2511F53);
    auto [high1, low1] =
        multiplyWide(builder, loc, math, counter[2], 0xCD9E8D57);
    counter[0] = exclusiveOr(exclusiveOr(high1, counter[1]), key[0]);
    counter[1] = low1;
    counter[2] = exclusiveOr(exclusiveOr(high0, counter[3]), key[1]);
    counter[3] = low0;
  }
  Value bits = builder.create<arith::ShRUIOp>(loc, counter[0],
                                              math.constantLike(counter[0], 8));
  Value number = math.convert(bits, builder.getF32Type());
  return math.mul(number, math.constantLike(number, 0x1p-24));
}

} // namespace shardc
