//===- MapBuilder.cpp - Elementwise nests ---------------------------------===//

#include "MapBuilder.h"

using namespace mlir;

namespace shardc {

void MapBuilder::build(UnitRange range) {
  if (plan.isFlat)
    buildFlat(range);
  else if (plan.isScalar)
    buildScalar(range);
  else
    buildVectorised(range);
}

void MapBuilder::buildFlat(UnitRange range) {
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
                                              loops.constantI64(blocked));
  loops.buildLoop(range.low, high, block, {}, [&](Index start, ValueRange) {
    for (int64_t u = 0; u < unroll; ++u) {
      Index place = loops.addIndex(start, u * numLanes);
      place.lanes = numLanes;
      body(place);
    }
    return SmallVector<Value>();
  });
  if (blocked == plan.units)
    return;
  Value isLast = math.compareInt(arith::CmpIPredicate::eq, range.high,
                                 loops.constantI64(plan.units));
  loops.buildIf(isLast, [&] {
    for (int64_t start = blocked; start < plan.units; start += numLanes) {
      Index place = loops.makeIndex(loops.constantI64(start));
      place.lanes = std::min(numLanes, plan.units - start);
      body(place);
    }
  });
}

void MapBuilder::buildScalar(UnitRange range) {
  forEachUnit(range, [&](Index unit) {
    storeFull(loops.delinearize(unit, nest.shape));
  });
}

void MapBuilder::buildVectorised(UnitRange range) {
  int64_t laneDim = getLastLongDim(nest.shape);
  if (laneDim < 0)
    return storeFull(IndexList(nest.shape.size()));
  SmallVector<int64_t> outerSizes(nest.shape);
  outerSizes[laneDim] = 1;
  forEachUnit(range, [&](Index unit) {
    IndexList index = loops.delinearize(unit, outerSizes);
    buildVectors(nest.shape[laneDim], 2,
                 [&](Index place, MutableArrayRef<Value>) {
                   IndexList full = index;
                   full[laneDim] = place;
                   storeFull(full);
                 });
  });
}

} // namespace shardc
