//===- GpuGemmBuilder.cpp - A tile of a GEMM by a block -------------------===//

#include "GpuGemmBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace shardc {

/// Vectors of both factors that a thread has in flight: 64 registers of floats.
static constexpr int64_t vectorsAtOnce = 16;

GpuGemmBuilder::GpuGemmBuilder(NestEmitter &emitter, GpuBlock &block,
                               const GpuNestPlan &plan,
                               const ResultBuffers &buffers)
    : emitter(emitter), loops(emitter.loops), builder(loops.builder),
      loc(loops.loc), math(loops.math), block(block), nest(plan.nest),
      plan(plan.gemm), buffers(buffers) {
  DotGeneralOp dot = nest.dot;
  type = getComputeType(dot.getResult());
  lhs = getFactorInMemory(dot.getLhs());
  rhs = getFactorInMemory(dot.getRhs());
  assert(block.threads == gemmThreads && "tiles are for blocks of this size");
}

GpuGemmBuilder::Side GpuGemmBuilder::getSide(Value tensor,
                                             const GemmStrides &strides,
                                             Value batch, Value first,
                                             int64_t count, int64_t size,
                                             bool isWhole) {
  Side side;
  side.tensor = tensor;
  side.strides = strides;
  if (batch)
    side.matrix = math.mul(batch, loops.constantI64(strides.batch));
  side.areNeighbours =
      strides.free == 1 && count == gpuLanes && size % gpuLanes == 0;
  if (side.areNeighbours && !isWhole)
    first = math.min(first, loops.constantI64(size - gpuLanes));
  for (int64_t number = 0; number < count; ++number) {
    Value place = math.add(first, loops.constantI64(number));
    if (!side.areNeighbours && !isWhole)
      place = math.min(place, loops.constantI64(size - 1));
    side.places.push_back(place);
  }
  return side;
}

GpuGemmBuilder::Values GpuGemmBuilder::load(const Side &side, Value k,
                                            int64_t terms) {
  auto loadAt = [&](int64_t number, int64_t term, int64_t lanes) {
    Value place =
        math.mul(side.places[number], loops.constantI64(side.strides.free));
    Value along = term == 0 ? k : math.add(k, loops.constantI64(term));
    Value linear = math.add(
        place, math.mul(along, loops.constantI64(side.strides.contracted)));
    if (side.matrix)
      linear = math.add(side.matrix, linear);
    return emitter.memory.loadLinear(side.tensor, linear, 1, lanes);
  };
  auto getLane = [&](Value vector, int64_t lane) -> Value {
    return builder.create<vector::ExtractOp>(loc, vector, lane);
  };
  const int64_t count = side.places.size();
  Values values(count * terms);
  if (terms == gpuLanes && side.strides.contracted == 1) {
    for (int64_t number = 0; number < count; ++number) {
      Value vector = loadAt(number, 0, gpuLanes);
      for (int64_t term = 0; term < terms; ++term)
        values[number * terms + term] = getLane(vector, term);
    }
    return values;
  }
  for (int64_t term = 0; term < terms; ++term) {
    Value vector;
    if (side.areNeighbours)
      vector = loadAt(0, term, gpuLanes);
    for (int64_t number = 0; number < count; ++number)
      values[number * terms + term] =
          vector ? getLane(vector, number) : loadAt(number, term, 0);
  }
  return values;
}

GpuGemmBuilder::Part GpuGemmBuilder::loadPart(const Side &rows,
                                              const Side &columns, Value k,
                                              int64_t terms, Value isThere) {
  return Part{load(rows, k, terms), load(columns, k, terms), terms, isThere};
}

void GpuGemmBuilder::addPart(const Part &part, Values &sums) {
  for (int64_t row = 0; row < plan.threadRows; ++row)
    for (int64_t column = 0; column < plan.threadColumns; ++column) {
      Value &sum = sums[row * plan.threadColumns + column];
      Value next = sum;
      for (int64_t term = 0; term < part.terms; ++term)
        next = math.fma(part.rows[row * part.terms + term],
                        part.columns[column * part.terms + term], next);
      sum = part.isThere ? math.select(part.isThere, next, sum) : next;
    }
}

