//===- GpuNestBuilder.cpp - One nest on a grid ----------------------------===//

#include "GpuNestBuilder.h"

#include "GpuGemmBuilder.h"

using namespace mlir;

namespace shardc {

void GpuNestBuilder::build(Value nestBlock) {
  emitter.startNest(gpuLanes, plan.isFlat);
  switch (nest.kind) {
  case NestKind::Map:
    return buildMap(nestBlock);
  case NestKind::Gemm:
    return buildGemm(nestBlock);
  case NestKind::Rows:
    return buildRows(nestBlock);
  case NestKind::Columns:
    return buildColumns(nestBlock);
  }
}

Value GpuNestBuilder::isBelow(Value value, int64_t bound) {
  return math.compareInt(arith::CmpIPredicate::slt, value,
                         loops.constantI64(bound));
}

Value GpuNestBuilder::both(Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return builder.create<arith::AndIOp>(loc, lhs, rhs);
}

void GpuNestBuilder::buildIf(Value condition, llvm::function_ref<void()> body) {
  if (condition)
    loops.buildIf(condition, body);
  else
    body();
}

GpuNestBuilder::Values GpuNestBuilder::stride(Value first, int64_t end,
                                              int64_t stride, ValueRange init,
                                              LoopBuilder::LoopBody body) {
  if (end == stride)
    return body(loops.makeIndex(first), init);
  if (end < stride && init.empty()) {
    loops.buildIf(isBelow(first, end),
                  [&] { body(loops.makeIndex(first), init); });
    return {};
  }
  return loops.buildLoop(first, loops.constantI64(end), stride, init, body);
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
    place = loops.delinearize(step, vectors);
  }
  if (plan.lanes == 1)
    return place;
  place[dim] = loops.mulIndex(place[dim], plan.lanes);
  if (!place[dim].value)
    place[dim].value = loops.constantI64(0);
  place[dim].lanes = plan.lanes;
  return place;
}

void GpuNestBuilder::buildMap(Value nestBlock) {
  Value threads = loops.constantI64(block.threads);
  Value first = math.add(math.mul(nestBlock, threads), block.getThread());
  stride(first, plan.units, plan.blocks * block.threads, {},
         [&](Index step, ValueRange) -> Values {
           storeFullResults(emitter, nest, buffers, getPlace(step, nest.shape));
           return {};
         });
  // The remainder of a flat nest.
  int64_t done = plan.units * plan.lanes;
  int64_t rest = getNumElements(nest.shape) - done;
  if (rest == 0)
    return;
  loops.buildIf(isBelow(first, rest), [&] {
    IndexList place(nest.shape.size());
    place[getLastLongDim(nest.shape)] =
        loops.addIndex(loops.makeIndex(first), done);
    storeFullResults(emitter, nest, buffers, place);
  });
}

void GpuNestBuilder::buildGemm(Value nestBlock) {
  GpuGemmBuilder gemm(emitter, block, plan, buffers);
  stride(nestBlock, plan.units, plan.blocks, {},
         [&](Index tile, ValueRange) -> Values {
           gemm.buildTile(tile);
           return {};
         });
}

GpuNestBuilder::Values
GpuNestBuilder::getIdentities(ArrayRef<ReduceOp> reductions, bool hasLanes) {
  Values identities;
  for (ReduceOp reduce : reductions) {
    Value identity =
        math.getIdentity(reduce.getKind(), getComputeType(reduce.getResult()));
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
    acc = math.combine(reduce.getKind(), acc, value);
  }
}

//===----------------------------------------------------------------------===//
// Reductions over trailing dimensions
//
// A group of threads has a row: each thread takes turns with the row's vectors,
// then all exchange their results. A value that two passes over a row need
// stays in registers if each thread has few of them; for longer rows it is
// computed again.
//
//===----------------------------------------------------------------------===//

