//===- NestEmitter.cpp - Tensor values at an index ------------------------===//

#include "shardc/Conversion/KernelEmitter/NestEmitter.h"

#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc {

NestEmitter::NestEmitter(OpBuilder &builder, Location loc, MeshOp mesh,
                         Block *entry, Value context, int64_t bufferAlignment)
    : loops(builder, loc, entry),
      memory(loops, cast<LLVM::LLVMPointerType>(context.getType()),
             bufferAlignment),
      device(loops, mesh, context), builder(builder), loc(loc),
      math(loops.math), functions(builder, loc, math) {}

void NestEmitter::startNest(int64_t numLanes, bool hasLinearPlaces) {
  loops.startNest(numLanes);
  isFlat = hasLinearPlaces;
}

static LoopBuilder::Key getKey(int64_t device, Value tensor,
                               ArrayRef<Index> index) {
  LoopBuilder::Key key{reinterpret_cast<const void *>(device),
                       tensor.getAsOpaquePointer()};
  for (const Index &dim : index) {
    key.push_back(dim.value.getAsOpaquePointer());
    key.push_back(reinterpret_cast<const void *>(dim.lanes * 2));
    key.push_back(reinterpret_cast<const void *>(dim.last));
    if (!dim.isSpread())
      continue;
    for (int64_t number : {dim.start, dim.repeat, dim.period})
      key.push_back(reinterpret_cast<const void *>(number));
  }
  return key;
}

static unsigned getLevel(ArrayRef<Index> index) {
  unsigned level = 0;
  for (const Index &dim : index)
    level = std::max(level, dim.level);
  return level;
}

Value NestEmitter::evaluate(Value tensor, ArrayRef<Index> fullIndex) {
  IndexList index = dropUnitDims(tensor, fullIndex);
  LoopBuilder::Key key = getKey(memory.getDevice(), tensor, index);
  // A value preset in an inner scope is found before one is built outside.
  if (Value value = loops.find(key))
    return value;
  return loops.atLevel(getLevel(index), [&] {
    Value value = compute(tensor, index);
    loops.remember(key, value);
    return value;
  });
}

void NestEmitter::preset(Value tensor, ArrayRef<Index> fullIndex, Value value) {
  IndexList index = dropUnitDims(tensor, fullIndex);
  loops.remember(getKey(memory.getDevice(), tensor, index), value);
}

Value NestEmitter::compute(Value tensor, ArrayRef<Index> index) {
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return memory.load(tensor, index);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<ConstantOp>([&](auto op) { return computeConstant(op, index); })
      .Case<BroadcastOp>([&](BroadcastOp op) {
        IndexList operandIndex;
        for (int64_t dim : op.getDims())
          operandIndex.push_back(index[dim]);
        // All elements of a flat nest see the one element.
        if (isFlat)
          operandIndex.assign(operandIndex.size(), Index());
        return evaluate(op.getOperand(), operandIndex);
      })
      .Case<TransposeOp>([&](TransposeOp op) {
        IndexList operandIndex(index.size());
        for (auto [dim, source] : llvm::enumerate(op.getPermutation()))
          operandIndex[source] = index[dim];
        return evaluate(op.getOperand(), operandIndex);
      })
      .Case<ReshapeOp>([&](auto op) { return computeReshape(op, index); })
      .Case<ExtractSliceOp>(
          [&](auto op) { return computeExtractSlice(op, index); })
      .Case<PadOp>([&](auto op) { return computePad(op, index); })
      .Case<ConcatenateOp>(
          [&](auto op) { return computeConcatenate(op, index); })
      .Case<PermuteRowsOp>(
          [&](auto op) { return computePermuteRows(op, index); })
      .Case<IotaOp>([&](auto op) { return computeIota(op, index); })
      .Case<RandomUniformOp>([&](auto op) { return computeRandom(op, index); })
      .Case<MaskOp>([&](auto op) { return computeMask(op, index); })
      .Case<SliceOp>([&](auto op) { return computeSlice(op, index); })
      .Case<ReduceOp>([&](auto op) { return computeReduce(op, index); })
      .Case<DotGeneralOp>([&](auto op) { return computeDot(op, index); })
      .Case<CompareOp>([&](CompareOp op) {
        Value lhs = evaluate(op.getLhs(), index);
        return computeCompare(op, lhs, evaluate(op.getRhs(), index));
      })
      .Case<SelectOp>([&](SelectOp op) {
        Value predicate = evaluate(op.getPredicate(), index);
        Value onTrue = evaluate(op.getOnTrue(), index);
        return math.select(predicate, onTrue, evaluate(op.getOnFalse(), index));
      })
      .Case<ConvertOp>([&](ConvertOp op) {
        return computeConvert(op, evaluate(op.getOperand(), index));
      })
      .Default([&](Operation *op) {
        Value lhs = evaluate(op->getOperand(0), index);
        if (op->getNumOperands() == 1)
          return computeUnary(op, lhs);
        return computeBinary(op, lhs, evaluate(op->getOperand(1), index));
      });
}

