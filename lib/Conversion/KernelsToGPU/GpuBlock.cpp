//===- GpuBlock.cpp - The threads of a block ------------------------------===//

#include "GpuBlock.h"

#include "GpuNestPlan.h"

#include "shardc/Conversion/KernelEmitter/BufferAccess.h"

using namespace mlir;

namespace shardc {

GpuBlock::GpuBlock(LoopBuilder &loops, gpu::GPUFuncOp function, int64_t threads)
    : threads(threads), loops(loops), builder(loops.builder), loc(loops.loc),
      function(function) {
  auto x = gpu::Dimension::x;
  thread = buildId(builder.create<gpu::ThreadIdOp>(loc, x));
  block = buildId(builder.create<gpu::BlockIdOp>(loc, x));
}

Value GpuBlock::buildId(Value index) {
  return builder.create<arith::IndexCastOp>(loc, builder.getI64Type(), index);
}

void GpuBlock::synchronize() { builder.create<gpu::BarrierOp>(loc); }

Value GpuBlock::exchange(Value value, int64_t distance) {
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  Type type = value.getType();
  if (type.isF32() || type.isInteger(32))
    return builder
        .create<gpu::ShuffleOp>(loc, value, distance, warpSize,
                                gpu::ShuffleMode::XOR)
        .getShuffleResult();
  if (type.isF64()) {
    Value bits = builder.create<arith::BitcastOp>(loc, i64, value);
    return builder.create<arith::BitcastOp>(loc, type,
                                            exchange(bits, distance));
  }
  if (!type.isInteger(64)) {
    Value wide = builder.create<arith::ExtUIOp>(loc, i32, value);
    return builder.create<arith::TruncIOp>(loc, type, exchange(wide, distance));
  }
  // In halves: a warp moves 32 bits at a time.
  Value shift = loops.constantI64(32);
  Value low = builder.create<arith::TruncIOp>(loc, i32, value);
  Value high = builder.create<arith::TruncIOp>(
      loc, i32, builder.create<arith::ShRUIOp>(loc, value, shift));
  low = builder.create<arith::ExtUIOp>(loc, i64, exchange(low, distance));
  high = builder.create<arith::ExtUIOp>(loc, i64, exchange(high, distance));
  return builder.create<arith::OrIOp>(
      loc, low, builder.create<arith::ShLIOp>(loc, high, shift));
}

Value GpuBlock::combineNeighbours(ReductionKind kind, Value value,
                                  int64_t size) {
  // Partners compute a∘b and b∘a, the same number: in the end all agree.
  for (int64_t distance = size / 2; distance >= 1; distance /= 2)
    value = loops.math.combine(kind, value, exchange(value, distance));
  return value;
}

Value GpuBlock::combine(ReductionKind kind, Value value, int64_t size) {
  value = combineNeighbours(kind, value, std::min(size, warpSize));
  if (size <= warpSize)
    return value;
  int64_t warps = threads / warpSize;
  Type element = value.getType();
  // A bool has no place in memory of its own.
  Type memoryType = getMemoryType(element);
  bool isBool = memoryType != element;
  Value lane =
      builder.create<arith::RemUIOp>(loc, thread, loops.constantI64(warpSize));
  Value warp =
      builder.create<arith::DivUIOp>(loc, thread, loops.constantI64(warpSize));
  Value isFirst = loops.math.compareInt(arith::CmpIPredicate::eq, lane,
                                        loops.constantI64(0));
  if (isBool)
    value = builder.create<arith::ExtUIOp>(loc, memoryType, value);
  loops.buildIf(isFirst, [&] {
    builder.create<LLVM::StoreOp>(loc, value,
                                  getShared(memoryType, warps, warp));
  });
  synchronize();
  Value other =
      builder.create<arith::RemUIOp>(loc, thread, loops.constantI64(warps));
  value = builder.create<LLVM::LoadOp>(loc, memoryType,
                                       getShared(memoryType, warps, other));
  synchronize();
  if (isBool)
    value = builder.create<arith::TruncIOp>(loc, element, value);
  return combineNeighbours(kind, value, warps);
}

Value GpuBlock::getShared(Type element, int64_t count, Value linear) {
  constexpr unsigned space = 3;
  auto getType = [&](int64_t bytes) {
    return LLVM::LLVMArrayType::get(builder.getI8Type(), bytes);
  };
  int64_t bytes = count * element.getIntOrFloatBitWidth() / 8;
  if (!shared) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(function);
    shared = builder.create<LLVM::GlobalOp>(
        loc, getType(bytes), /*isConstant=*/false, LLVM::Linkage::Internal,
        (function.getName() + "_shared").str(), Attribute(), /*alignment=*/16,
        space);
    builder.setInsertionPointAfterValue(block);
    sharedAddress = builder.create<LLVM::AddressOfOp>(loc, shared);
  }
  auto old = cast<LLVM::LLVMArrayType>(shared.getGlobalType());
  if (int64_t(old.getNumElements()) < bytes)
    shared.setGlobalType(getType(bytes));
  return buildAddress(builder, loc, sharedAddress, element, linear);
}

} // namespace shardc