GpuGemmBuilder::Values
GpuGemmBuilder::sumSlice(const Side &rows, const Side &columns, Value slice) {
  const int64_t k = plan.view.k, quads = k / gpuLanes;
  const int64_t turns = quads / plan.slices;
  const int64_t turnsAtOnce =
      vectorsAtOnce / (plan.threadRows + plan.threadColumns);
  const int64_t rounds = turns / turnsAtOnce;
  auto loadQuad = [&](Value quad, Value isThere = nullptr) {
    return loadPart(rows, columns, math.mul(quad, loops.constantI64(gpuLanes)),
                    gpuLanes, isThere);
  };
  auto addAll = [&](ArrayRef<Part> parts, Values &sums) {
    for (const Part &part : parts)
      addPart(part, sums);
  };
  Values sums(plan.threadRows * plan.threadColumns, math.constant(type, 0.0));
  if (rounds > 0)
    sums = loops.buildCountedLoop(
        rounds, sums, [&](Index round, ValueRange carried) {
          SmallVector<Part> parts;
          Value first = slice;
          if (round.value)
            first =
                math.add(math.mul(round.value,
                                  loops.constantI64(turnsAtOnce * plan.slices)),
                         slice);
          for (int64_t turn = 0; turn < turnsAtOnce; ++turn)
            parts.push_back(loadQuad(
                math.add(first, loops.constantI64(turn * plan.slices))));
          Values next(carried);
          addAll(parts, next);
          return next;
        });
  SmallVector<Part> parts;
  for (int64_t turn = rounds * turnsAtOnce; turn < turns; ++turn)
    parts.push_back(
        loadQuad(math.add(slice, loops.constantI64(turn * plan.slices))));
  // What is left is for some slices. The others load it as well, which takes no
  // longer, and keep their sums.
  auto isBelow = [&](int64_t count) -> Value {
    if (count >= plan.slices)
      return nullptr;
    return math.compareInt(arith::CmpIPredicate::slt, slice,
                           loops.constantI64(count));
  };
  auto getPlace = [&](int64_t done, int64_t end) {
    Value place = math.add(slice, loops.constantI64(done));
    return end - done >= plan.slices
               ? place
               : math.min(place, loops.constantI64(end - 1));
  };
  if (int64_t done = turns * plan.slices; done < quads)
    parts.push_back(loadQuad(getPlace(done, quads), isBelow(quads - done)));
  for (int64_t done = quads * gpuLanes; done < k; done += plan.slices)
    parts.push_back(
        loadPart(rows, columns, getPlace(done, k), 1, isBelow(k - done)));
  addAll(parts, sums);
  return sums;
}

Value GpuGemmBuilder::getSumAddress(Value slice, Value place) {
  const int64_t sumsOfThread = plan.threadRows * plan.threadColumns;
  const int64_t sumsOfSlice = gemmThreads / plan.slices * sumsOfThread;
  Value first = math.mul(slice, loops.constantI64(sumsOfSlice));
  return block.getShared(getMemoryType(type), gemmThreads * sumsOfThread,
                         math.add(first, place));
}

void GpuGemmBuilder::shareSums(ArrayRef<Value> sums, Value slice,
                               Value thread) {
  // Row by row of all threads: neighbours store side by side.
  const int64_t columns = plan.threadColumns;
  const int64_t apart = plan.threadsDown * plan.threadsAcross * columns;
  // A bool has no place in memory of its own.
  Type memoryType = getMemoryType(type);
  const unsigned bytes = memoryType.getIntOrFloatBitWidth() / 8;
  Value first = math.mul(thread, loops.constantI64(columns));
  auto getAddress = [&](int64_t row, int64_t column) {
    return getSumAddress(
        slice, math.add(first, loops.constantI64(row * apart + column)));
  };
  for (int64_t row = 0; row < plan.threadRows; ++row) {
    ArrayRef<Value> values = sums.slice(row * columns, columns);
    if (columns == gpuLanes) {
      Value vector = math.splat(values[0]);
      for (int64_t lane = 1; lane < gpuLanes; ++lane)
        vector =
            builder.create<vector::InsertOp>(loc, values[lane], vector, lane);
      builder.create<LLVM::StoreOp>(loc, math.convert(vector, memoryType),
                                    getAddress(row, 0),
                                    std::min<unsigned>(gpuLanes * bytes, 16));
      continue;
    }
    for (auto [column, value] : llvm::enumerate(values))
      builder.create<LLVM::StoreOp>(loc, math.convert(value, memoryType),
                                    getAddress(row, column), bytes);
  }
}