LogicalResult checkHasValue(Operation *op) {
  bool isKnown =
      isa<ConstantOp, BroadcastOp, TransposeOp, ReshapeOp, ExtractSliceOp,
          PadOp, ConcatenateOp, PermuteRowsOp, IotaOp, RandomUniformOp, MaskOp,
          SliceOp, ReduceOp, DotGeneralOp, CompareOp, SelectOp, ConvertOp,
          AddOp, SubOp, MulOp, DivOp, RemainderOp, PowerOp, MaxOp, MinOp, AndOp,
          OrOp, XorOp, ShiftLeftOp, ShiftRightLogicalOp, ShiftRightArithmeticOp,
          BitcastOp, NegOp, AbsOp, SignOp, ExpOp, Expm1Op, LogOp, Log1pOp,
          SqrtOp, RsqrtOp, TanhOp, ErfOp, CosOp, SinOp, FloorOp,
          StopGradientOp>(op);
  if (!isKnown)
    return op->emitOpError("cannot be computed in a kernel");
  return success();
}

Value NestEmitter::computeUnary(Operation *op, Value x) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<NegOp>([&](auto) { return math.neg(x); })
      .Case<AbsOp>([&](auto) { return math.abs(x); })
      .Case<SignOp>([&](auto) { return math.sign(x); })
      .Case<ExpOp>([&](auto) { return functions.exp(x); })
      .Case<Expm1Op>([&](auto) { return functions.expm1(x); })
      .Case<LogOp>([&](auto) { return functions.log(x); })
      .Case<Log1pOp>([&](auto) { return functions.log1p(x); })
      .Case<SqrtOp>([&](auto) { return math.sqrt(x); })
      .Case<RsqrtOp>([&](auto) { return math.rsqrt(x); })
      .Case<TanhOp>([&](auto) { return functions.tanh(x); })
      .Case<ErfOp>([&](auto) { return functions.erf(x); })
      .Case<CosOp>([&](auto) { return functions.cos(x); })
      .Case<SinOp>([&](auto) { return functions.sin(x); })
      .Case<FloorOp>([&](auto) { return math.floor(x); })
      .Case<BitcastOp>([&](BitcastOp op) {
        return math.bitcast(x, getComputeType(op.getResult()));
      })
      .Case<StopGradientOp>([&](auto) { return x; });
}

