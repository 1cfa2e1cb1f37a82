//===- GemmBuilder.cpp - GEMMs on register tiles --------------------------===//

#include "GemmBuilder.h"

#include "shardc/Analysis/CollectiveBytes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;

namespace shardc {

/// Bytes of the stack that packed columns may take, on vectors of the base.
static constexpr int64_t maxScratchBytes = 256 << 10;

void GemmBuilder::build(UnitRange range) {
  if (plan.deviceLanes > 0)
    buildSideBySide(range);
  else if (plan.isInnerProduct)
    buildInnerProducts(range);
  else
    buildTiles(range);
}

Value GemmBuilder::getLinear(ArrayRef<std::pair<Index, int64_t>> terms) {
  Value sum;
  for (const auto &[index, stride] : terms) {
    if (!index.value || stride == 0)
      continue;
    Value term = builder.createOrFold<arith::MulIOp>(loc, index.value,
                                                     loops.constantI64(stride));
    sum = sum ? builder.createOrFold<arith::AddIOp>(loc, sum, term) : term;
  }
  return sum;
}

IndexList GemmBuilder::getIndex(const Index &batch, const Index &row,
                                const Index &column) {
  return getGemmIndex(loops, nest.dot, batch, plan.isSwapped ? column : row,
                      plan.isSwapped ? row : column);
}

Value GemmBuilder::getScratch(int64_t elements) {
  if (scratch)
    return scratch;
  Value count = loops.constantI64(elements);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(count);
  scratch = builder.create<LLVM::AllocaOp>(
      loc, LLVM::LLVMPointerType::get(builder.getContext()), getPackedType(),
      count, /*alignment=*/64);
  return scratch;
}

Type GemmBuilder::getPackedType() const {
  DotGeneralOp dot = nest.dot;
  return getMemoryType(getComputeType(dot.getResult()));
}

/// Bytes at whose multiples so many elements of a panel lie, a power of two.
static unsigned getPackedAlignment(Type packedType, int64_t lanes) {
  return std::min<int64_t>(lanes * packedType.getIntOrFloatBitWidth() / 8, 64);
}

Value GemmBuilder::loadPacked(Value packed, const Index &place, int64_t lanes) {
  DotGeneralOp dot = nest.dot;
  Type type = getPackedType();
  Value loaded = builder.create<LLVM::LoadOp>(
      loc, VectorType::get({lanes}, type),
      buildAddress(builder, loc, packed, type, place.value),
      getPackedAlignment(type, lanes));
  return math.convert(loaded, getComputeType(dot.getResult()));
}

void GemmBuilder::storePacked(Value packed, const Index &place, Value lanes) {
  Type type = getPackedType();
  builder.create<LLVM::StoreOp>(
      loc, math.convert(lanes, type),
      buildAddress(builder, loc, packed, type, place.value),
      getPackedAlignment(type, math.numLanes));
}

/// Transposes a square of as many rows as lanes. Each round pairs rows and
/// interleaves their elements, at first one by one and then in growing groups:
/// within 128 bits, as one instruction does, as long as groups are smaller.
static SmallVector<Value> transpose(OpBuilder &builder, Location loc,
                                    SmallVector<Value> rows) {
  int64_t size = rows.size();
  // Of each vector the columns that its lanes hold; alike for the two of a
  // pair.
  SmallVector<SmallVector<int64_t>> columns(
      size, llvm::to_vector(llvm::seq<int64_t>(0, size)));
  for (int64_t group = 1; group < size; group *= 2) {
    int64_t within = group < 4 ? 4 : size;
    // The low halves interleaved, or the high ones.
    auto interleave = [&](int64_t first, int64_t half) {
      SmallVector<int64_t> sources, held;
      for (int64_t lane = 0; lane < size; ++lane) {
        int64_t place = lane % within;
        int64_t source = lane - place + half * within / 2 +
                         place / (2 * group) * group + place % group;
        held.push_back(columns[first][source]);
        sources.push_back(place & group ? size + source : source);
      }
      Value vector = builder.create<vector::ShuffleOp>(
          loc, rows[first], rows[first + group], sources);
      return std::pair(vector, held);
    };
    for (int64_t first = 0; first < size; ++first) {
      if (first & group)
        continue;
      auto low = interleave(first, 0), high = interleave(first, 1);
      rows[first] = low.first;
      rows[first + group] = high.first;
      columns[first] = low.second;
      columns[first + group] = high.second;
    }
  }
  SmallVector<Value> transposed(size);
  for (auto [row, held] : llvm::zip_equal(rows, columns))
    transposed[held[0]] = row;
  return transposed;
}

/// The row, of four, whose pair is the one at `place` in a vector; as well the
/// place of the pair of a row. Two pairs of a row meet in one half of a vector
/// by a shuffle within halves, with the order in which rows are stored.
static int64_t getRowOfPair(int64_t place, int64_t pairs) {
  constexpr int64_t rows[] = {0, 2, 1, 3};
  return pairs == 1 ? place : rows[place];
}

Value GemmBuilder::packPanels(const Index &batch, const Index &column,
                              int64_t columns) {
  const GemmView &gemm = plan.gemm;
  const int64_t elements = gemm.k * getPanelWidth();
  if (plan.devices * elements * getPackedType().getIntOrFloatBitWidth() / 8 >
      maxScratchBytes * (numLanes / baseLanes))
    return nullptr;
  Value panels = getScratch(plan.devices * elements);
  for (int64_t device = 0; device < plan.devices; ++device) {
    memory.setDevice(device);
    packInto(getPanel(panels, device), batch, column, columns);
  }
  return panels;
}

Value GemmBuilder::getPanel(Value panels, int64_t device) {
  if (!panels || device == 0)
    return panels;
  return buildAddress(
      builder, loc, panels, getPackedType(),
      loops.constantI64(device * plan.gemm.k * getPanelWidth()));
}

void GemmBuilder::packInto(Value packed, const Index &batch,
                           const Index &column, int64_t columns) {
  const GemmView &gemm = plan.gemm;
  DotGeneralOp dot = nest.dot;
  const int64_t width = getPanelWidth(), numLanes = math.numLanes;
  Value operand =
      getFactorInMemory(plan.isSwapped ? dot.getLhs() : dot.getRhs());
  auto load = [&](const Index &k, const Index &place, int64_t stride,
                  int64_t lanes) {
    Value from = getLinear({{batch, gemm.rhs.batch},
                            {place, gemm.rhs.free},
                            {k, gemm.rhs.contracted}});
    return memory.loadLinear(operand, from, stride, lanes);
  };
  auto store = [&](const Index &k, int64_t offset, Value lanes) {
    storePacked(packed, loops.addIndex(loops.mulIndex(k, width), offset),
                lanes);
  };

  // Whole vectors of columns whose elements lie side by side along k come in
  // squares.
  int64_t squares = gemm.rhs.contracted == 1 ? gemm.k / numLanes : 0;
  int64_t whole = columns / numLanes * numLanes;
  if (squares > 0 && whole > 0)
    loops.buildCountedLoop(squares, {}, [&](Index square, ValueRange) {
      Index k = loops.mulIndex(square, numLanes);
      for (int64_t offset = 0; offset < whole; offset += numLanes) {
        SmallVector<Value> rows;
        for (int64_t lane = 0; lane < numLanes; ++lane)
          rows.push_back(load(k, loops.addIndex(column, offset + lane),
                              gemm.rhs.contracted, numLanes));
        for (auto [i, lanes] :
             llvm::enumerate(transpose(builder, loc, std::move(rows))))
          store(loops.addIndex(k, i), offset, lanes);
      }
      return SmallVector<Value>();
    });
  auto packRest = [&](int64_t firstK, int64_t begin, int64_t end) {
    if (firstK == gemm.k || begin >= end)
      return;
    loops.buildCountedLoop(gemm.k - firstK, {}, [&](Index rest, ValueRange) {
      Index k = loops.addIndex(rest, firstK);
      for (int64_t offset = begin; offset < end; offset += numLanes)
        store(k, offset,
              load(k, loops.addIndex(column, offset), gemm.rhs.free,
                   std::min(numLanes, columns - offset)));
      return SmallVector<Value>();
    });
  };
  packRest(squares * numLanes, 0, whole);
  packRest(0, whole, columns);
}

void GemmBuilder::buildTiles(UnitRange range) {
  if (plan.gemm.batch > 1)
    return forEachUnit(range,
                       [&](Index batch) { buildRows(batch, UnitRange()); });
  if (plan.isSwapped)
    return buildColumns(range);
  buildRows(Index(), range);
}

void GemmBuilder::buildColumns(UnitRange range) {
  const int64_t width = getPanelWidth();
  forEachUnit(range, [&](Index unit) {
    buildBlock(unit, plan.gemm.n, [&](const Index &start, int64_t columns) {
      for (int64_t offset = 0; offset < columns; offset += width)
        buildPanel(Index(), loops.addIndex(start, offset),
                   std::min(width, columns - offset), UnitRange());
    });
  });
}

void GemmBuilder::buildRows(const Index &batch, UnitRange range) {
  int64_t n = plan.gemm.n;
  const int64_t width = getPanelWidth();
  int64_t panels = n / width, rest = n % width;
  if (panels > 0)
    loops.buildCountedLoop(panels, {}, [&](Index panel, ValueRange) {
      buildPanel(batch, loops.mulIndex(panel, width), width, range);
      return SmallVector<Value>();
    });
  if (rest > 0)
    buildPanel(batch, loops.constantIndex(panels * width), rest, range);
}

/// Whether the rows of a panel of the right factor, as they lie in memory, meet
/// in so few sets of a first-level cache that they do not stay there beside
/// other data: rows some power of two apart. The rows of the result that a
/// worker computes at a time share a copy, and are more if there are more in
/// all.
static bool meetInFewSets(const GemmView &gemm, int64_t elementBytes) {
  constexpr int64_t line = 64, sets = 64, ways = 8, leastRows = 64;
  const int64_t apart = elementBytes * gemm.rhs.contracted;
  if (gemm.m < leastRows || apart % line != 0)
    return false;
  const int64_t reached = sets / std::gcd(sets, apart / line);
  return reached < sets && gemm.k > reached * ways / 2;
}

void GemmBuilder::buildPanel(const Index &batch, const Index &column,
                             int64_t columns, UnitRange range) {
  const GemmView &gemm = plan.gemm;
  Value packed;
  DotGeneralOp dot = nest.dot;
  Value rhs = plan.isSwapped ? dot.getLhs() : dot.getRhs();
  const int64_t elementBytes = getElementBytes(getElementTypeOrSelf(rhs));
  // The last of an odd number of columns has a zero beside it.
  const bool isPadded = plan.hasPairs && gemm.n % 2 != 0;
  if (gemm.n > 1 &&
      (gemm.rhs.free != 1 || isPadded || meetInFewSets(gemm, elementBytes)))
    packed = packPanels(batch, column, columns);
  if (plan.hasPairs)
    buildRowSteps(range, rowsOfPairs, [&](const Index &row, int64_t rows) {
      if (rows > 1)
        buildPairs(batch, row, rows, packed);
      else
        buildTile(batch, row, rows, /*chains=*/1, Index(), gemm.n, packed);
    });
  else
    buildWholeTiles(batch, column, columns, range, packed);
  buildLastRows(range, [&](const Index &row, int64_t chains) {
    buildTile(batch, row, plan.lastRows, chains, column, columns, packed);
  });
}

void GemmBuilder::buildWholeTiles(const Index &batch, const Index &column,
                                  int64_t columns, UnitRange range,
                                  Value packed) {
  const int64_t rows = plan.tileRows, tiles = plan.gemm.m / rows;
  auto buildTileAt = [&](Index tile, ValueRange) {
    buildTile(batch, loops.mulIndex(tile, rows), rows, plan.chains, column,
              columns, packed);
    return SmallVector<Value>();
  };
  if (!range.low) {
    loops.buildCountedLoop(tiles, {}, buildTileAt);
    return;
  }
  Value high =
      builder.create<arith::MinSIOp>(loc, range.high, loops.constantI64(tiles));
  loops.buildLoop(range.low, high, 1, {}, buildTileAt);
}

void GemmBuilder::buildLastRows(
    UnitRange range,
    llvm::function_ref<void(const Index &row, int64_t chains)> body) {
  const GemmView &gemm = plan.gemm;
  if (plan.lastRows == 0)
    return;
  auto build = [&] {
    body(loops.makeIndex(loops.constantI64(gemm.m - plan.lastRows)),
         getGemmChains(gemm, plan.lastRows));
  };
  if (!range.low)
    return build();
  // They are all of the last unit.
  Value isLast = math.compareInt(arith::CmpIPredicate::eq, range.high,
                                 loops.constantI64(plan.units));
  loops.buildIf(isLast, build);
}

void GemmBuilder::buildRowSteps(
    UnitRange range, int64_t least,
    llvm::function_ref<void(const Index &row, int64_t rows)> body) {
  // The last rows have chains of their own.
  const int64_t rows = plan.gemm.m - plan.lastRows;
  int64_t perRange = rows;
  Value begin = loops.constantI64(0), end = loops.constantI64(rows);
  if (range.low) {
    perRange = plan.unitsPerIteration * plan.unitRows;
    Value perUnit = loops.constantI64(plan.unitRows);
    begin = math.mul(range.low, perUnit);
    end = math.min(math.mul(range.high, perUnit), end);
  }
  // Steps of so many rows, as many as there are; the rest has smaller ones.
  auto buildSteps = [&](int64_t step) {
    // As a loop that is left out: one row has no place of its own.
    if (!range.low && rows == step) {
      body(Index(), step);
      return false;
    }
    const bool hasRest = perRange % step != 0 || rows % step != 0;
    Value stop = end;
    if (hasRest)
      stop = math.sub(end,
                      builder.create<arith::RemUIOp>(loc, math.sub(end, begin),
                                                     loops.constantI64(step)));
    loops.buildLoop(begin, stop, step, {}, [&](Index row, ValueRange) {
      body(row, step);
      return SmallVector<Value>();
    });
    begin = stop;
    return hasRest;
  };
  bool hasRest = true;
  for (int64_t step = plan.tileRows; hasRest && step >= least; step /= 2)
    hasRest = buildSteps(step);
  if (hasRest)
    buildSteps(1);
}

void GemmBuilder::buildSideBySide(UnitRange range) {
  const int64_t width = getPanelWidth(), lanes = plan.deviceLanes;
  // The devices of each panel are others, so that its code is.
  for (int64_t first = 0; first < getNumColumns(); first += width) {
    const int64_t columns = std::min(width, getNumColumns() - first);
    Value packed = getScratch(plan.gemm.k * width);
    math.numLanes = lanes;
    Value zeros =
        math.splat(math.constant(getComputeType(nest.dot->getResult(0)), 0.0));
    for (int64_t column = 0; column < columns; column += lanes) {
      memory.setDevice((first + column) / lanes);
      packInto(buildAddress(builder, loc, packed, getPackedType(),
                            loops.constantI64(column)),
               Index(), Index(), plan.gemm.n);
    }
    // Nobody reads the sums of columns beside the last, but NaNs take long.
    if (columns % numLanes != 0)
      loops.buildCountedLoop(plan.gemm.k, {}, [&](Index k, ValueRange) {
        for (int64_t column = columns; column % numLanes != 0; column += lanes)
          storePacked(packed, loops.addIndex(loops.mulIndex(k, width), column),
                      zeros);
        return SmallVector<Value>();
      });
    math.numLanes = numLanes;
    buildRowSteps(range, /*least=*/1, [&](const Index &row, int64_t rows) {
      buildSharedTile(row, rows, plan.chains, first, columns, packed);
    });
    buildLastRows(range, [&](const Index &row, int64_t chains) {
      buildSharedTile(row, plan.lastRows, chains, first, columns, packed);
    });
  }
}

void GemmBuilder::buildSharedTile(const Index &row, int64_t rows,
                                  int64_t chains, int64_t column,
                                  int64_t columns, Value packed) {
  const int64_t lanes = plan.deviceLanes;
  memory.setDevice(0);
  SmallVector<Value> sums =
      accumulateTile(Index(), row, rows, chains, Index(), columns, packed);
  const int64_t vectors = sums.size() / rows;
  // Each device has its own lanes, operands and results.
  math.numLanes = lanes;
  for (int64_t first = 0; first < columns; first += lanes) {
    memory.setDevice((column + first) / lanes);
    for (int64_t r = 0; r < rows; ++r) {
      Value vector = sums[r * vectors + first / numLanes];
      if (lanes < numLanes)
        vector = builder.create<vector::ShuffleOp>(
            loc, vector, vector,
            llvm::to_vector(
                llvm::seq(first % numLanes, first % numLanes + lanes)));
      Index place = loops.constantIndex(0, plan.gemm.n);
      IndexList index = getIndex(Index(), loops.addIndex(row, r), place);
      emitter.preset(nest.dot->getResult(0), index, vector);
      storeFull(index);
    }
  }
  math.numLanes = numLanes;
}

SmallVector<Value> GemmBuilder::joinPairs(ArrayRef<Value> sums, int64_t rows) {
  const int64_t columns = plan.gemm.n, pairs = (columns + 1) / 2;
  SmallVector<Value> joined;
  for (int64_t start = 0; start < rows * columns; start += numLanes) {
    // The sums that hold the vector's elements, and where.
    SmallVector<std::pair<int64_t, int64_t>> places;
    llvm::SmallSetVector<int64_t, 4> sources;
    for (int64_t lane = 0; lane < numLanes; ++lane) {
      int64_t place = std::min(start + lane, rows * columns - 1);
      int64_t row = place / columns, column = place % columns;
      int64_t source = row / rowsOfPairs * pairs + column / 2;
      places.push_back(
          {source, 2 * getRowOfPair(row % rowsOfPairs, pairs) + column % 2});
      sources.insert(source);
    }
    Value vector = sums[sources[0]];
    for (size_t number = sources.size() > 1; number < sources.size();
         ++number) {
      SmallVector<int64_t> lanes;
      for (auto [lane, place] : llvm::enumerate(places)) {
        if (place.first == sources[number])
          lanes.push_back((number > 0 ? numLanes : 0) + place.second);
        else
          lanes.push_back(number > 1 ? lane : place.second);
      }
      vector = builder.create<vector::ShuffleOp>(loc, vector,
                                                 sums[sources[number]], lanes);
    }
    joined.push_back(vector);
  }
  return joined;
}

SmallVector<Value> GemmBuilder::addUpDevices(ComputeOnDevice compute) {
  SmallVector<Value> sums = addUpDevices(compute, 0, plan.devices);
  // The sum has one result.
  memory.setDevice(0);
  return sums;
}

SmallVector<Value> GemmBuilder::addUpDevices(ComputeOnDevice compute,
                                             int64_t first, int64_t devices) {
  if (devices == 1) {
    memory.setDevice(first);
    return compute(first);
  }
  const int64_t left = llvm::bit_ceil(uint64_t(devices)) / 2;
  SmallVector<Value> sums = addUpDevices(compute, first, left);
  SmallVector<Value> others =
      addUpDevices(compute, first + left, devices - left);
  for (auto [sum, other] : llvm::zip_equal(sums, others))
    sum = math.add(sum, other);
  return sums;
}

void GemmBuilder::buildPairs(const Index &batch, const Index &row, int64_t rows,
                             Value packed) {
  const GemmView &gemm = plan.gemm;
  DotGeneralOp dot = nest.dot;
  Value lhs = getFactorInMemory(dot.getLhs());
  Value rhs = getFactorInMemory(dot.getRhs());
  Type type = getComputeType(dot.getResult());
  const int64_t pairs = (gemm.n + 1) / 2;
  constexpr int64_t terms = baseLanes / 2;

  // Terms of the rows of two places, in the halves of a vector. Whole vectors
  // are loaded: what is behind the terms of the first row, and before those of
  // the second, is between the two.
  auto loadRows = [&](int64_t first, int64_t place, const Index &k) -> Value {
    auto load = [&](int64_t place, int64_t offset) {
      Index from = loops.addIndex(row, first + getRowOfPair(place, pairs));
      Index term = loops.addIndex(k, offset);
      return memory.loadLinear(lhs,
                               getLinear({{batch, gemm.lhs.batch},
                                          {from, gemm.lhs.free},
                                          {term, gemm.lhs.contracted}}),
                               1, numLanes);
    };
    SmallVector<int64_t> halves;
    for (int64_t lane = 0; lane < numLanes; ++lane)
      halves.push_back(lane < terms ? lane : numLanes + lane);
    return builder.create<vector::ShuffleOp>(loc, load(place, 0),
                                             load(place + 2, -terms), halves);
  };
  // A pair of columns, for each of the rows.
  Value panel;
  auto loadPair = [&](const Index &k, int64_t column) -> Value {
    Value vector;
    if (panel) {
      vector = loadPacked(
          panel, loops.addIndex(loops.mulIndex(k, numLanes), column), 2);
    } else {
      vector = memory.loadLinear(rhs,
                                 getLinear({{batch, gemm.rhs.batch},
                                            {loops.constantIndex(column), 1},
                                            {k, gemm.rhs.contracted}}),
                                 1, 2);
    }
    SmallVector<int64_t> lanes;
    for (int64_t lane = 0; lane < numLanes; ++lane)
      lanes.push_back(lane % 2);
    return builder.create<vector::ShuffleOp>(loc, vector, vector, lanes);
  };
  // Adds terms k + skipped to k + 4.
  auto addTerms = [&](const Index &k, int64_t skipped,
                      MutableArrayRef<Value> sums) {
    SmallVector<std::pair<Value, Value>> groups;
    for (int64_t first = 0; first < rows; first += rowsOfPairs)
      groups.push_back({loadRows(first, 0, k), loadRows(first, 1, k)});
    for (int64_t term = skipped; term < terms; ++term) {
      SmallVector<Value> columns;
      for (int64_t pair = 0; pair < pairs; ++pair)
        columns.push_back(loadPair(loops.addIndex(k, term), 2 * pair));
      SmallVector<int64_t> lanes;
      for (int64_t half : {int64_t(0), terms})
        for (int64_t source : {int64_t(0), numLanes})
          lanes.append(2, source + half + term);
      auto sum = sums.begin();
      for (auto [first, second] : groups) {
        Value factor =
            builder.create<vector::ShuffleOp>(loc, first, second, lanes);
        for (Value column : columns) {
          *sum = math.fma(factor, column, *sum);
          ++sum;
        }
      }
    }
  };
  SmallVector<Value> sums = addUpDevices([&](int64_t device) {
    panel = getPanel(packed, device);
    SmallVector<Value> sums(rows / rowsOfPairs * pairs,
                            math.splat(math.constant(type, 0.0)));
    sums = loops.buildCountedLoop(
        gemm.k / terms, sums, [&](Index step, ValueRange carried) {
          SmallVector<Value> next(carried);
          addTerms(loops.mulIndex(step, terms), 0, next);
          return next;
        });
    if (int64_t rest = gemm.k % terms)
      addTerms(loops.constantIndex(gemm.k - terms), terms - rest, sums);
    return sums;
  });

  for (auto [number, vector] : llvm::enumerate(joinPairs(sums, rows))) {
    const int64_t start = number * numLanes;
    Index lanesOfRows = row, lanesOfColumns;
    for (Index *index : {&lanesOfRows, &lanesOfColumns}) {
      if (!index->value)
        index->value = loops.constantI64(0);
      index->lanes = std::min(numLanes, rows * gemm.n - start);
      index->start = start;
    }
    lanesOfRows.repeat = lanesOfColumns.period = gemm.n;
    lanesOfColumns.start %= gemm.n;
    IndexList index = getIndex(batch, lanesOfRows, lanesOfColumns);
    emitter.preset(dot.getResult(), index, vector);
    storeFull(index);
  }
}

SmallVector<Value> GemmBuilder::accumulateTile(const Index &batch,
                                               const Index &row, int64_t rows,
                                               int64_t chains,
                                               const Index &column,
                                               int64_t columns, Value panel) {
  const GemmView &gemm = plan.gemm;
  DotGeneralOp dot = nest.dot;
  Value lhs = getFactorInMemory(plan.isSwapped ? dot.getRhs() : dot.getLhs());
  Value rhs = getFactorInMemory(plan.isSwapped ? dot.getLhs() : dot.getRhs());
  Type type = getComputeType(dot.getResult());
  int64_t vectors = (columns + numLanes - 1) / numLanes;
  const int64_t width = getPanelWidth();
  auto getLanes = [&](int64_t vector) {
    return std::min(numLanes, columns - vector * numLanes);
  };
  int64_t tile = rows * vectors;

  SmallVector<Index> tileRows;
  for (int64_t r = 0; r < rows; ++r)
    tileRows.push_back(loops.addIndex(row, r));
  auto accumulate = [&](Index k, MutableArrayRef<Value> accs) {
    SmallVector<Value> columnsOfRhs;
    for (int64_t v = 0; v < vectors; ++v) {
      if (panel) {
        Index place = loops.addIndex(loops.mulIndex(k, width), v * numLanes);
        columnsOfRhs.push_back(loadPacked(panel, place, numLanes));
        continue;
      }
      Index place = loops.addIndex(column, v * numLanes);
      Value from = getLinear({{batch, gemm.rhs.batch},
                              {place, gemm.rhs.free},
                              {k, gemm.rhs.contracted}});
      int64_t stride = gemm.n == 1 ? 1 : gemm.rhs.free;
      columnsOfRhs.push_back(memory.loadLinear(rhs, from, stride, getLanes(v)));
    }
    for (int64_t r = 0; r < rows; ++r) {
      Value from = getLinear({{batch, gemm.lhs.batch},
                              {tileRows[r], gemm.lhs.free},
                              {k, gemm.lhs.contracted}});
      Value scalar = memory.loadLinear(lhs, from, 0, 0);
      for (int64_t v = 0; v < vectors; ++v) {
        Value &acc = accs[r * vectors + v];
        acc = math.fma(math.splat(scalar), columnsOfRhs[v], acc);
      }
    }
  };
  Value zero = math.splat(math.constant(type, 0.0));
  return buildChains(
      gemm.k, chains, SmallVector<Value>(tile, zero), accumulate,
      [&](size_t, Value left, Value right) { return math.add(left, right); });
}

void GemmBuilder::buildTile(const Index &batch, const Index &row, int64_t rows,
                            int64_t chains, const Index &column,
                            int64_t columns, Value packed) {
  DotGeneralOp dot = nest.dot;
  SmallVector<Value> accs = addUpDevices([&](int64_t device) {
    return accumulateTile(batch, row, rows, chains, column, columns,
                          getPanel(packed, device));
  });
  const int64_t vectors = accs.size() / rows;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < vectors; ++v) {
      Index place = loops.addIndex(column, v * numLanes);
      if (!place.value)
        place.value = loops.constantI64(0);
      place.lanes = std::min(numLanes, columns - v * numLanes);
      IndexList index = getIndex(batch, loops.addIndex(row, r), place);
      Value acc = accs[r * vectors + v];
      // A result of one element has no lanes.
      bool hasLanes = llvm::any_of(
          llvm::zip_equal(
              index,
              cast<RankedTensorType>(dot.getResult().getType()).getShape()),
          [](auto dim) {
            return std::get<0>(dim).lanes && std::get<1>(dim) > 1;
          });
      if (!hasLanes)
        acc = math.getFirstLane(acc);
      emitter.preset(dot.getResult(), index, acc);
      storeFull(index);
    }
  }
}

