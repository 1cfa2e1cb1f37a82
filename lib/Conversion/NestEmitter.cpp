//===- NestEmitter.cpp - Scopes, loops and memory accesses ----------------===//

#include "NestEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>
#include <numeric>

using namespace mlir;

namespace shardc {

NestEmitter::NestEmitter(OpBuilder &builder, Location loc, MeshOp mesh,
                         Block *entry, Value context, EmitterTarget target)
    : builder(builder), loc(loc), math(this->builder, loc, target.numLanes),
      mesh(mesh), entry(entry), context(context),
      bufferAlignment(target.bufferAlignment) {
  known.resize(1);
}

void NestEmitter::startNest() {
  known.clear();
  known.resize(1);
  scopes.clear();
  isFlat = false;
}

Type NestEmitter::getComputeType(Value tensor) {
  Type element = getElementTypeOrSelf(tensor.getType());
  return element.isBF16() ? Type(Float32Type::get(element.getContext()))
                          : element;
}

Type NestEmitter::getMemoryType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  if (element.isBF16())
    return IntegerType::get(element.getContext(), 16);
  return element;
}

NestEmitter::Key NestEmitter::getKey(Value tensor, ArrayRef<Index> index) {
  Key key{tensor.getAsOpaquePointer()};
  for (const Index &dim : index) {
    key.push_back(dim.value.getAsOpaquePointer());
    key.push_back(reinterpret_cast<const void *>(dim.lanes * 2));
    key.push_back(reinterpret_cast<const void *>(dim.last));
  }
  return key;
}

/// Dimensions of size 1 have one place.
static IndexList dropUnitDims(Value tensor, ArrayRef<Index> index) {
  IndexList result(index.begin(), index.end());
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  for (auto [place, size] : llvm::zip_equal(result, shape))
    if (size == 1)
      place = Index();
  return result;
}

static unsigned getLevel(ArrayRef<Index> index) {
  unsigned level = 0;
  for (const Index &dim : index)
    level = std::max(level, dim.level);
  return level;
}

Value NestEmitter::atLevel(unsigned level, llvm::function_ref<Value()> build) {
  if (level >= scopes.size())
    return build();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(scopes[level]);
  SmallVector<Operation *> innerScopes(scopes.begin() + level, scopes.end());
  SmallVector<std::map<Key, Value>> innerKnown(
      std::make_move_iterator(known.begin() + level + 1),
      std::make_move_iterator(known.end()));
  scopes.truncate(level);
  known.truncate(level + 1);
  Value result = build();
  llvm::append_range(scopes, innerScopes);
  for (auto &values : innerKnown)
    known.push_back(std::move(values));
  return result;
}

Value NestEmitter::evaluate(Value tensor, ArrayRef<Index> fullIndex) {
  IndexList index = dropUnitDims(tensor, fullIndex);
  unsigned level = getLevel(index);
  Key key = getKey(tensor, index);
  // A value preset in an inner scope is found before one is built outside.
  for (auto &values : llvm::reverse(known)) {
    auto it = values.find(key);
    if (it != values.end())
      return it->second;
  }
  return atLevel(level, [&] {
    Value value = compute(tensor, index);
    known.back()[key] = value;
    return value;
  });
}

void NestEmitter::preset(Value tensor, ArrayRef<Index> fullIndex, Value value) {
  IndexList index = dropUnitDims(tensor, fullIndex);
  known.back()[getKey(tensor, index)] = value;
}

Value NestEmitter::constantI64(int64_t value) {
  Value &constant = constants[value];
  if (!constant) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    constant = math.constantInt(builder.getI64Type(), value);
  }
  return constant;
}

Index NestEmitter::constantIndex(int64_t value, int64_t lanes) {
  if (value == 0 && lanes == 0)
    return Index();
  return Index{constantI64(value), 0, lanes, -1};
}

Index NestEmitter::addIndex(const Index &index, int64_t value) {
  if (value == 0)
    return index;
  Index result = index;
  if (!index.value) {
    result.value = constantI64(value);
    return result;
  }
  result.value = atLevel(index.level, [&]() -> Value {
    return builder.createOrFold<arith::AddIOp>(loc, index.value,
                                               constantI64(value));
  });
  return result;
}