Value NestEmitter::computeBinary(Operation *op, Value lhs, Value rhs) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AddOp>([&](auto) { return math.add(lhs, rhs); })
      .Case<SubOp>([&](auto) { return math.sub(lhs, rhs); })
      .Case<MulOp>([&](auto) { return math.mul(lhs, rhs); })
      .Case<DivOp>([&](auto) { return math.div(lhs, rhs); })
      .Case<RemainderOp>([&](auto) { return functions.remainder(lhs, rhs); })
      .Case<PowerOp>([&](auto) { return functions.power(lhs, rhs); })
      .Case<MaxOp>([&](auto) { return math.max(lhs, rhs); })
      .Case<MinOp>([&](auto) { return math.min(lhs, rhs); })
      .Case<AndOp>([&](auto) { return math.bitAnd(lhs, rhs); })
      .Case<OrOp>([&](auto) { return math.bitOr(lhs, rhs); })
      .Case<XorOp>([&](auto) { return math.bitXor(lhs, rhs); })
      .Case<ShiftLeftOp>([&](auto) { return math.shiftLeft(lhs, rhs); })
      .Case<ShiftRightLogicalOp>(
          [&](auto) { return math.shiftRightLogical(lhs, rhs); })
      .Case<ShiftRightArithmeticOp>(
          [&](auto) { return math.shiftRightArithmetic(lhs, rhs); });
}

Value NestEmitter::computeCompare(CompareOp op, Value lhs, Value rhs) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  Type element = VectorMath::getElement(lhs);
  bool isBool = element.isInteger(1);
  if (isa<FloatType>(element)) {
    F predicates[] = {F::OEQ, F::UNE, F::OLT, F::OLE, F::OGT, F::OGE};
    return math.compareFloat(predicates[size_t(op.getKind())], lhs, rhs);
  }
  I predicates[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
  I unsignedPredicates[] = {I::eq, I::ne, I::ult, I::ule, I::ugt, I::uge};
  return math.compareInt(
      (isBool ? unsignedPredicates : predicates)[size_t(op.getKind())], lhs,
      rhs);
}

Value NestEmitter::computeConvert(ConvertOp op, Value value) {
  Type element = getElementTypeOrSelf(op.getResult().getType());
  value = math.convert(value, getComputeType(op.getResult()));
  bool wasBF16 = getElementTypeOrSelf(op.getOperand().getType()).isBF16();
  return element.isBF16() && !wasBF16 ? math.roundToBF16(value) : value;
}

Value NestEmitter::computeConstant(ConstantOp op, ArrayRef<Index> index) {
  auto elements = cast<DenseElementsAttr>(op.getValue());
  Type type = getComputeType(op.getResult());
  auto toScalar = [&](auto value) -> Value {
    if constexpr (std::is_same_v<decltype(value), APFloat>) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
      return math.constant(type, value.convertToDouble());
    } else {
      return math.constantInt(type, type.isInteger(1) ? value.getZExtValue()
                                                      : value.getSExtValue());
    }
  };
  if (elements.isSplat()) {
    if (isa<FloatType>(elements.getElementType()))
      return toScalar(elements.getSplatValue<APFloat>());
    return toScalar(elements.getSplatValue<APInt>());
  }
  // Other constants are data of the shared object.
  memory.bindData(op.getResult(), elements);
  return memory.load(op.getResult(), index);
}

Value NestEmitter::computeReshape(ReshapeOp op, ArrayRef<Index> index) {
  Value operand = op.getOperand();
  ArrayRef<int64_t> from = getTensorShape(operand),
                    to = getTensorShape(op.getResult());
  auto isLong = [](int64_t size) { return size > 1; };
  auto fromLong = llvm::to_vector(llvm::make_filter_range(from, isLong));
  auto toLong = llvm::to_vector(llvm::make_filter_range(to, isLong));
  IndexList operandIndex(from.size());
  if (fromLong == toLong || isFlat) {
    // Only dimensions of size 1 come or go, or places are linear anyway: the
    // places keep their order, aligned at the last dimension.
    int64_t dim = to.size() - 1;
    for (int64_t source = from.size() - 1; source >= 0; --source) {
      if (from[source] == 1)
        continue;
      while (dim >= 0 && to[dim] == 1)
        --dim;
      if (dim < 0)
        break;
      operandIndex[source] = index[dim--];
    }
    return evaluate(operand, operandIndex);
  }
  Index linear;
  int64_t stride = 1, laneStride = 0, lanes = 0;
  for (int64_t dim = to.size() - 1; dim >= 0; --dim) {
    if (index[dim].lanes) {
      lanes = index[dim].lanes;
      laneStride = stride;
    }
    if (index[dim].value) {
      Index place = index[dim];
      place.lanes = 0;
      Index term = loops.mulIndex(place, stride);
      if (linear.value)
        term.value =
            builder.create<arith::AddIOp>(loc, linear.value, term.value);
      // The sum is built here, at the level of the whole index.
      linear = term;
      linear.level = loops.getLevel();
    }
    stride *= to[dim];
  }
  if (!operand.getDefiningOp())
    return memory.loadLinear(operand, linear.value, laneStride, lanes);
  assert(lanes == 0 && "a reshape of a computed value is not vectorised");
  return evaluate(operand, loops.delinearize(linear, from));
}