void GpuNestBuilder::buildRows(Value nestBlock) {
  SmallVector<int64_t> kept = splitShape(nest).kept;
  Value groupThreads = loops.constantI64(plan.groupThreads);
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
      unit = math.min(unit, loops.constantI64(plan.units - 1));
    }
    buildRow(loops.delinearize(loops.makeIndex(unit), kept), member, isActive);
    return {};
  };
  Value first = math.mul(nestBlock, loops.constantI64(groups));
  int64_t perTurn = plan.blocks * groups;
  if (perTurn >= plan.units)
    body(loops.makeIndex(first), {});
  else
    loops.buildLoop(first, loops.constantI64(plan.units), perTurn, {}, body);
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
    Value step = math.add(member.value, loops.constantI64(done));
    // Threads beyond the last vector compute that one once more.
    if (done + plan.groupThreads > plan.steps) {
      part.isInRow = isBelow(step, plan.steps);
      step = math.min(step, loops.constantI64(plan.steps - 1));
    }
    part.place = getPlace(loops.makeIndex(step), splitShape(nest).reduced);
  }
  return parts;
}

GpuNestBuilder::Values GpuNestBuilder::passParts(const NestPass &pass,
                                                 ArrayRef<Index> outer,
                                                 ArrayRef<RowPart> parts,
                                                 Value isActive) {
  // Without loops: the emitter finds the values that it built for a part in the
  // pass before.
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
    value = math.combineLanes(reduce.getKind(), value);
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
  // The remainder of a flat nest.
  int64_t done = plan.steps * plan.lanes;
  int64_t count = getNumElements(reduced);
  if (done == count)
    return accs;
  Value first = math.add(member.value, loops.constantI64(done));
  return loops.buildLoop(first, loops.constantI64(count), plan.groupThreads,
                         accs, [&](Index place, ValueRange carried) {
                           IndexList inner(reduced.size());
                           inner[getLastLongDim(reduced)] = place;
                           Values next(carried);
                           visit(inner, next);
                           return next;
                         });
}

//===----------------------------------------------------------------------===//
// Reductions over leading dimensions
//
// A block of threads is a rectangle: neighbours in a row of threads have
// neighbouring columns, and threads of one column take turns with the rows.
// Each thread adds up its rows; then the sums of each column are added in
// shared memory.
//
//===----------------------------------------------------------------------===//

/// Rows that a thread has in flight, and ops of a nest up to which it has more
/// than one: each has registers of its own.
static constexpr int64_t rowsInFlight = 4;
static constexpr size_t mostOpsInFlight = 8;

/// Rows of a column that a thread combines at a time in shared memory: all are
/// in registers at once.
static constexpr int64_t mostSharedRows = 8;

void GpuNestBuilder::buildColumns(Value nestBlock) {
  stride(nestBlock, plan.units, plan.blocks, {},
         [&](Index unit, ValueRange) -> Values {
           buildColumnBlock(unit);
           return {};
         });
}

void GpuNestBuilder::buildColumnBlock(const Index &unit) {
  SmallVector<int64_t> kept = splitShape(nest).kept;
  int64_t dim = getLastLongDim(kept);
  int64_t columns = dim < 0 ? 1 : kept[dim];
  SmallVector<int64_t> sizes(kept);
  if (dim >= 0)
    sizes[dim] = llvm::divideCeil(columns, plan.columns);
  IndexList outer = loops.delinearize(unit, sizes);

  int64_t across = plan.columns / plan.lanes;
  int64_t rowsAtOnce = block.threads / across;
  Value width = loops.constantI64(across);
  Value x = builder.create<arith::RemUIOp>(loc, block.getThread(), width);
  Value y = builder.create<arith::DivUIOp>(loc, block.getThread(), width);
  // The first of this thread's columns in the block, and in the tensor. Threads
  // beyond the last column compute that one once more and store nothing.
  Value within = math.mul(x, loops.constantI64(plan.lanes));
  Value isActive;
  if (dim >= 0) {
    Value column = within;
    if (outer[dim].value)
      column = math.add(
          math.mul(outer[dim].value, loops.constantI64(plan.columns)), within);
    if (columns % plan.columns != 0) {
      isActive = isBelow(column, columns);
      column = math.min(column, loops.constantI64(columns - plan.lanes));
    }
    outer[dim] = loops.makeIndex(column);
    outer[dim].lanes = plan.lanes > 1 ? plan.lanes : 0;
  }

  for (const NestPass &pass : getPasses(nest)) {
    Values accs = passColumns(pass, outer, y, rowsAtOnce, isActive);
    for (auto [op, acc] : llvm::zip_equal(pass.reductions, accs)) {
      ReduceOp reduce = op;
      emitter.preset(reduce.getResult(), outer,
                     combineRows(reduce.getKind(), acc, within, y, rowsAtOnce));
    }
  }
  if (!nest.outerResults.empty())
    buildIf(both(isActive, isBelow(y, 1)),
            [&] { storeOuterResults(emitter, nest, buffers, outer); });
}

