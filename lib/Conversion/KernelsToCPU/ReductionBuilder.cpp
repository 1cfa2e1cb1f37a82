//===- ReductionBuilder.cpp - Nests of reductions -------------------------===//

#include "ReductionBuilder.h"

using namespace mlir;

namespace shardc {

void ReductionBuilder::build(UnitRange range) {
  if (nest.kind == NestKind::Rows)
    buildRows(range);
  else
    buildColumns(range);
}

void ReductionBuilder::buildRows(UnitRange range) {
  SplitShape split = splitShape(nest);
  forEachUnit(range, [&](Index unit) {
    buildRow(loops.delinearize(unit, split.kept));
  });
}

void ReductionBuilder::buildRow(ArrayRef<Index> outer) {
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
          Value identity = math.getIdentity(kind, VectorMath::getElement(acc));
          value = math.maskLanes(math.splat(value), lanes, identity);
        }
        acc = math.combine(kind, acc, value);
      }
      if (pass.stores)
        storeFull(index);
    };
    SmallVector<Value> accs;
    for (ReduceOp reduce : reductions) {
      Value identity = math.getIdentity(reduce.getKind(),
                                        getComputeType(reduce.getResult()));
      accs.push_back(laneDim >= 0 ? math.splat(identity) : identity);
    }
    if (laneDim < 0) {
      visit(joinIndex(nest, outer, IndexList(reduced.size())), accs, 0);
    } else {
      const SmallVector<Value> identities = accs;
      accs = loops.buildCountedLoop(
          others, accs, [&](Index other, ValueRange carried) {
            IndexList inner = loops.delinearize(other, otherSizes);
            // Every chain of vectors starts at the identity; the sum of the
            // runs before is added once, at the end.
            SmallVector<Value> sums = buildVectors(
                lanesSize, reductions.empty() ? 2 : 4, identities,
                [&](Index place, MutableArrayRef<Value> accs) {
                  inner[laneDim] = place;
                  visit(joinIndex(nest, outer, inner), accs, place.lanes);
                },
                [&](size_t position, Value lhs, Value rhs) {
                  ReduceOp reduce = reductions[position];
                  return math.combine(reduce.getKind(), lhs, rhs);
                });
            for (auto [position, reduce] : llvm::enumerate(reductions)) {
              ReduceOp op = reduce;
              sums[position] =
                  math.combine(op.getKind(), carried[position], sums[position]);
            }
            return sums;
          });
    }
    for (auto [reduce, acc] : llvm::zip(reductions, accs)) {
      ReduceOp op = reduce;
      emitter.preset(op.getResult(), outer,
                     math.combineLanes(op.getKind(), acc));
    }
  }
  storeOuter(outer);
}

void ReductionBuilder::buildColumns(UnitRange range) {
  SmallVector<int64_t> sizes = splitShape(nest).kept;
  int64_t laneDim = getLastLongDim(sizes);
  int64_t size = sizes[laneDim];
  sizes[laneDim] = (size + columnBlock - 1) / columnBlock;
  forEachUnit(range, [&](Index unit) {
    IndexList outer = loops.delinearize(unit, sizes);
    buildBlock(outer[laneDim], size, [&](const Index &start, int64_t columns) {
      SmallVector<Index> places;
      for (int64_t offset = 0; offset < columns; offset += numLanes) {
        Index place = loops.addIndex(start, offset);
        if (!place.value)
          place.value = loops.constantI64(0);
        place.lanes = std::min(numLanes, columns - offset);
        places.push_back(place);
      }
      buildColumnBlock(outer, laneDim, places);
    });
  });
}

void ReductionBuilder::buildColumnBlock(ArrayRef<Index> outer, int64_t dim,
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

SmallVector<Value> ReductionBuilder::addRows(int64_t rows, const NestPass &pass,
                                             ArrayRef<IndexList> places) {
  ArrayRef<ReduceOp> reductions = pass.reductions;
  SmallVector<int64_t> sizes = splitShape(nest).reduced;
  SmallVector<Value> identities;
  for (size_t place = 0; place < places.size(); ++place)
    for (ReduceOp reduce : reductions)
      identities.push_back(math.splat(math.getIdentity(
          reduce.getKind(), getComputeType(reduce.getResult()))));
  auto addRow = [&](Index row, MutableArrayRef<Value> sums) {
    IndexList inner = loops.delinearize(row, sizes);
    auto sum = sums.begin();
    for (const IndexList &place : places) {
      IndexList index = joinIndex(nest, place, inner);
      for (ReduceOp reduce : reductions) {
        Value value = emitter.evaluate(reduce.getOperand(), index);
        *sum = math.combine(reduce.getKind(), *sum, value);
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
                       return math.combine(reduce.getKind(), left, right);
                     });
}

} // namespace shardc