Value NestEmitter::computeExtractSlice(ExtractSliceOp op,
                                       ArrayRef<Index> index) {
  IndexList operandIndex;
  for (auto [place, start, stride] :
       llvm::zip_equal(index, op.getStarts(), op.getStrides())) {
    Index moved = loops.addIndex(loops.mulIndex(place, stride), start);
    if (place.last >= 0)
      moved.last = start + place.last * stride;
    operandIndex.push_back(moved);
  }
  return evaluate(op.getOperand(), operandIndex);
}

Value NestEmitter::computeFill(Value result, const APFloat &fill) {
  Type type = getComputeType(result);
  double value = fill.convertToDouble();
  if (isa<FloatType>(type))
    return math.constant(type, value);
  return value < -9.0e18 ? math.getIdentity(ReductionKind::Max, type)
                         : math.constantInt(type, int64_t(value));
}

Value NestEmitter::clampPlace(Value place, int64_t size, Value &isInside) {
  Value zero = loops.constantI64(0), last = loops.constantI64(size - 1);
  for (Value test : {math.compareInt(arith::CmpIPredicate::sge, place, zero),
                     math.compareInt(arith::CmpIPredicate::sle, place, last)})
    isInside = isInside
                   ? builder.createOrFold<arith::AndIOp>(loc, isInside, test)
                   : test;
  place = builder.createOrFold<arith::MaxSIOp>(loc, place, zero);
  return builder.createOrFold<arith::MinSIOp>(loc, place, last);
}

Value NestEmitter::computePad(PadOp op, ArrayRef<Index> index) {
  Value fill = computeFill(op.getResult(), op.getFill());
  Value isInside;
  IndexList operandIndex(index.begin(), index.end());
  for (auto [dim, place] : llvm::enumerate(operandIndex)) {
    if (op.isWhole(dim))
      continue;
    int64_t size = getTensorShape(op.getOperand())[dim];
    if (size == 0)
      return fill;
    int64_t stride = op.getInterior()[dim] + 1;
    Value step = loops.constantI64(stride);
    // The place counted from the first element, in elements.
    Value moved =
        math.sub(loops.getPlaces(place), loops.constantI64(op.getLow()[dim]));
    Value whole = clampPlace(moved, (size - 1) * stride + 1, isInside);
    Value element = builder.createOrFold<arith::DivUIOp>(loc, whole, step);
    Value isElement = math.compareInt(
        arith::CmpIPredicate::eq,
        builder.createOrFold<arith::MulIOp>(loc, element, step), whole);
    isInside = builder.createOrFold<arith::AndIOp>(loc, isInside, isElement);
    place = loops.makeIndex(element);
  }
  Value value = evaluate(op.getOperand(), operandIndex);
  return isInside ? math.select(isInside, value, fill) : value;
}

Value NestEmitter::computeConcatenate(ConcatenateOp op, ArrayRef<Index> index) {
  int64_t dim = op.getDim(), start = 0;
  Value place = loops.getPlaces(index[dim]), result;
  for (Value operand : op.getOperands()) {
    int64_t size = getTensorShape(operand)[dim];
    if (size == 0)
      continue;
    Value isInside;
    IndexList operandIndex(index.begin(), index.end());
    operandIndex[dim] = loops.makeIndex(
        clampPlace(math.sub(place, loops.constantI64(start)), size, isInside));
    Value value = evaluate(operand, operandIndex);
    result = result ? math.select(isInside, value, result) : value;
    start += size;
  }
  return result;
}