void GemmBuilder::buildInnerProducts(UnitRange range) {
  const GemmView &gemm = plan.gemm;
  DotGeneralOp dot = nest.dot;
  Value lhs = getFactorInMemory(plan.isSwapped ? dot.getRhs() : dot.getLhs());
  Value rhs = getFactorInMemory(plan.isSwapped ? dot.getLhs() : dot.getRhs());
  Type type = getComputeType(dot.getResult());
  forEachUnit(range, [&](Index unit) {
    IndexList places = loops.delinearize(unit, {gemm.batch, gemm.n});
    Value zero = math.splat(math.constant(type, 0.0));
    SmallVector<Value> sum = addUpDevices([&](int64_t) {
      SmallVector<Value> lanes = buildVectors(
          gemm.k, 4, zero,
          [&](Index k, MutableArrayRef<Value> accs) {
            Value left = memory.loadLinear(
                lhs, getLinear({{places[0], gemm.lhs.batch}, {k, 1}}), 1,
                k.lanes);
            Value right =
                memory.loadLinear(rhs,
                                  getLinear({{places[0], gemm.rhs.batch},
                                             {places[1], gemm.rhs.free},
                                             {k, 1}}),
                                  1, k.lanes);
            accs[0] = math.fma(left, right, accs[0]);
          },
          [&](size_t, Value left, Value right) {
            return math.add(left, right);
          });
      lanes[0] = math.combineLanes(ReductionKind::Sum, lanes[0]);
      return lanes;
    });
    IndexList index = getIndex(places[0], Index(), places[1]);
    emitter.preset(dot.getResult(), index, sum[0]);
    storeFull(index);
  });
}

} // namespace shardc
