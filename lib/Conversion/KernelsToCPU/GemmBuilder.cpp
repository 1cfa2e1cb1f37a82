//===- GemmBuilder.cpp - Products on register tiles -----------------------===//
//
// A tile of rows × two vectors of columns is accumulated in registers over the
// whole contraction and then goes through the epilogue. The order of additions
// depends on shapes alone.
//
//===----------------------------------------------------------------------===//

#include "NestBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace shardc {

Value NestBuilder::getLinear(ArrayRef<std::pair<Index, int64_t>> terms) {
  Value sum;
  for (const auto &[index, stride] : terms) {
    if (!index.value || stride == 0)
      continue;
    Value term = builder.createOrFold<arith::MulIOp>(
        loc, index.value, emitter.constantI64(stride));
    sum = sum ? builder.createOrFold<arith::AddIOp>(loc, sum, term) : term;
  }
  return sum;
}

IndexList NestBuilder::getGemmIndex(const Index &batch, const Index &row,
                                    const Index &column) {
  DotGeneralOp dot = nest.dot;
  auto lhsShape = cast<RankedTensorType>(dot.getLhs().getType()).getShape();
  auto rhsShape = cast<RankedTensorType>(dot.getRhs().getType()).getShape();
  auto select = [](ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
    SmallVector<int64_t> sizes;
    for (int64_t dim : dims)
      sizes.push_back(shape[dim]);
    return sizes;
  };
  auto lhsSizes = select(lhsShape, dot.getLhsFree());
  auto rhsSizes = select(rhsShape, dot.getRhsFree());
  IndexList index =
      emitter.delinearize(batch, select(lhsShape, dot.getLhsBatching()));
  llvm::append_range(
      index, emitter.delinearize(plan.isSwapped ? column : row, lhsSizes));
  llvm::append_range(
      index, emitter.delinearize(plan.isSwapped ? row : column, rhsSizes));
  return index;
}

void NestBuilder::buildGemm(UnitRange range) {
  if (plan.gemm.batch > 1)
    return forEachUnit(range,
                       [&](Index batch) { buildGemmRows(batch, UnitRange()); });
  if (plan.isSwapped)
    return buildGemmColumns(range);
  buildGemmRows(Index(), range);
}

void NestBuilder::buildGemmColumns(UnitRange range) {
  int64_t width = plan.gemm.n > numLanes ? 2 * numLanes : numLanes;
  forEachUnit(range, [&](Index unit) {
    buildBlock(unit, plan.gemm.n, [&](const Index &start, int64_t columns) {
      for (int64_t offset = 0; offset < columns; offset += width)
        buildGemmPanel(Index(), emitter.addIndex(start, offset),
                       std::min(width, columns - offset), UnitRange());
    });
  });
}

void NestBuilder::buildGemmRows(const Index &batch, UnitRange range) {
  int64_t n = plan.gemm.n;
  int64_t width = n > numLanes ? 2 * numLanes : numLanes;
  int64_t panels = n / width, rest = n % width;
  if (panels > 0)
    emitter.buildCountedLoop(panels, {}, [&](Index panel, ValueRange) {
      buildGemmPanel(batch, emitter.mulIndex(panel, width), width, range);
      return SmallVector<Value>();
    });
  if (rest > 0)
    buildGemmPanel(batch, emitter.constantIndex(panels * width), rest, range);
}

void NestBuilder::buildGemmPanel(const Index &batch, const Index &column,
                                 int64_t columns, UnitRange range) {
  const GemmView &gemm = plan.gemm;
  Value packed;
  if (gemm.n > 1 && gemm.rhs.free != 1)
    packed = packPanel(batch, column, columns);
  int64_t rows = plan.tileRows;
  int64_t tiles = gemm.m / rows, rest = gemm.m % rows;
  auto buildTiles = [&](Index tile, ValueRange) {
    buildGemmTile(batch, emitter.mulIndex(tile, rows), rows, column, columns,
                  packed);
    return SmallVector<Value>();
  };
  auto buildRest = [&] {
    Index row = emitter.makeIndex(emitter.constantI64(tiles * rows));
    buildGemmTile(batch, row, rest, column, columns, packed);
  };
  if (!range.low) {
    emitter.buildCountedLoop(tiles, {}, buildTiles);
    if (rest > 0)
      buildRest();
    return;
  }
  Value full = emitter.constantI64(tiles);
  Value high = builder.create<arith::MinSIOp>(loc, range.high, full);
  emitter.buildLoop(range.low, high, 1, {}, buildTiles);
  if (rest > 0)
    emitter.buildIf(
        math.compareInt(arith::CmpIPredicate::sgt, range.high, full),
        buildRest);
}

