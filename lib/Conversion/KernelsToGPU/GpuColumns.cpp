//===- GpuColumns.cpp - Reductions over leading dimensions on a grid ------===//
//
// A block of threads is a rectangle: neighbours have neighbouring columns, and
// what is above each other takes turns with the rows. Each thread adds up its
// rows; then all add up what the threads of their columns have, top to bottom.
//
//===----------------------------------------------------------------------===//

#include "GpuNestBuilder.h"

using namespace mlir;

namespace shardc {

void GpuNestBuilder::buildColumns(Value nestBlock) {
  stride(nestBlock, plan.units, plan.blocks, {},
         [&](Index unit, ValueRange) -> Values {
           buildColumnBlock(unit);
           return {};
         });
}

void GpuNestBuilder::buildColumnBlock(const Index &unit) {
  auto [kept, reduced] = splitShape(nest);
  int64_t dim = getLastLongDim(kept);
  int64_t columns = dim < 0 ? 1 : kept[dim];
  SmallVector<int64_t> sizes(kept);
  if (dim >= 0)
    sizes[dim] = llvm::divideCeil(columns, columnsPerBlock);
  IndexList outer = emitter.delinearize(unit, sizes);

  int64_t across = columnsPerBlock / plan.lanes;
  int64_t rowsAtOnce = block.threads / across;
  Value width = emitter.constantI64(across);
  Value x = builder.create<arith::RemUIOp>(loc, block.getThread(), width);
  Value y = builder.create<arith::DivUIOp>(loc, block.getThread(), width);
  // The first of this thread's columns in the block, and in the tensor. Threads
  // beyond the last column compute that one once more and store nothing.
  Value within = math.mul(x, emitter.constantI64(plan.lanes));
  Value isActive;
  if (dim >= 0) {
    Value column = within;
    if (outer[dim].value)
      column = math.add(
          math.mul(outer[dim].value, emitter.constantI64(columnsPerBlock)),
          within);
    if (columns % columnsPerBlock != 0) {
      isActive = isBelow(column, columns);
      column = math.min(column, emitter.constantI64(columns - plan.lanes));
    }
    outer[dim] = emitter.makeIndex(column);
    outer[dim].lanes = plan.lanes > 1 ? plan.lanes : 0;
  } else {
    isActive = isBelow(x, 1);
  }

  for (const NestPass &pass : getPasses(nest)) {
    ArrayRef<ReduceOp> reductions = pass.reductions;
    Values accs = stride(y, getNumElements(reduced), rowsAtOnce,
                         getIdentities(reductions, plan.lanes > 1),
                         [&](Index row, ValueRange carried) {
                           IndexList index = joinIndex(
                               nest, outer, emitter.delinearize(row, reduced));
                           Values next(carried);
                           accumulate(reductions, index, next);
                           if (pass.stores)
                             buildIf(isActive, [&] {
                               storeFullResults(emitter, nest, buffers, index);
                             });
                           return next;
                         });
    for (auto [op, acc] : llvm::zip_equal(reductions, accs)) {
      ReduceOp reduce = op;
      emitter.preset(reduce.getResult(), outer,
                     combineRows(reduce.getKind(), acc, within, y, rowsAtOnce));
    }
  }
  if (!nest.outerResults.empty())
    buildIf(both(isActive, isBelow(y, 1)),
            [&] { storeOuterResults(emitter, nest, buffers, outer); });
}

Value GpuNestBuilder::combineRows(ReductionKind kind, Value value, Value within,
                                  Value y, int64_t rows) {
  Type element = VectorMath::getElement(value);
  // A bool has no place in memory of its own.
  Type memoryType = NestEmitter::getMemoryType(element);
  bool isBool = memoryType != element;
  Type type = VectorMath::getTypeLike(memoryType, value);
  auto getAddress = [&](Value row) {
    Value first = math.mul(row, emitter.constantI64(columnsPerBlock));
    return block.getShared(memoryType, rows * columnsPerBlock,
                           math.add(first, within));
  };
  unsigned alignment = plan.lanes * memoryType.getIntOrFloatBitWidth() / 8;
  alignment = std::min(alignment, 16u);
  if (isBool)
    value = builder.create<arith::ExtUIOp>(loc, type, value);
  builder.create<LLVM::StoreOp>(loc, value, getAddress(y), alignment);
  block.synchronize();
  Value init = emitter.getIdentity(kind, element);
  if (plan.lanes > 1)
    init = math.splat(init);
  Value sum = emitter.buildCountedLoop(
      rows, init, [&](Index row, ValueRange carried) -> Values {
        Value other = builder.create<LLVM::LoadOp>(
            loc, type, getAddress(row.value), alignment);
        if (isBool)
          other = math.convert(other, element);
        return {emitter.combine(kind, carried[0], other)};
      })[0];
  block.synchronize();
  return sum;
}

} // namespace shardc