GpuNestBuilder::Values GpuNestBuilder::passColumns(const NestPass &pass,
                                                   ArrayRef<Index> outer,
                                                   Value y, int64_t rowsAtOnce,
                                                   Value isActive) {
  SmallVector<int64_t> reduced = splitShape(nest).reduced;
  auto addRow = [&](Value row, Value isThere, Values &accs) {
    IndexList index = joinIndex(
        nest, outer, loops.delinearize(loops.makeIndex(row), reduced));
    Values next(accs);
    accumulate(pass.reductions, index, next);
    for (auto [acc, value] : llvm::zip_equal(accs, next))
      acc = isThere ? builder.create<arith::SelectOp>(loc, isThere, value, acc)
                    : value;
    if (pass.stores)
      buildIf(isActive,
              [&] { storeFullResults(emitter, nest, buffers, index); });
  };
  Values accs = getIdentities(pass.reductions, plan.lanes > 1);
  // What is stored may be what the next row reads.
  if (pass.stores || nest.ops.size() > mostOpsInFlight)
    return stride(y, plan.steps, rowsAtOnce, accs,
                  [&](Index row, ValueRange carried) {
                    Values next(carried);
                    addRow(row.value, nullptr, next);
                    return next;
                  });
  int64_t done = 0;
  if (int64_t rounds = plan.steps / (rowsInFlight * rowsAtOnce)) {
    done = rounds * rowsInFlight * rowsAtOnce;
    accs = loops.buildLoop(
        loops.constantI64(0), loops.constantI64(done),
        rowsInFlight * rowsAtOnce, accs, [&](Index first, ValueRange carried) {
          Values next(carried);
          Value row = math.add(first.value, y);
          for (int64_t turn = 0; turn < rowsInFlight; ++turn)
            addRow(math.add(row, loops.constantI64(turn * rowsAtOnce)), nullptr,
                   next);
          return next;
        });
  }
  for (; done < plan.steps; done += rowsAtOnce) {
    Value row = math.add(y, loops.constantI64(done)), isThere;
    // Threads beyond the last row compute that one once more.
    if (done + rowsAtOnce > plan.steps) {
      isThere = isBelow(row, plan.steps);
      row = math.min(row, loops.constantI64(plan.steps - 1));
    }
    addRow(row, isThere, accs);
  }
  return accs;
}

Value GpuNestBuilder::combineRows(ReductionKind kind, Value value, Value within,
                                  Value y, int64_t rows) {
  Type element = VectorMath::getElement(value);
  // A bool has no place in memory of its own.
  Type memoryType = getMemoryType(element);
  bool isBool = memoryType != element;
  Type type = VectorMath::getTypeLike(memoryType, value);
  unsigned alignment = plan.lanes * memoryType.getIntOrFloatBitWidth() / 8;
  alignment = std::min(alignment, 16u);
  auto getAddress = [&](Value row) {
    Value first = math.mul(row, loops.constantI64(plan.columns));
    return block.getShared(memoryType, block.threads * plan.lanes,
                           math.add(first, within));
  };
  auto store = [&](Value value) {
    if (isBool)
      value = builder.create<arith::ExtUIOp>(loc, type, value);
    builder.create<LLVM::StoreOp>(loc, value, getAddress(y), alignment);
  };
  auto combineFrom = [&](Value first, int64_t apart, int64_t count) {
    Value result;
    for (int64_t number = 0; number < count; ++number) {
      Value row = math.add(first, loops.constantI64(number * apart));
      Value other =
          builder.create<LLVM::LoadOp>(loc, type, getAddress(row), alignment);
      if (isBool)
        other = math.convert(other, element);
      result = result ? math.combine(kind, result, other) : other;
    }
    return result;
  };
  store(value);
  block.synchronize();
  // A thread replaces a row that only it reads.
  while (rows > mostSharedRows) {
    rows /= mostSharedRows;
    loops.buildIf(isBelow(y, rows),
                  [&] { store(combineFrom(y, rows, mostSharedRows)); });
    block.synchronize();
  }
  Value sum = combineFrom(loops.constantI64(0), 1, rows);
  block.synchronize();
  return sum;
}

} // namespace shardc