Value GpuGemmBuilder::addSlices(Value place) {
  Type memoryType = getMemoryType(type);
  const unsigned bytes = memoryType.getIntOrFloatBitWidth() / 8;
  Values sums;
  for (int64_t slice = 0; slice < plan.slices; ++slice) {
    Value sum = builder.create<LLVM::LoadOp>(
        loc, memoryType, getSumAddress(loops.constantI64(slice), place), bytes);
    sums.push_back(math.convert(sum, type));
  }
  for (; sums.size() > 1; sums.truncate(sums.size() / 2))
    for (size_t left = 0; left < sums.size() / 2; ++left)
      sums[left] = math.add(sums[2 * left], sums[2 * left + 1]);
  return sums[0];
}

void GpuGemmBuilder::storeTile(const Index &batch, Value firstRow,
                               Value firstColumn) {
  const GemmView &view = plan.view;
  DotGeneralOp dot = nest.dot;
  const int64_t elements = plan.getTileRows() * plan.getTileColumns();
  auto storeAt = [&](Value place) {
    IndexList at = loops.delinearize(loops.makeIndex(place),
                                     {plan.threadRows, plan.threadsDown,
                                      plan.threadsAcross, plan.threadColumns});
    auto getPlace = [&](Value first, const Index &thread, int64_t size,
                        const Index &within) {
      Value result = first;
      if (thread.value)
        result =
            math.add(result, math.mul(thread.value, loops.constantI64(size)));
      return within.value ? math.add(result, within.value) : result;
    };
    Value row = getPlace(firstRow, at[1], plan.threadRows, at[0]);
    Value column = getPlace(firstColumn, at[2], plan.threadColumns, at[3]);
    auto store = [&] {
      IndexList index = getGemmIndex(loops, dot, batch, loops.makeIndex(row),
                                     loops.makeIndex(column));
      emitter.preset(dot.getResult(), index, addSlices(place));
      storeFullResults(emitter, nest, buffers, index);
    };
    Value isInside;
    auto require = [&](Value value, int64_t bound, int64_t multiple) {
      if (bound % multiple == 0)
        return;
      Value isBelow = math.compareInt(arith::CmpIPredicate::slt, value,
                                      loops.constantI64(bound));
      isInside = isInside
                     ? builder.create<arith::AndIOp>(loc, isInside, isBelow)
                     : isBelow;
    };
    require(place, elements, block.threads);
    require(row, view.m, plan.getTileRows());
    require(column, view.n, plan.getTileColumns());
    if (isInside)
      loops.buildIf(isInside, store);
    else
      store();
  };
  const int64_t turns = llvm::divideCeil(elements, block.threads);
  loops.buildCountedLoop(turns, {}, [&](Index turn, ValueRange) -> Values {
    Value place = block.getThread();
    if (turn.value)
      place = math.add(math.mul(turn.value, loops.constantI64(block.threads)),
                       place);
    storeAt(place);
    return {};
  });
}

void GpuGemmBuilder::buildTile(const Index &unit) {
  const GemmView &view = plan.view;
  IndexList tile = loops.delinearize(
      unit, {view.batch, plan.getTilesDown(), plan.getTilesAcross()});
  IndexList thread =
      loops.delinearize(Index{block.getThread()},
                        {plan.slices, plan.threadsDown, plan.threadsAcross});
  auto getFirst = [&](const Index &index, int64_t size) {
    return index.value ? math.mul(index.value, loops.constantI64(size))
                       : loops.constantI64(0);
  };
  Value firstRow = getFirst(tile[1], plan.getTileRows());
  Value firstColumn = getFirst(tile[2], plan.getTileColumns());
  Side rows =
      getSide(lhs, view.lhs, tile[0].value,
              math.add(firstRow, getFirst(thread[1], plan.threadRows)),
              plan.threadRows, view.m, view.m % plan.getTileRows() == 0);
  Side columns =
      getSide(rhs, view.rhs, tile[0].value,
              math.add(firstColumn, getFirst(thread[2], plan.threadColumns)),
              plan.threadColumns, view.n, view.n % plan.getTileColumns() == 0);
  Value slice = thread[0].value ? thread[0].value : loops.constantI64(0);
  Values sums = sumSlice(rows, columns, slice);
  Value ofSlice = builder.create<arith::RemUIOp>(
      loc, block.getThread(), loops.constantI64(gemmThreads / plan.slices));
  shareSums(sums, slice, ofSlice);
  block.synchronize();
  storeTile(tile[0], firstRow, firstColumn);
  block.synchronize();
}

} // namespace shardc
