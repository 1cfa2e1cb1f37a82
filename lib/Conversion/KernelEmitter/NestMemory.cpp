//===- NestMemory.cpp - Elements of tensors in memory ---------------------===//

#include "shardc/Conversion/KernelEmitter/NestEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace shardc {

Type NestEmitter::getMemoryType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  if (element.isBF16())
    return IntegerType::get(element.getContext(), 16);
  return element;
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
  ArrayRef<int64_t> shape = getShape(tensor);
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
  ArrayRef<int64_t> shape = getShape(tensor);
  Value linear;
  int64_t stride = 1, laneStride = 1, lanes = 0;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    const Index &place = index[dim];
    if (place.lanes) {
      lanes = place.lanes;
      laneStride = stride;
    }
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
  if (laneStride > 1) {
    Value base = linear ? linear : constantI64(0);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value place = builder.createOrFold<arith::AddIOp>(
          loc, base, constantI64(lane * laneStride));
      builder.create<LLVM::StoreOp>(
          loc, builder.create<vector::ExtractOp>(loc, value, lane),
          getAddress(pointer, memoryType, place), alignment);
    }
    return;
  }
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