Index NestEmitter::mulIndex(const Index &index, int64_t value) {
  if (value == 1 || !index.value)
    return index;
  Index result = index;
  result.value = atLevel(index.level, [&]() -> Value {
    return builder.createOrFold<arith::MulIOp>(loc, index.value,
                                               constantI64(value));
  });
  return result;
}

IndexList NestEmitter::delinearize(const Index &linear,
                                   ArrayRef<int64_t> sizes) {
  IndexList result(sizes.size());
  int64_t remaining = llvm::count_if(sizes, [](int64_t s) { return s > 1; });
  Index rest = linear;
  for (int64_t dim = sizes.size() - 1; dim >= 0; --dim) {
    if (sizes[dim] == 1)
      continue;
    if (--remaining == 0 || !rest.value) {
      result[dim] = rest;
      return result;
    }
    Value size = constantI64(sizes[dim]);
    result[dim] = rest;
    result[dim].value = atLevel(rest.level, [&]() -> Value {
      return builder.create<arith::RemUIOp>(loc, rest.value, size);
    });
    rest.value = atLevel(rest.level, [&]() -> Value {
      return builder.create<arith::DivUIOp>(loc, rest.value, size);
    });
  }
  return result;
}

SmallVector<Value> NestEmitter::buildLoop(Value low, Value high, int64_t step,
                                          ValueRange init, LoopBody body) {
  auto loop =
      builder.create<scf::ForOp>(loc, low, high, constantI64(step), init);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  scopes.push_back(loop);
  known.emplace_back();
  Index place{loop.getInductionVar(), unsigned(scopes.size()), 0, -1};
  SmallVector<Value> next = body(place, loop.getRegionIterArgs());
  if (!init.empty())
    builder.create<scf::YieldOp>(loc, next);
  scopes.pop_back();
  known.pop_back();
  return llvm::to_vector_of<Value>(loop.getResults());
}

SmallVector<Value> NestEmitter::buildCountedLoop(int64_t count, ValueRange init,
                                                 LoopBody body) {
  if (count == 1)
    return body(Index(), init);
  return buildLoop(constantI64(0), constantI64(count), 1, init, body);
}

void NestEmitter::buildIf(Value condition, llvm::function_ref<void()> body) {
  auto ifOp = builder.create<scf::IfOp>(loc, condition);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&ifOp.getThenRegion().front());
  scopes.push_back(ifOp);
  known.emplace_back();
  body();
  scopes.pop_back();
  known.pop_back();
}

void NestEmitter::buildRegion(Value condition,
                              llvm::function_ref<void()> body) {
  auto ifOp = builder.create<scf::IfOp>(loc, condition);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&ifOp.getThenRegion().front());
  body();
}

Value NestEmitter::getLaneMask(int64_t lanes) {
  SmallVector<bool> bits;
  for (int64_t lane = 0; lane < math.numLanes; ++lane)
    bits.push_back(lane < lanes);
  auto type = VectorType::get({math.numLanes}, builder.getI1Type());
  return builder.create<arith::ConstantOp>(loc,
                                           DenseElementsAttr::get(type, bits));
}

Value NestEmitter::maskLanes(Value value, int64_t lanes, Value fill) {
  if (lanes == 0 || lanes >= math.numLanes)
    return value;
  return builder.create<arith::SelectOp>(loc, getLaneMask(lanes),
                                         math.splat(value), math.splat(fill));
}

Value NestEmitter::getIdentity(ReductionKind kind, Type type) {
  if (kind == ReductionKind::Sum)
    return math.constant(type, 0.0);
  if (isa<FloatType>(type))
    return math.constant(type, -std::numeric_limits<double>::infinity());
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 1)
    return math.constantInt(type, 0);
  return math.constantInt(type, bits == 64 ? std::numeric_limits<int64_t>::min()
                                           : -(int64_t(1) << (bits - 1)));
}

Value NestEmitter::combine(ReductionKind kind, Value lhs, Value rhs) {
  return kind == ReductionKind::Sum ? math.add(lhs, rhs) : math.max(lhs, rhs);
}

Value NestEmitter::combineLanes(ReductionKind kind, Value value) {
  if (!VectorMath::isVector(value))
    return value;
  for (int64_t width = math.numLanes / 2; width >= 1; width /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < width; ++lane) {
      low.push_back(lane);
      high.push_back(lane + width);
    }
    Value lhs = builder.create<vector::ShuffleOp>(loc, value, value, low);
    Value rhs = builder.create<vector::ShuffleOp>(loc, value, value, high);
    value = combine(kind, lhs, rhs);
  }
  return getFirstLane(value);
}