Value NestEmitter::computePermuteRows(PermuteRowsOp op, ArrayRef<Index> index) {
  ArrayRef<int64_t> sources = op.getSources();
  Value place = loops.getPlaces(index[op.getDim()]), source;
  // Neighbours that come from neighbours are one run.
  for (size_t row = 0; row < sources.size(); ++row) {
    if (row > 0 && sources[row] == sources[row - 1] + 1)
      continue;
    int64_t start = row;
    Value moved = builder.createOrFold<arith::AddIOp>(
        loc, place, loops.constantI64(sources[row] - start));
    if (!source) {
      source = moved;
      continue;
    }
    Value isBehind = math.compareInt(arith::CmpIPredicate::sge, place,
                                     loops.constantI64(start));
    source = math.select(isBehind, moved, source);
  }
  // Lanes may be behind the last row.
  Value isInside;
  IndexList operandIndex(index.begin(), index.end());
  if (source)
    operandIndex[op.getDim()] =
        loops.makeIndex(clampPlace(source, sources.size(), isInside));
  return evaluate(op.getOperand(), operandIndex);
}

Value NestEmitter::computeReduce(ReduceOp op, ArrayRef<Index> index) {
  ArrayRef<int64_t> shape = getTensorShape(op.getOperand());
  SmallVector<int64_t> dims(op.getDims()), sizes;
  for (int64_t dim : dims)
    sizes.push_back(shape[dim]);
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  bool hasLanes = llvm::any_of(index, [](const Index &i) { return i.lanes; });
  Type type = getComputeType(op.getResult());
  Value init = math.getIdentity(op.getKind(), type);
  if (hasLanes)
    init = math.splat(init);
  return loops.buildCountedLoop(
      count, init, [&](Index place, ValueRange carried) -> SmallVector<Value> {
        IndexList reduced = loops.delinearize(place, sizes);
        IndexList operandIndex;
        auto kept = index.begin();
        for (size_t dim = 0, next = 0; dim < shape.size(); ++dim) {
          if (next < dims.size() && dims[next] == int64_t(dim))
            operandIndex.push_back(reduced[next++]);
          else
            operandIndex.push_back(*kept++);
        }
        Value value = evaluate(op.getOperand(), operandIndex);
        return {math.combine(op.getKind(), carried[0], value)};
      })[0];
}

Value NestEmitter::computeDot(DotGeneralOp op, ArrayRef<Index> index) {
  ArrayRef<int64_t> lhsShape = getTensorShape(op.getLhs());
  ArrayRef<int64_t> rhsShape = getTensorShape(op.getRhs());
  SmallVector<int64_t> sizes;
  int64_t count = 1;
  for (int64_t dim : op.getLhsContracting()) {
    sizes.push_back(lhsShape[dim]);
    count *= lhsShape[dim];
  }
  bool hasLanes = llvm::any_of(index, [](const Index &i) { return i.lanes; });
  Type type = getComputeType(op.getResult());
  Value init = math.constant(type, 0.0);
  if (hasLanes)
    init = math.splat(init);
  auto body = [&](Index place, ValueRange carried) -> SmallVector<Value> {
    IndexList contracted = loops.delinearize(place, sizes);
    IndexList lhsIndex(lhsShape.size()), rhsIndex(rhsShape.size());
    size_t next = 0;
    for (auto [lhs, rhs] :
         llvm::zip_equal(op.getLhsBatching(), op.getRhsBatching()))
      lhsIndex[lhs] = rhsIndex[rhs] = index[next++];
    for (int64_t dim : op.getLhsFree())
      lhsIndex[dim] = index[next++];
    for (int64_t dim : op.getRhsFree())
      rhsIndex[dim] = index[next++];
    for (auto [position, dims] : llvm::enumerate(
             llvm::zip_equal(op.getLhsContracting(), op.getRhsContracting()))) {
      lhsIndex[std::get<0>(dims)] = contracted[position];
      rhsIndex[std::get<1>(dims)] = contracted[position];
    }
    Value lhs = evaluate(op.getLhs(), lhsIndex);
    Value rhs = evaluate(op.getRhs(), rhsIndex);
    return {math.fma(lhs, rhs, carried[0])};
  };
  return loops.buildCountedLoop(count, init, body)[0];
}

