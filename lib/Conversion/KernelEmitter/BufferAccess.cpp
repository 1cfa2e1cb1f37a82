//===- BufferAccess.cpp - Elements of tensors in memory -------------------===//

#include "shardc/Conversion/KernelEmitter/BufferAccess.h"

#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"

#include <numeric>

using namespace mlir;

namespace shardc {

Type getComputeType(Value tensor) {
  Type element = getElementTypeOrSelf(tensor.getType());
  return element.isBF16() ? Type(Float32Type::get(element.getContext()))
                          : element;
}

Type getMemoryType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  if (element.isBF16())
    return IntegerType::get(element.getContext(), 16);
  return element;
}

Value buildAddress(OpBuilder &builder, Location loc, Value pointer,
                   Type memoryType, Value linear) {
  if (!linear)
    return pointer;
  return builder.create<LLVM::GEPOp>(loc, pointer.getType(), memoryType,
                                     pointer, ValueRange{linear},
                                     /*inbounds=*/true);
}

IndexList dropUnitDims(Value tensor, ArrayRef<Index> index) {
  IndexList result(index.begin(), index.end());
  for (auto [place, size] : llvm::zip_equal(result, getTensorShape(tensor)))
    if (size == 1)
      place = Index();
  return result;
}

void BufferAccess::bindData(Value tensor, DenseElementsAttr elements) {
  Operation *module = loops.entry->getParentOp()->getParentOp();
  if (pointers.contains(tensor))
    return;
  Type memoryType = getMemoryType(elements.getElementType());
  DenseElementsAttr data = elements;
  if (memoryType != elements.getElementType()) {
    unsigned bits = memoryType.getIntOrFloatBitWidth();
    if (elements.getElementType().isBF16())
      data = elements.mapValues(memoryType, [&](const APFloat &value) {
        return value.bitcastToAPInt();
      });
    else
      data = elements.mapValues(
          memoryType, [&](const APInt &value) { return value.zext(bits); });
  }
  auto arrayType =
      LLVM::LLVMArrayType::get(memoryType, elements.getNumElements());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&module->getRegion(0).front());
  std::string name;
  for (int64_t number = 0;; ++number) {
    name = "data" + std::to_string(number);
    if (!SymbolTable::lookupSymbolIn(module, name))
      break;
  }
  auto global = builder.create<LLVM::GlobalOp>(
      loc, arrayType, /*isConstant=*/true, LLVM::Linkage::Internal, name,
      data.reshape(
          RankedTensorType::get({elements.getNumElements()}, memoryType)),
      /*alignment=*/16, pointerType.getAddressSpace());
  builder.setInsertionPointToStart(loops.entry);
  bind(tensor, builder.create<LLVM::AddressOfOp>(loc, global));
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

unsigned BufferAccess::getVectorAlignment(Value pointer, Type memoryType,
                                          Value linear) {
  int64_t bytes = memoryType.getIntOrFloatBitWidth() / 8;
  auto it = alignments.find(pointer);
  int64_t ofBuffer = it == alignments.end() ? bufferAlignment : it->second;
  int64_t known = ofBuffer;
  if (linear)
    known = std::gcd(getFactor(linear) * bytes, ofBuffer);
  return std::max(bytes, known);
}

