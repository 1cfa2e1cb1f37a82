//===- GpuRows.cpp - Reductions over trailing dimensions on a grid --------===//
//
// A group of threads has a row: each takes turns with the row's vectors, then
// all exchange what they have. What one pass over a row computes and a later
// one needs stays in registers where there is little of it for each thread;
// longer rows are read and computed again.
//
//===----------------------------------------------------------------------===//

#include "GpuNestBuilder.h"

using namespace mlir;

namespace shardc {

void GpuNestBuilder::buildRows(Value nestBlock) {
  SmallVector<int64_t> kept = splitShape(nest).kept;
  Value groupThreads = emitter.constantI64(plan.groupThreads);
  Index member{
      builder.create<arith::RemUIOp>(loc, block.getThread(), groupThreads)};
  Value group =
      builder.create<arith::DivUIOp>(loc, block.getThread(), groupThreads);
  int64_t groups = block.threads / plan.groupThreads;
  // All threads take every turn, since groups of a warp reduce together: those
  // without a row compute the last one once more and store nothing.
  auto body = [&](Index base, ValueRange) -> Values {
    Value unit = math.add(base.value, group);
    Value isActive;
    if (plan.units % groups != 0) {
      isActive = isBelow(unit, plan.units);
      unit = math.min(unit, emitter.constantI64(plan.units - 1));
    }
    buildRow(emitter.delinearize(emitter.makeIndex(unit), kept), member,
             isActive);
    return {};
  };
  Value first = math.mul(nestBlock, emitter.constantI64(groups));
  int64_t perTurn = plan.blocks * groups;
  if (perTurn >= plan.units)
    body(emitter.makeIndex(first), {});
  else
    emitter.buildLoop(first, emitter.constantI64(plan.units), perTurn, {},
                      body);
}

void GpuNestBuilder::buildRow(ArrayRef<Index> outer, const Index &member,
                              Value isActive) {
  SmallVector<RowPart> parts;
  if (plan.keepsRows)
    parts = getParts(member);
  for (const NestPass &pass : getPasses(nest)) {
    Values accs = plan.keepsRows ? passParts(pass, outer, parts, isActive)
                                 : passRow(pass, outer, member, isActive);
    for (auto [op, acc] : llvm::zip_equal(pass.reductions, accs)) {
      ReduceOp reduce = op;
      emitter.preset(reduce.getResult(), outer,
                     block.combine(reduce.getKind(), acc, plan.groupThreads));
    }
  }
  if (nest.outerResults.empty())
    return;
  Value isFirst;
  if (plan.groupThreads > 1)
    isFirst = isBelow(member.value, 1);
  buildIf(both(isActive, isFirst),
          [&] { storeOuterResults(emitter, nest, buffers, outer); });
}

SmallVector<GpuNestBuilder::RowPart>
GpuNestBuilder::getParts(const Index &member) {
  SmallVector<RowPart> parts;
  for (int64_t done = 0; done < plan.steps; done += plan.groupThreads) {
    RowPart &part = parts.emplace_back();
    Value step = math.add(member.value, emitter.constantI64(done));
    // Threads beyond the last vector compute that one once more.
    if (done + plan.groupThreads > plan.steps) {
      part.isInRow = isBelow(step, plan.steps);
      step = math.min(step, emitter.constantI64(plan.steps - 1));
    }
    part.place = getPlace(emitter.makeIndex(step), splitShape(nest).reduced);
  }
  return parts;
}

GpuNestBuilder::Values GpuNestBuilder::passParts(const NestPass &pass,
                                                 ArrayRef<Index> outer,
                                                 ArrayRef<RowPart> parts,
                                                 Value isActive) {
  // Without loops: the emitter finds what it built for a part in the pass
  // before.
  Values accs = getIdentities(pass.reductions, plan.lanes > 1);
  for (const RowPart &part : parts) {
    IndexList index = joinIndex(nest, outer, part.place);
    Values next(accs);
    accumulate(pass.reductions, index, next);
    for (auto [acc, value] : llvm::zip_equal(accs, next))
      acc = part.isInRow
                ? builder.create<arith::SelectOp>(loc, part.isInRow, value, acc)
                : value;
    if (pass.stores)
      buildIf(both(isActive, part.isInRow),
              [&] { storeFullResults(emitter, nest, buffers, index); });
  }
  return combineLanes(pass.reductions, accs);
}

GpuNestBuilder::Values
GpuNestBuilder::combineLanes(ArrayRef<ReduceOp> reductions, Values values) {
  for (auto [op, value] : llvm::zip_equal(reductions, values)) {
    ReduceOp reduce = op;
    value = emitter.combineLanes(reduce.getKind(), value);
  }
  return values;
}

GpuNestBuilder::Values GpuNestBuilder::passRow(const NestPass &pass,
                                               ArrayRef<Index> outer,
                                               const Index &member,
                                               Value isActive) {
  ArrayRef<ReduceOp> reductions = pass.reductions;
  SmallVector<int64_t> reduced = splitShape(nest).reduced;
  auto visit = [&](ArrayRef<Index> inner, MutableArrayRef<Value> accs) {
    IndexList index = joinIndex(nest, outer, inner);
    accumulate(reductions, index, accs);
    if (pass.stores)
      buildIf(isActive,
              [&] { storeFullResults(emitter, nest, buffers, index); });
  };
  auto visitStep = [&](Index step, ValueRange carried) {
    Values next(carried);
    visit(getPlace(step, reduced), next);
    return next;
  };
  bool hasLanes = plan.lanes > 1;
  Values accs = stride(member.value, plan.steps, plan.groupThreads,
                       getIdentities(reductions, hasLanes), visitStep);
  accs = combineLanes(reductions, accs);
  // What is left over of a flat nest.
  int64_t done = plan.steps * plan.lanes;
  int64_t count = getNumElements(reduced);
  if (done == count)
    return accs;
  Value first = math.add(member.value, emitter.constantI64(done));
  return emitter.buildLoop(first, emitter.constantI64(count), plan.groupThreads,
                           accs, [&](Index place, ValueRange carried) {
                             IndexList inner(reduced.size());
                             inner[getLastLongDim(reduced)] = place;
                             Values next(carried);
                             visit(inner, next);
                             return next;
                           });
}

} // namespace shardc