void NestBuilder::buildGemmTile(const Index &batch, const Index &row,
                                int64_t rows, const Index &column,
                                int64_t columns, Value packed) {
  const GemmView &gemm = plan.gemm;
  DotGeneralOp dot = nest.dot;
  Value lhs = plan.isSwapped ? dot.getRhs() : dot.getLhs();
  Value rhs = plan.isSwapped ? dot.getLhs() : dot.getRhs();
  Type type = NestEmitter::getComputeType(dot.getResult());
  int64_t vectors = (columns + numLanes - 1) / numLanes;
  int64_t width = gemm.n > numLanes ? 2 * numLanes : numLanes;
  auto getLanes = [&](int64_t vector) {
    return std::min(numLanes, columns - vector * numLanes);
  };
  int64_t tile = rows * vectors;
  // Enough independent sums to hide the latency of multiply-add, and as many on
  // every CPU.
  int64_t baseTile = rows * (gemm.n > baseLanes ? 2 : 1);
  int64_t unroll = baseTile >= 8 ? 1 : baseTile >= 4 ? 2 : 4;
  unroll = std::max<int64_t>(1, std::min(unroll, gemm.k));

  SmallVector<Index> tileRows;
  for (int64_t r = 0; r < rows; ++r)
    tileRows.push_back(emitter.addIndex(row, r));
  auto accumulate = [&](Index k, MutableArrayRef<Value> accs) {
    SmallVector<Value> columnsOfRhs;
    for (int64_t v = 0; v < vectors; ++v) {
      if (packed) {
        Index place =
            emitter.addIndex(emitter.mulIndex(k, width), v * numLanes);
        Value address = emitter.getAddress(packed, type, place.value);
        columnsOfRhs.push_back(builder.create<LLVM::LoadOp>(
            loc, VectorType::get({numLanes}, type), address, 4 * numLanes));
        continue;
      }
      Index place = emitter.addIndex(column, v * numLanes);
      Value from = getLinear({{batch, gemm.rhs.batch},
                              {place, gemm.rhs.free},
                              {k, gemm.rhs.contracted}});
      int64_t stride = gemm.n == 1 ? 1 : gemm.rhs.free;
      columnsOfRhs.push_back(emitter.load(rhs, from, stride, getLanes(v)));
    }
    for (int64_t r = 0; r < rows; ++r) {
      Value from = getLinear({{batch, gemm.lhs.batch},
                              {tileRows[r], gemm.lhs.free},
                              {k, gemm.lhs.contracted}});
      Value scalar = emitter.load(lhs, from, 0, 0);
      for (int64_t v = 0; v < vectors; ++v) {
        Value &acc = accs[r * vectors + v];
        acc = math.fma(math.splat(scalar), columnsOfRhs[v], acc);
      }
    }
  };
  Value zero = math.splat(math.constant(type, 0.0));
  SmallVector<Value> accs = buildChains(
      gemm.k, unroll, SmallVector<Value>(tile, zero), accumulate,
      [&](size_t, Value left, Value right) { return math.add(left, right); });

  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < vectors; ++v) {
      Index place = emitter.addIndex(column, v * numLanes);
      if (!place.value)
        place.value = emitter.constantI64(0);
      place.lanes = getLanes(v);
      IndexList index = getGemmIndex(batch, tileRows[r], place);
      Value acc = accs[r * vectors + v];
      // A product of one element has no lanes.
      bool hasLanes = llvm::any_of(
          llvm::zip_equal(
              index,
              cast<RankedTensorType>(dot.getResult().getType()).getShape()),
          [](auto dim) {
            return std::get<0>(dim).lanes && std::get<1>(dim) > 1;
          });
      if (!hasLanes)
        acc = emitter.getFirstLane(acc);
      emitter.preset(dot.getResult(), index, acc);
      storeFull(index);
    }
  }
}

void NestBuilder::buildInnerProducts(UnitRange range) {
  const GemmView &gemm = plan.gemm;
  DotGeneralOp dot = nest.dot;
  Value lhs = plan.isSwapped ? dot.getRhs() : dot.getLhs();
  Value rhs = plan.isSwapped ? dot.getLhs() : dot.getRhs();
  Type type = NestEmitter::getComputeType(dot.getResult());
  forEachUnit(range, [&](Index unit) {
    IndexList places = emitter.delinearize(unit, {gemm.batch, gemm.n});
    Value zero = math.splat(math.constant(type, 0.0));
    Value sum = buildVectors(
        gemm.k, 4, zero,
        [&](Index k, MutableArrayRef<Value> accs) {
          Value left = emitter.load(
              lhs, getLinear({{places[0], gemm.lhs.batch}, {k, 1}}), 1,
              k.lanes);
          Value right = emitter.load(rhs,
                                     getLinear({{places[0], gemm.rhs.batch},
                                                {places[1], gemm.rhs.free},
                                                {k, 1}}),
                                     1, k.lanes);
          accs[0] = math.fma(left, right, accs[0]);
        },
        [&](size_t, Value left, Value right) {
          return math.add(left, right);
        })[0];
    sum = emitter.combineLanes(ReductionKind::Sum, sum);
    IndexList index = getGemmIndex(places[0], Index(), places[1]);
    emitter.preset(dot.getResult(), index, sum);
    storeFull(index);
  });
}

} // namespace shardc