Value NestEmitter::getFirstLane(Value value) {
  return builder.create<vector::ExtractOp>(loc, value, int64_t(0));
}

Value NestEmitter::getAddress(Value pointer, Type memoryType, Value linear) {
  if (!linear)
    return pointer;
  return builder.create<LLVM::GEPOp>(loc, pointer.getType(), memoryType,
                                     pointer, ValueRange{linear},
                                     /*inbounds=*/true);
}

/// A number that divides the i64 `value`, at most 16.
static int64_t getFactor(Value value) {
  constexpr int64_t most = 16;
  IntegerAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return std::gcd(constant.getInt(), most);
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::MulIOp>(op))
    return std::gcd(getFactor(op->getOperand(0)) * getFactor(op->getOperand(1)),
                    most);
  if (isa_and_nonnull<arith::AddIOp, arith::MinSIOp>(op))
    return std::gcd(getFactor(op->getOperand(0)), getFactor(op->getOperand(1)));
  return 1;
}

unsigned NestEmitter::getVectorAlignment(Value pointer, Type memoryType,
                                         Value linear) {
  int64_t bytes = memoryType.getIntOrFloatBitWidth() / 8;
  auto it = alignments.find(pointer);
  int64_t ofBuffer = it == alignments.end() ? bufferAlignment : it->second;
  int64_t known = ofBuffer;
  if (linear)
    known = std::gcd(getFactor(linear) * bytes, ofBuffer);
  return std::max(bytes, known);
}

Value NestEmitter::load(Value tensor, Value linear, int64_t stride,
                        int64_t lanes, const Index *clamped) {
  Type element = getElementTypeOrSelf(tensor.getType());
  Type memoryType = getMemoryType(element);
  unsigned alignment = memoryType.getIntOrFloatBitWidth() / 8;
  Value pointer = pointers.lookup(tensor);
  assert(pointer && "tensor without a buffer");
  Value value;
  auto vectorType = VectorType::get({math.numLanes}, memoryType);
  if (lanes == 0 || stride == 0) {
    value = builder.create<LLVM::LoadOp>(
        loc, memoryType, getAddress(pointer, memoryType, linear), alignment);
  } else if (stride == 1 && !clamped) {
    Value address = getAddress(pointer, memoryType, linear);
    if (lanes == math.numLanes) {
      value = builder.create<LLVM::LoadOp>(
          loc, vectorType, address,
          getVectorAlignment(pointer, memoryType, linear));
    } else {
      Value zeros = builder.create<arith::ConstantOp>(
          loc, builder.getZeroAttr(vectorType));
      value = builder.create<LLVM::MaskedLoadOp>(
          loc, vectorType, address, getLaneMask(lanes), ValueRange{zeros},
          builder.getI32IntegerAttr(alignment));
    }
  } else {
    value =
        builder.create<arith::ConstantOp>(loc, builder.getZeroAttr(vectorType));
    Value base = linear ? linear : constantI64(0);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value offset = constantI64(lane);
      if (clamped) {
        // Lanes beyond the last place read that one again.
        Value place = clamped->value ? clamped->value : constantI64(0);
        Value room = builder.create<arith::SubIOp>(
            loc, constantI64(clamped->last), place);
        offset = builder.create<arith::MinSIOp>(loc, offset, room);
      }
      offset =
          builder.createOrFold<arith::MulIOp>(loc, offset, constantI64(stride));
      Value place = builder.createOrFold<arith::AddIOp>(loc, base, offset);
      Value scalar = builder.create<LLVM::LoadOp>(
          loc, memoryType, getAddress(pointer, memoryType, place), alignment);
      value = builder.create<vector::InsertOp>(loc, scalar, value, lane);
    }
  }
  if (element.isInteger(1))
    return math.compareInt(arith::CmpIPredicate::ne, value,
                           math.constantLike(value, 0));
  if (!element.isBF16())
    return value;
  Type i32 = VectorMath::getTypeLike(builder.getI32Type(), value);
  Value bits = builder.create<arith::ExtUIOp>(loc, i32, value);
  bits = builder.create<arith::ShLIOp>(loc, bits, math.constantLike(bits, 16));
  return builder.create<arith::BitcastOp>(
      loc, VectorMath::getTypeLike(builder.getF32Type(), value), bits);
}

