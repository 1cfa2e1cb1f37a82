//===- NestBuilder.cpp - Elementwise nests --------------------------------===//

#include "NestBuilder.h"

using namespace mlir;

namespace shardc {

void NestBuilder::build(UnitRange range) {
  emitter.startNest(numLanes);
  emitter.setFlat(plan.isFlat);
  switch (nest.kind) {
  case NestKind::Map:
    if (plan.isFlat)
      buildFlatMap(range);
    else if (plan.isScalar)
      buildScalarMap(range);
    else
      buildMap(range);
    return;
  case NestKind::Rows:
    return buildRows(range);
  case NestKind::Columns:
    return buildColumns(range);
  case NestKind::Gemm:
    if (plan.isInnerProduct)
      buildInnerProducts(range);
    else
      buildGemm(range);
    return;
  }
}

void NestBuilder::storeFull(ArrayRef<Index> index) {
  storeFullResults(emitter, nest, buffers, index);
}

void NestBuilder::storeOuter(ArrayRef<Index> index) {
  storeOuterResults(emitter, nest, buffers, index);
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
      Index place = emitter.addIndex(start, u * numLanes);
      if (!place.value)
        place.value = emitter.constantI64(0);
      place.lanes = numLanes;
      body(place, accs.slice(u * numAccs, numAccs));
    }
  };
  if (fullBlocks == 1) {
    runBlock(Index(), accs);
  } else if (fullBlocks > 1) {
    accs = emitter.buildLoop(emitter.constantI64(0),
                             emitter.constantI64(fullBlocks * block), block,
                             accs, [&](Index start, ValueRange carried) {
                               SmallVector<Value> next(carried);
                               runBlock(start, next);
                               return next;
                             });
  }
  int64_t used = fullBlocks > 0 ? unroll : 0;
  int64_t u = 0;
  for (int64_t start = fullBlocks * block; start < size;
       start += numLanes, ++u) {
    Index place =
        emitter.constantIndex(start, std::min(numLanes, size - start));
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
  accs = emitter.buildCountedLoop(
      count / chains, accs, [&](Index step, ValueRange carried) {
        SmallVector<Value> next(carried);
        Index first = emitter.mulIndex(step, chains);
        for (int64_t chain = 0; chain < chains; ++chain)
          body(emitter.addIndex(first, chain),
               MutableArrayRef<Value>(next).slice(chain * numAccs, numAccs));
        return next;
      });
  for (int64_t i = count / chains * chains; i < count; ++i)
    body(emitter.constantIndex(i),
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
    emitter.buildCountedLoop(plan.units, {}, [&](Index unit, ValueRange) {
      body(unit);
      return SmallVector<Value>();
    });
    return;
  }
  emitter.buildLoop(range.low, range.high, 1, {}, [&](Index unit, ValueRange) {
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
  Index start = emitter.mulIndex(place, columnBlock);
  if (last == columnBlock)
    return body(start, columnBlock);
  Value lastBlock = emitter.constantI64(blocks - 1);
  Value isInner =
      math.compareInt(arith::CmpIPredicate::slt, place.value, lastBlock);
  emitter.buildIf(isInner,
                  [&] { body(emitter.makeIndex(start.value), columnBlock); });
  Value isLast =
      math.compareInt(arith::CmpIPredicate::eq, place.value, lastBlock);
  emitter.buildIf(isLast, [&] { body(emitter.makeIndex(start.value), last); });
}

void NestBuilder::buildFlatMap(UnitRange range) {
  constexpr int64_t unroll = 2;
  int64_t laneDim = getLastLongDim(nest.shape);
  auto body = [&](const Index &place) {
    IndexList index(nest.shape.size());
    if (laneDim >= 0)
      index[laneDim] = place;
    storeFull(index);
  };
  if (!range.low) {
    buildVectors(plan.units, unroll,
                 [&](Index place, MutableArrayRef<Value>) { body(place); });
    return;
  }
  const int64_t block = unroll * numLanes;
  int64_t blocked = plan.units / block * block;
  Value high = builder.create<arith::MinSIOp>(loc, range.high,
                                              emitter.constantI64(blocked));
  emitter.buildLoop(range.low, high, block, {}, [&](Index start, ValueRange) {
    for (int64_t u = 0; u < unroll; ++u) {
      Index place = emitter.addIndex(start, u * numLanes);
      place.lanes = numLanes;
      body(place);
    }
    return SmallVector<Value>();
  });
  if (blocked == plan.units)
    return;
  Value isLast = math.compareInt(arith::CmpIPredicate::eq, range.high,
                                 emitter.constantI64(plan.units));
  emitter.buildIf(isLast, [&] {
    for (int64_t start = blocked; start < plan.units; start += numLanes) {
      Index place = emitter.makeIndex(emitter.constantI64(start));
      place.lanes = std::min(numLanes, plan.units - start);
      body(place);
    }
  });
}

void NestBuilder::buildScalarMap(UnitRange range) {
  forEachUnit(range, [&](Index unit) {
    storeFull(emitter.delinearize(unit, nest.shape));
  });
}

void NestBuilder::buildMap(UnitRange range) {
  int64_t laneDim = getLastLongDim(nest.shape);
  if (laneDim < 0)
    return storeFull(IndexList(nest.shape.size()));
  SmallVector<int64_t> outerSizes(nest.shape);
  outerSizes[laneDim] = 1;
  forEachUnit(range, [&](Index unit) {
    IndexList index = emitter.delinearize(unit, outerSizes);
    buildVectors(nest.shape[laneDim], 2,
                 [&](Index place, MutableArrayRef<Value>) {
                   IndexList full = index;
                   full[laneDim] = place;
                   storeFull(full);
                 });
  });
}

} // namespace shardc
