//===- GpuNestBuilder.cpp - One nest on a grid ----------------------------===//

#include "GpuNestBuilder.h"

using namespace mlir;

namespace shardc {

void GpuNestBuilder::build(Value nestBlock) {
  emitter.startNest(gpuLanes);
  emitter.setFlat(plan.isFlat);
  switch (nest.kind) {
  case NestKind::Map:
  case NestKind::Gemm:
    return buildMap(nestBlock);
  case NestKind::Rows:
    return buildRows(nestBlock);
  case NestKind::Columns:
    return buildColumns(nestBlock);
  }
}

Value GpuNestBuilder::isBelow(Value value, int64_t bound) {
  return math.compareInt(arith::CmpIPredicate::slt, value,
                         emitter.constantI64(bound));
}

Value GpuNestBuilder::both(Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return builder.create<arith::AndIOp>(loc, lhs, rhs);
}

void GpuNestBuilder::buildIf(Value condition, llvm::function_ref<void()> body) {
  if (condition)
    emitter.buildIf(condition, body);
  else
    body();
}

GpuNestBuilder::Values GpuNestBuilder::stride(Value first, int64_t end,
                                              int64_t stride, ValueRange init,
                                              NestEmitter::LoopBody body) {
  if (end == stride)
    return body(emitter.makeIndex(first), init);
  if (end < stride && init.empty()) {
    emitter.buildIf(isBelow(first, end),
                    [&] { body(emitter.makeIndex(first), init); });
    return {};
  }
  return emitter.buildLoop(first, emitter.constantI64(end), stride, init, body);
}

IndexList GpuNestBuilder::getPlace(const Index &step, ArrayRef<int64_t> sizes) {
  int64_t dim = getLastLongDim(sizes);
  if (dim < 0)
    return IndexList(sizes.size());
  IndexList place(sizes.size());
  if (plan.isFlat) {
    place[dim] = step;
  } else {
    SmallVector<int64_t> vectors(sizes);
    vectors[dim] /= plan.lanes;
    place = emitter.delinearize(step, vectors);
  }
  if (plan.lanes == 1)
    return place;
  place[dim] = emitter.mulIndex(place[dim], plan.lanes);
  if (!place[dim].value)
    place[dim].value = emitter.constantI64(0);
  place[dim].lanes = plan.lanes;
  return place;
}

void GpuNestBuilder::buildMap(Value nestBlock) {
  Value threads = emitter.constantI64(block.threads);
  Value first = math.add(math.mul(nestBlock, threads), block.getThread());
  stride(first, plan.units, plan.blocks * block.threads, {},
         [&](Index step, ValueRange) -> Values {
           storeFullResults(emitter, nest, buffers, getPlace(step, nest.shape));
           return {};
         });
  // What is left over of a flat nest.
  int64_t done = plan.units * plan.lanes;
  int64_t rest = getNumElements(nest.shape) - done;
  if (rest == 0)
    return;
  emitter.buildIf(isBelow(first, rest), [&] {
    IndexList place(nest.shape.size());
    place[getLastLongDim(nest.shape)] =
        emitter.addIndex(emitter.makeIndex(first), done);
    storeFullResults(emitter, nest, buffers, place);
  });
}

GpuNestBuilder::Values
GpuNestBuilder::getIdentities(ArrayRef<ReduceOp> reductions, bool hasLanes) {
  Values identities;
  for (ReduceOp reduce : reductions) {
    Value identity = emitter.getIdentity(
        reduce.getKind(), NestEmitter::getComputeType(reduce.getResult()));
    identities.push_back(hasLanes ? math.splat(identity) : identity);
  }
  return identities;
}

void GpuNestBuilder::accumulate(ArrayRef<ReduceOp> reductions,
                                ArrayRef<Index> index,
                                MutableArrayRef<Value> accs) {
  for (auto [op, acc] : llvm::zip_equal(reductions, accs)) {
    ReduceOp reduce = op;
    Value value = emitter.evaluate(reduce.getOperand(), index);
    acc = emitter.combine(reduce.getKind(), acc, value);
  }
}

} // namespace shardc