Value BufferAccess::loadLinear(Value tensor, Value linear, int64_t stride,
                               int64_t lanes, const Index *clamped) {
  Type element = getElementTypeOrSelf(tensor.getType());
  Type memoryType = getMemoryType(element);
  unsigned alignment = memoryType.getIntOrFloatBitWidth() / 8;
  assert(pointers.contains(tensor) && "tensor without a buffer");
  Value pointer = pointers.find(tensor)->second[device];
  Value value;
  auto vectorType = VectorType::get({math.numLanes}, memoryType);
  if (lanes == 0 || stride == 0) {
    value = builder.create<LLVM::LoadOp>(
        loc, memoryType,
        buildAddress(builder, loc, pointer, memoryType, linear), alignment);
  } else if (stride == 1 && !clamped) {
    Value address = buildAddress(builder, loc, pointer, memoryType, linear);
    if (lanes == math.numLanes) {
      value = builder.create<LLVM::LoadOp>(
          loc, vectorType, address,
          getVectorAlignment(pointer, memoryType, linear));
    } else if (llvm::isPowerOf2_64(lanes) && lanes > 1) {
      // A shorter vector, and zeros behind it.
      Value piece = builder.create<LLVM::LoadOp>(
          loc, VectorType::get({lanes}, memoryType), address, alignment);
      Value zeros = builder.create<arith::ConstantOp>(
          loc, builder.getZeroAttr(piece.getType()));
      SmallVector<int64_t> sources;
      for (int64_t lane = 0; lane < math.numLanes; ++lane)
        sources.push_back(std::min(lane, lanes));
      value = builder.create<vector::ShuffleOp>(loc, piece, zeros, sources);
    } else {
      Value zeros = builder.create<arith::ConstantOp>(
          loc, builder.getZeroAttr(vectorType));
      value = builder.create<LLVM::MaskedLoadOp>(
          loc, vectorType, address, math.getLaneMask(lanes), ValueRange{zeros},
          builder.getI32IntegerAttr(alignment));
    }
  } else {
    value =
        builder.create<arith::ConstantOp>(loc, builder.getZeroAttr(vectorType));
    Value base = linear ? linear : loops.constantI64(0);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value offset = loops.constantI64(lane);
      if (clamped) {
        // Lanes beyond the last place read that one again.
        Value place = clamped->value ? clamped->value : loops.constantI64(0);
        Value room = builder.create<arith::SubIOp>(
            loc, loops.constantI64(clamped->last), place);
        offset = builder.create<arith::MinSIOp>(loc, offset, room);
      }
      offset = builder.createOrFold<arith::MulIOp>(loc, offset,
                                                   loops.constantI64(stride));
      Value place = builder.createOrFold<arith::AddIOp>(loc, base, offset);
      Value scalar = builder.create<LLVM::LoadOp>(
          loc, memoryType,
          buildAddress(builder, loc, pointer, memoryType, place), alignment);
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

/// The places of active lanes behind the one of `index` without offsets, in
/// elements of a tensor of that shape.
static SmallVector<int64_t> getLaneOffsets(ArrayRef<int64_t> shape,
                                           ArrayRef<Index> index) {
  int64_t lanes = 0;
  for (const Index &place : index)
    lanes = std::max(lanes, place.lanes);
  SmallVector<int64_t> offsets(lanes, 0);
  int64_t stride = 1;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    for (int64_t lane = 0; lane < lanes && index[dim].lanes; ++lane)
      offsets[lane] += stride * index[dim].getOffset(lane);
    stride *= shape[dim];
  }
  return offsets;
}

Value BufferAccess::loadSpread(Value tensor, ArrayRef<Index> index) {
  ArrayRef<int64_t> shape = getTensorShape(tensor);
  SmallVector<int64_t> offsets = getLaneOffsets(shape, index);
  // Lanes behind the active ones read what exists.
  offsets.resize(math.numLanes, offsets.back());
  Value linear = loops.constantI64(0);
  int64_t stride = 1;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    assert(index[dim].last < 0 && "lanes over two dimensions are not clamped");
    if (index[dim].value)
      linear = math.add(linear,
                        builder.createOrFold<arith::MulIOp>(
                            loc, index[dim].value, loops.constantI64(stride)));
    stride *= shape[dim];
  }
  auto loadAt = [&](int64_t offset, int64_t lanes) {
    Value place = builder.createOrFold<arith::AddIOp>(
        loc, linear, loops.constantI64(offset));
    return loadLinear(tensor, place, 1, lanes);
  };
  int64_t first = *llvm::min_element(offsets);
  int64_t range = *llvm::max_element(offsets) - first + 1;
  if (range == 1)
    return loadAt(first, 0);
  if (range <= math.numLanes) {
    Value vector = loadAt(first, range);
    for (int64_t &offset : offsets)
      offset -= first;
    if (llvm::equal(offsets, llvm::seq<int64_t>(0, math.numLanes)))
      return vector;
    return builder.create<vector::ShuffleOp>(loc, vector, vector, offsets);
  }
  Value vector = math.splat(loadAt(offsets[0], 0));
  for (int64_t lane = 1; lane < math.numLanes; ++lane)
    vector = builder.create<vector::InsertOp>(loc, loadAt(offsets[lane], 0),
                                              vector, lane);
  return vector;
}

