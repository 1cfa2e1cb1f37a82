//===- ReductionBuilder.cpp - Nests of reductions -------------------------===//

#include "NestBuilder.h"

using namespace mlir;

namespace shardc {

void NestBuilder::buildRows(UnitRange range) {
  SplitShape split = splitShape(nest);
  forEachUnit(range, [&](Index unit) {
    buildRow(emitter.delinearize(unit, split.kept));
  });
}

void NestBuilder::buildRow(ArrayRef<Index> outer) {
  SmallVector<int64_t> reduced = splitShape(nest).reduced;
  int64_t laneDim = getLastLongDim(reduced);
  SmallVector<int64_t> otherSizes(reduced);
  int64_t lanesSize = 1, others = 1;
  if (laneDim >= 0) {
    lanesSize = reduced[laneDim];
    otherSizes[laneDim] = 1;
  }
  for (int64_t size : otherSizes)
    others *= size;
  if (plan.isFlat) {
    lanesSize *= others;
    others = 1;
    otherSizes.assign(otherSizes.size(), 1);
  }
  for (const NestPass &pass : getPasses(nest)) {
    ArrayRef<ReduceOp> reductions = pass.reductions;
    auto visit = [&](ArrayRef<Index> index, MutableArrayRef<Value> accs,
                     int64_t lanes) {
      for (auto [op, acc] : llvm::zip(reductions, accs)) {
        ReduceOp reduce = op;
        Value value = emitter.evaluate(reduce.getOperand(), index);
        ReductionKind kind = reduce.getKind();
        if (VectorMath::isVector(acc)) {
          Value identity =
              emitter.getIdentity(kind, VectorMath::getElement(acc));
          value = emitter.maskLanes(math.splat(value), lanes, identity);
        }
        acc = emitter.combine(kind, acc, value);
      }
      if (pass.stores)
        storeFull(index);
    };
    SmallVector<Value> accs;
    for (ReduceOp reduce : reductions) {
      Value identity = emitter.getIdentity(
          reduce.getKind(), NestEmitter::getComputeType(reduce.getResult()));
      accs.push_back(laneDim >= 0 ? math.splat(identity) : identity);
    }
    if (laneDim < 0) {
      visit(joinIndex(nest, outer, IndexList(reduced.size())), accs, 0);
    } else {
      const SmallVector<Value> identities = accs;
      accs = emitter.buildCountedLoop(
          others, accs, [&](Index other, ValueRange carried) {
            IndexList inner = emitter.delinearize(other, otherSizes);
            // Every chain of vectors starts at the identity; what came before
            // is added once, at the end.
            SmallVector<Value> sums = buildVectors(
                lanesSize, reductions.empty() ? 2 : 4, identities,
                [&](Index place, MutableArrayRef<Value> accs) {
                  inner[laneDim] = place;
                  visit(joinIndex(nest, outer, inner), accs, place.lanes);
                },
                [&](size_t position, Value lhs, Value rhs) {
                  ReduceOp reduce = reductions[position];
                  return emitter.combine(reduce.getKind(), lhs, rhs);
                });
            for (auto [position, reduce] : llvm::enumerate(reductions)) {
              ReduceOp op = reduce;
              sums[position] = emitter.combine(op.getKind(), carried[position],
                                               sums[position]);
            }
            return sums;
          });
    }
    for (auto [reduce, acc] : llvm::zip(reductions, accs)) {
      ReduceOp op = reduce;
      emitter.preset(op.getResult(), outer,
                     emitter.combineLanes(op.getKind(), acc));
    }
  }
  storeOuter(outer);
}

void NestBuilder::buildColumns(UnitRange range) {
  SmallVector<int64_t> kept = splitShape(nest).kept;
  int64_t laneDim = getLastLongDim(kept);
  int64_t size = kept[laneDim];
  const int64_t block = 4 * numLanes;
  int64_t blocks = (size + block - 1) / block;
  SmallVector<int64_t> sizes(kept);
  sizes[laneDim] = blocks;
  // `start` is the first of `columns` columns.
  auto buildBlock = [&](ArrayRef<Index> outer, const Index &start,
                        int64_t columns) {
    SmallVector<Index> places;
    for (int64_t offset = 0; offset < columns; offset += numLanes) {
      Index place = emitter.addIndex(start, offset);
      if (!place.value)
        place.value = emitter.constantI64(0);
      place.lanes = std::min(numLanes, columns - offset);
      places.push_back(place);
    }
    buildColumnBlock(outer, laneDim, places);
  };
  forEachUnit(range, [&](Index unit) {
    IndexList outer = emitter.delinearize(unit, sizes);
    int64_t last = size - (blocks - 1) * block;
    if (blocks == 1)
      return buildBlock(outer, Index(), size);
    Index start = emitter.mulIndex(outer[laneDim], block);
    if (last == block)
      return buildBlock(outer, start, block);
    Value lastBlock = emitter.constantI64(blocks - 1);
    Value place = outer[laneDim].value;
    Value isInner =
        math.compareInt(arith::CmpIPredicate::slt, place, lastBlock);
    emitter.buildIf(isInner, [&] {
      buildBlock(outer, emitter.makeIndex(start.value), block);
    });
    Value isLast = math.compareInt(arith::CmpIPredicate::eq, place, lastBlock);
    emitter.buildIf(isLast, [&] {
      buildBlock(outer, emitter.makeIndex(start.value), last);
    });
  });
}

void NestBuilder::buildColumnBlock(ArrayRef<Index> outer, int64_t dim,
                                   ArrayRef<Index> columns) {
  SmallVector<int64_t> reduced = splitShape(nest).reduced;
  int64_t count = getNumElements(reduced);
  SmallVector<IndexList> places;
  for (const Index &column : columns) {
    places.emplace_back(outer.begin(), outer.end());
    places.back()[dim] = column;
  }
  for (const NestPass &pass : getPasses(nest)) {
    ArrayRef<ReduceOp> reductions = pass.reductions;
    SmallVector<Value> identities;
    for (size_t column = 0; column < columns.size(); ++column)
      for (ReduceOp reduce : reductions)
        identities.push_back(math.splat(emitter.getIdentity(
            reduce.getKind(),
            NestEmitter::getComputeType(reduce.getResult()))));
    auto addRow = [&](const Index &row, MutableArrayRef<Value> accs) {
      IndexList inner = emitter.delinearize(row, reduced);
      auto acc = accs.begin();
      for (const IndexList &place : places) {
        IndexList index = joinIndex(nest, place, inner);
        for (ReduceOp reduce : reductions) {
          Value value = emitter.evaluate(reduce.getOperand(), index);
          *acc = emitter.combine(reduce.getKind(), *acc, value);
          ++acc;
        }
        if (pass.stores)
          storeFull(index);
      }
    };
    // As many sums side by side as hide the latency of an addition.
    const size_t numSums = identities.size();
    int64_t chains = numSums == 0 ? 1 : numSums == 1 ? 4 : numSums < 4 ? 2 : 1;
    chains = std::min(chains, count);
    SmallVector<Value> accs;
    for (int64_t chain = 0; chain < chains; ++chain)
      llvm::append_range(accs, identities);
    accs = emitter.buildCountedLoop(
        count / chains, accs, [&](Index step, ValueRange carried) {
          SmallVector<Value> next(carried);
          Index row = emitter.mulIndex(step, chains);
          for (int64_t chain = 0; chain < chains; ++chain)
            addRow(
                emitter.addIndex(row, chain),
                MutableArrayRef<Value>(next).slice(chain * numSums, numSums));
          return next;
        });
    for (int64_t row = count / chains * chains; row < count; ++row)
      addRow(emitter.constantIndex(row),
             MutableArrayRef<Value>(accs).take_front(numSums));
    for (int64_t chain = 1; chain < chains; ++chain)
      for (size_t sum = 0; sum < numSums; ++sum) {
        ReduceOp reduce = reductions[sum % reductions.size()];
        accs[sum] = emitter.combine(reduce.getKind(), accs[sum],
                                    accs[chain * numSums + sum]);
      }
    auto acc = accs.begin();
    for (const IndexList &place : places)
      for (ReduceOp reduce : reductions)
        emitter.preset(reduce.getResult(), place, *acc++);
  }
  for (const IndexList &place : places)
    storeOuter(place);
}

} // namespace shardc
