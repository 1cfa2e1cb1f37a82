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
  SmallVector<int64_t> sizes = splitShape(nest).kept;
  int64_t laneDim = getLastLongDim(sizes);
  int64_t size = sizes[laneDim];
  sizes[laneDim] = (size + columnBlock - 1) / columnBlock;
  forEachUnit(range, [&](Index unit) {
    IndexList outer = emitter.delinearize(unit, sizes);
    buildBlock(outer[laneDim], size, [&](const Index &start, int64_t columns) {
      SmallVector<Index> places;
      for (int64_t offset = 0; offset < columns; offset += numLanes) {
        Index place = emitter.addIndex(start, offset);
        if (!place.value)
          place.value = emitter.constantI64(0);
        place.lanes = std::min(numLanes, columns - offset);
        places.push_back(place);
      }
      buildColumnBlock(outer, laneDim, places);
    });
  });
}

void NestBuilder::buildColumnBlock(ArrayRef<Index> outer, int64_t dim,
                                   ArrayRef<Index> columns) {
  int64_t rows = getNumElements(splitShape(nest).reduced);
  SmallVector<IndexList> places;
  for (const Index &column : columns) {
    places.emplace_back(outer.begin(), outer.end());
    places.back()[dim] = column;
  }
  for (const NestPass &pass : getPasses(nest)) {
    SmallVector<Value> sums = addRows(rows, pass, places);
    auto sum = sums.begin();
    for (const IndexList &place : places)
      for (ReduceOp reduce : pass.reductions)
        emitter.preset(reduce.getResult(), place, *sum++);
  }
  for (const IndexList &place : places)
    storeOuter(place);
}

/// The sums of a pass over so many rows, for each of `places` those of its
/// reductions.
SmallVector<Value> NestBuilder::addRows(int64_t rows, const NestPass &pass,
                                        ArrayRef<IndexList> places) {
  ArrayRef<ReduceOp> reductions = pass.reductions;
  SmallVector<int64_t> sizes = splitShape(nest).reduced;
  SmallVector<Value> identities;
  for (size_t place = 0; place < places.size(); ++place)
    for (ReduceOp reduce : reductions)
      identities.push_back(math.splat(emitter.getIdentity(
          reduce.getKind(), NestEmitter::getComputeType(reduce.getResult()))));
  auto addRow = [&](Index row, MutableArrayRef<Value> sums) {
    IndexList inner = emitter.delinearize(row, sizes);
    auto sum = sums.begin();
    for (const IndexList &place : places) {
      IndexList index = joinIndex(nest, place, inner);
      for (ReduceOp reduce : reductions) {
        Value value = emitter.evaluate(reduce.getOperand(), index);
        *sum = emitter.combine(reduce.getKind(), *sum, value);
        ++sum;
      }
      if (pass.stores)
        storeFull(index);
    }
  };

  // As many chains of additions as hide the latency of one.
  const size_t numSums = identities.size();
  int64_t chains = numSums == 0 ? 1 : numSums == 1 ? 4 : numSums < 4 ? 2 : 1;
  chains = std::max<int64_t>(1, std::min(chains, rows));
  return buildChains(rows, chains, identities, addRow,
                     [&](size_t position, Value left, Value right) {
                       ReduceOp reduce =
                           reductions[position % reductions.size()];
                       return emitter.combine(reduce.getKind(), left, right);
                     });
}

} // namespace shardc