Value NestEmitter::computeIota(IotaOp op, ArrayRef<Index> index) {
  int64_t dim = op.getDim();
  Value places = device.getGlobalPlaces(op.getResult(), dim, index[dim],
                                        op.getShard(), op.getMicrobatch());
  Type type = getComputeType(op.getResult());
  // Dimensions are far below 2^31; conversion from i32 has instructions.
  if (isa<FloatType>(type))
    places = math.convert(places, builder.getI32Type());
  return math.convert(places, type);
}

Value NestEmitter::computeMask(MaskOp op, ArrayRef<Index> index) {
  Value value = evaluate(op.getOperand(), index);
  Value fill = computeFill(op.getResult(), op.getFill());
  Type i32 = builder.getI32Type();
  for (int64_t dim : op.getDims()) {
    int64_t size = getTensorShape(op.getResult())[dim];
    int64_t globalSize = op.getGlobalShape()[dim];
    ArrayRef<StringAttr> axes = op.getShard().getAxes(dim);
    if (device.getNumShards(axes) * size == globalSize)
      continue;
    Value valid =
        math.sub(loops.constantI64(globalSize),
                 math.mul(device.getShardIndex(axes), loops.constantI64(size)));
    Value places = math.convert(loops.getPlaces(index[dim]), i32);
    Value inside = math.compareInt(arith::CmpIPredicate::slt, places,
                                   math.convert(valid, i32));
    value = math.select(inside, value, fill);
  }
  return value;
}

Value NestEmitter::computeSlice(SliceOp op, ArrayRef<Index> index) {
  int64_t dim = op.getDim();
  int64_t size = getTensorShape(op.getResult())[dim];
  int64_t whole = getTensorShape(op.getOperand())[dim];
  SmallVector<StringAttr> axes;
  for (Attribute axis : op.getAxes())
    axes.push_back(cast<StringAttr>(axis));
  IndexList operandIndex(index.begin(), index.end());
  Index &place = operandIndex[dim];
  unsigned level = place.level;
  place.value = loops.atLevel(level, [&]() -> Value {
    Value start = math.mul(device.getShardIndex(axes), loops.constantI64(size));
    return place.value ? math.add(start, place.value) : start;
  });
  // Trailing shards reach beyond the end, where they read padding.
  if (device.getNumShards(axes) * size != whole)
    place.last = whole - 1;
  return evaluate(op.getOperand(), operandIndex);
}

/// The 64-bit product of unsigned 32-bit numbers: its high half, its low half.
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
  ArrayRef<int64_t> shape = getTensorShape(op.getResult());
  SmallVector<int64_t> globalShape(shape);
  if (auto given = op.getGlobalShape())
    globalShape.assign(given->begin(), given->end());
  // The global row-major index of each element.
  Value linear = loops.constantI64(0);
  int64_t stride = 1;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    Value place =
        device.getGlobalPlaces(op.getResult(), dim, index[dim], op.getShard(),
                               dim == 0 ? op.getMicrobatch() : std::nullopt);
    linear = math.add(linear, math.mul(place, loops.constantI64(stride)));
    stride *= globalShape[dim];
  }
  Type i32 = builder.getI32Type();
  auto lowWord = [&](Value value) { return math.convert(value, i32); };
  auto highWord = [&](Value value) {
    Value shifted = builder.create<arith::ShRUIOp>(
        loc, value, math.constantLike(value, 32));
    return math.convert(shifted, i32);
  };
  Value seed = device.getSeed();
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