Value NestEmitter::loadAt(Value tensor, ArrayRef<Index> index) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  Value linear;
  int64_t stride = 1, laneStride = 0, lanes = 0;
  const Index *clamped = nullptr;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    const Index &place = index[dim];
    if (place.lanes) {
      lanes = place.lanes;
      laneStride = stride;
      if (place.last >= 0)
        clamped = &index[dim];
    }
    if (place.value) {
      Value value = place.value;
      if (place.last >= 0)
        value =
            builder.create<arith::MinSIOp>(loc, value, constantI64(place.last));
      Value term =
          builder.createOrFold<arith::MulIOp>(loc, value, constantI64(stride));
      linear = linear ? builder.createOrFold<arith::AddIOp>(loc, linear, term)
                      : term;
    }
    stride *= shape[dim];
  }
  Index adjusted;
  if (clamped) {
    // The base has been clamped; so must be the room that lanes have.
    adjusted = *clamped;
    Value base = adjusted.value ? adjusted.value : constantI64(0);
    adjusted.value =
        builder.create<arith::MinSIOp>(loc, base, constantI64(adjusted.last));
    clamped = &adjusted;
  }
  return load(tensor, linear, laneStride, lanes, clamped);
}

Value NestEmitter::roundToBF16(Value value) {
  // To nearest, ties to even; NaN stays quiet. The result is again an f32.
  Type i32 = VectorMath::getTypeLike(builder.getI32Type(), value);
  Value bits = builder.create<arith::BitcastOp>(loc, i32, value);
  Value sixteen = math.constantLike(bits, 16);
  Value odd = builder.create<arith::AndIOp>(
      loc, builder.create<arith::ShRUIOp>(loc, bits, sixteen),
      math.constantLike(bits, 1));
  Value bias = math.add(odd, math.constantLike(bits, 0x7fff));
  Value rounded = math.add(bits, bias);
  Value isNaN = math.compareFloat(arith::CmpFPredicate::UNO, value, value);
  Value quiet = builder.create<arith::OrIOp>(loc, bits,
                                             math.constantLike(bits, 0x400000));
  rounded = math.select(isNaN, quiet, rounded);
  Value mask = math.constantLike(bits, -65536.0);
  rounded = builder.create<arith::AndIOp>(loc, rounded, mask);
  return builder.create<arith::BitcastOp>(loc, value.getType(), rounded);
}

void NestEmitter::store(Value pointer, Value tensor, ArrayRef<Index> fullIndex,
                        Value value) {
  IndexList index = dropUnitDims(tensor, fullIndex);
  Type element = getElementTypeOrSelf(tensor.getType());
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  Value linear;
  int64_t stride = 1, lanes = 0;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    const Index &place = index[dim];
    if (place.lanes)
      lanes = place.lanes;
    if (place.value) {
      Value term = builder.createOrFold<arith::MulIOp>(loc, place.value,
                                                       constantI64(stride));
      linear = linear ? builder.createOrFold<arith::AddIOp>(loc, linear, term)
                      : term;
    }
    stride *= shape[dim];
  }
  if (lanes)
    value = math.splat(value);
  Type memoryType = getMemoryType(element);
  Type valueType = VectorMath::getTypeLike(memoryType, value);
  if (element.isInteger(1)) {
    value = builder.create<arith::ExtUIOp>(loc, valueType, value);
  } else if (element.isBF16()) {
    value = roundToBF16(value);
    Type i32 = VectorMath::getTypeLike(builder.getI32Type(), value);
    Value bits = builder.create<arith::BitcastOp>(loc, i32, value);
    bits =
        builder.create<arith::ShRUIOp>(loc, bits, math.constantLike(bits, 16));
    value = builder.create<arith::TruncIOp>(loc, valueType, bits);
  }
  unsigned alignment = memoryType.getIntOrFloatBitWidth() / 8;
  Value address = getAddress(pointer, memoryType, linear);
  if (lanes && lanes < math.numLanes)
    builder.create<LLVM::MaskedStoreOp>(loc, value, address, getLaneMask(lanes),
                                        builder.getI32IntegerAttr(alignment));
  else
    builder.create<LLVM::StoreOp>(
        loc, value, address,
        lanes ? getVectorAlignment(pointer, memoryType, linear) : alignment);
}

} // namespace shardc