Value BufferAccess::load(Value tensor, ArrayRef<Index> index) {
  if (llvm::any_of(index, [](const Index &dim) { return dim.isSpread(); }))
    return loadSpread(tensor, index);
  ArrayRef<int64_t> shape = getTensorShape(tensor);
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
        value = builder.create<arith::MinSIOp>(loc, value,
                                               loops.constantI64(place.last));
      Value term = builder.createOrFold<arith::MulIOp>(
          loc, value, loops.constantI64(stride));
      linear = linear ? builder.createOrFold<arith::AddIOp>(loc, linear, term)
                      : term;
    }
    stride *= shape[dim];
  }
  Index adjusted;
  if (clamped) {
    // The base has been clamped; so must be the room that lanes have.
    adjusted = *clamped;
    Value base = adjusted.value ? adjusted.value : loops.constantI64(0);
    adjusted.value = builder.create<arith::MinSIOp>(
        loc, base, loops.constantI64(adjusted.last));
    clamped = &adjusted;
  }
  return loadLinear(tensor, linear, laneStride, lanes, clamped);
}

void BufferAccess::storeLanes(Value vector, int64_t lanes, Value address,
                              Type memoryType) {
  unsigned alignment = memoryType.getIntOrFloatBitWidth() / 8;
  if (hasMaskRegisters && !llvm::isPowerOf2_64(lanes)) {
    builder.create<LLVM::MaskedStoreOp>(loc, vector, address,
                                        math.getLaneMask(lanes),
                                        builder.getI32IntegerAttr(alignment));
    return;
  }
  for (int64_t start = 0; start < lanes;) {
    int64_t size = llvm::bit_floor(uint64_t(lanes - start));
    SmallVector<int64_t> sources =
        llvm::to_vector(llvm::seq<int64_t>(start, start + size));
    Value piece =
        size == 1 ? builder.create<vector::ExtractOp>(loc, vector, start)
                  : Value(builder.create<vector::ShuffleOp>(loc, vector, vector,
                                                            sources));
    Value place = start > 0 ? loops.constantI64(start) : Value();
    builder.create<LLVM::StoreOp>(
        loc, piece, buildAddress(builder, loc, address, memoryType, place),
        alignment);
    start += size;
  }
}

void BufferAccess::store(Value pointer, Value tensor, ArrayRef<Index> fullIndex,
                         Value value) {
  IndexList index = dropUnitDims(tensor, fullIndex);
  Type element = getElementTypeOrSelf(tensor.getType());
  ArrayRef<int64_t> shape = getTensorShape(tensor);
  Value linear;
  int64_t stride = 1, laneStride = 1, lanes = 0;
  bool isSpread = false;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    const Index &place = index[dim];
    if (place.lanes) {
      lanes = place.lanes;
      laneStride = stride;
      isSpread |= place.isSpread();
    }
    if (place.value) {
      Value term = builder.createOrFold<arith::MulIOp>(
          loc, place.value, loops.constantI64(stride));
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
    value = math.roundToBF16(value);
    Type i32 = VectorMath::getTypeLike(builder.getI32Type(), value);
    Value bits = builder.create<arith::BitcastOp>(loc, i32, value);
    bits =
        builder.create<arith::ShRUIOp>(loc, bits, math.constantLike(bits, 16));
    value = builder.create<arith::TruncIOp>(loc, valueType, bits);
  }
  unsigned alignment = memoryType.getIntOrFloatBitWidth() / 8;
  if (isSpread) {
    SmallVector<int64_t> offsets = getLaneOffsets(shape, index);
    assert(offsets.back() - offsets[0] == lanes - 1 &&
           "lanes over two dimensions are stored side by side");
    linear = math.add(linear ? linear : loops.constantI64(0),
                      loops.constantI64(offsets[0]));
    laneStride = 1;
  }
  if (laneStride > 1) {
    Value base = linear ? linear : loops.constantI64(0);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value place = builder.createOrFold<arith::AddIOp>(
          loc, base, loops.constantI64(lane * laneStride));
      builder.create<LLVM::StoreOp>(
          loc, builder.create<vector::ExtractOp>(loc, value, lane),
          buildAddress(builder, loc, pointer, memoryType, place), alignment);
    }
    return;
  }
  Value address = buildAddress(builder, loc, pointer, memoryType, linear);
  if (lanes && lanes < math.numLanes)
    storeLanes(value, lanes, address, memoryType);
  else
    builder.create<LLVM::StoreOp>(
        loc, value, address,
        lanes ? getVectorAlignment(pointer, memoryType, linear) : alignment);
}

} // namespace shardc
