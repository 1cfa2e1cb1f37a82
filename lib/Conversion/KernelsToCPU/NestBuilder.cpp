//===- NestBuilder.cpp - Loops of one nest --------------------------------===//

#include "NestBuilder.h"

#include "GemmBuilder.h"
#include "MapBuilder.h"
#include "ReductionBuilder.h"

using namespace mlir;

namespace shardc {

void buildNest(NestEmitter &emitter, const NestPlan &plan,
               ArrayRef<ResultBuffers> buffers, UnitRange range) {
  emitter.startNest(plan.numLanes, plan.isFlat);
  switch (plan.nest.kind) {
  case NestKind::Map:
    return MapBuilder(emitter, plan, buffers).build(range);
  case NestKind::Rows:
  case NestKind::Columns:
    return ReductionBuilder(emitter, plan, buffers).build(range);
  case NestKind::Gemm:
    return GemmBuilder(emitter, plan, buffers).build(range);
  }
}

void NestBuilder::storeFull(ArrayRef<Index> index) {
  storeFullResults(emitter, nest, buffers[memory.getDevice()], index);
}

void NestBuilder::storeOuter(ArrayRef<Index> index) {
  storeOuterResults(emitter, nest, buffers[memory.getDevice()], index);
}

SmallVector<Value> NestBuilder::buildVectors(
    int64_t size, int64_t unroll, ValueRange init, VectorBody body,
    llvm::function_ref<Value(size_t, Value, Value)> combine) {
  size_t numAccs = init.size();
  int64_t block = unroll * numLanes;
  int64_t fullBlocks = size / block;
  SmallVector<Value> accs;
  for (int64_t u = 0; u < unroll; ++u)
    llvm::append_range(accs, init);
  auto runBlock = [&](const Index &start, MutableArrayRef<Value> accs) {
    for (int64_t u = 0; u < unroll; ++u) {
      Index place = loops.addIndex(start, u * numLanes);
      if (!place.value)
        place.value = loops.constantI64(0);
      place.lanes = numLanes;
      body(place, accs.slice(u * numAccs, numAccs));
    }
  };
  if (fullBlocks == 1) {
    runBlock(Index(), accs);
  } else if (fullBlocks > 1) {
    accs = loops.buildLoop(loops.constantI64(0),
                           loops.constantI64(fullBlocks * block), block, accs,
                           [&](Index start, ValueRange carried) {
                             SmallVector<Value> next(carried);
                             runBlock(start, next);
                             return next;
                           });
  }
  int64_t used = fullBlocks > 0 ? unroll : 0;
  int64_t u = 0;
  for (int64_t start = fullBlocks * block; start < size;
       start += numLanes, ++u) {
    Index place = loops.constantIndex(start, std::min(numLanes, size - start));
    body(place, MutableArrayRef<Value>(accs).slice(u * numAccs, numAccs));
  }
  used = std::max(used, u);
  SmallVector<Value> result(accs.begin(), accs.begin() + numAccs);
  for (int64_t u = 1; u < used; ++u)
    for (size_t acc = 0; acc < numAccs; ++acc)
      result[acc] = combine(acc, result[acc], accs[u * numAccs + acc]);
  return result;
}

void NestBuilder::buildVectors(int64_t size, int64_t unroll, VectorBody body) {
  buildVectors(size, unroll, {}, body,
               [](size_t, Value lhs, Value) { return lhs; });
}

SmallVector<Value> NestBuilder::buildChains(
    int64_t count, int64_t chains, ValueRange init, VectorBody body,
    llvm::function_ref<Value(size_t, Value, Value)> combine) {
  const size_t numAccs = init.size();
  SmallVector<Value> accs;
  for (int64_t chain = 0; chain < chains; ++chain)
    llvm::append_range(accs, init);
  accs = loops.buildCountedLoop(
      count / chains, accs, [&](Index step, ValueRange carried) {
        SmallVector<Value> next(carried);
        Index first = loops.mulIndex(step, chains);
        for (int64_t chain = 0; chain < chains; ++chain)
          body(loops.addIndex(first, chain),
               MutableArrayRef<Value>(next).slice(chain * numAccs, numAccs));
        return next;
      });
  for (int64_t i = count / chains * chains; i < count; ++i)
    body(loops.constantIndex(i),
         MutableArrayRef<Value>(accs).take_front(numAccs));
  for (int64_t chain = 1; chain < chains; ++chain)
    for (size_t acc = 0; acc < numAccs; ++acc)
      accs[acc] = combine(acc, accs[acc], accs[chain * numAccs + acc]);
  accs.truncate(numAccs);
  return accs;
}

void NestBuilder::forEachUnit(UnitRange range,
                              llvm::function_ref<void(Index)> body) {
  if (!range.low) {
    loops.buildCountedLoop(plan.units, {}, [&](Index unit, ValueRange) {
      body(unit);
      return SmallVector<Value>();
    });
    return;
  }
  loops.buildLoop(range.low, range.high, 1, {}, [&](Index unit, ValueRange) {
    body(unit);
    return SmallVector<Value>();
  });
}

void NestBuilder::buildBlock(
    const Index &place, int64_t columns,
    llvm::function_ref<void(const Index &, int64_t)> body) {
  int64_t blocks = (columns + columnBlock - 1) / columnBlock;
  int64_t last = columns - (blocks - 1) * columnBlock;
  if (blocks == 1)
    return body(Index(), columns);
  Index start = loops.mulIndex(place, columnBlock);
  if (last == columnBlock)
    return body(start, columnBlock);
  Value lastBlock = loops.constantI64(blocks - 1);
  Value isInner =
      math.compareInt(arith::CmpIPredicate::slt, place.value, lastBlock);
  loops.buildIf(isInner,
                [&] { body(loops.makeIndex(start.value), columnBlock); });
  Value isLast =
      math.compareInt(arith::CmpIPredicate::eq, place.value, lastBlock);
  loops.buildIf(isLast, [&] { body(loops.makeIndex(start.value), last); });
}

} // namespace shardc
