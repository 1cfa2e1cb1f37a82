//===- NestPlan.cpp - Vectorisation and division of nests -----------------===//

#include "NestPlan.h"

#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::divideCeil;

namespace shardc {

/// Multiply-adds that one iteration of a kernel is worth at least: about a
/// microsecond, some ten times the cost of a barrier.
static constexpr int64_t workPerIteration = 1 << 16;
/// The part of it from which on a nest has two iterations: what one worker does
/// alone it reads from the cache of the other one, who then has to wait for the
/// lines when it writes there again. And where another worker has the other
/// half of the rows, there is no barrier.
static constexpr double worthSharing = 0.0625;
/// Rows of a register tile, of one vector or of two.
static constexpr int64_t mostRowsOfVector = 10, mostRowsOfTwo = 6;
/// Columns of a GEMM of pairs: with four pairs, sums and rows do not fit into
/// the registers of AVX2. Measured: seven and eight columns lose a fifth.
static constexpr int64_t mostColumnsOfPairs = 6;
/// Terms of a GEMM of pairs: its second factor stays in the first-level cache.
static constexpr int64_t mostTermsOfPairs = 1024;

/// The cost of an op for each element, in multiply-adds.
static int64_t getWork(Operation *op, NestKind kind) {
  int64_t work = getElementWork(op);
  if (kind != NestKind::Map)
    return work;
  // Such a GEMM or reduction is computed whole for each element.
  if (auto dot = dyn_cast<DotGeneralOp>(op))
    for (int64_t dim : dot.getLhsContracting())
      work *= getTensorShape(dot.getLhs())[dim];
  if (auto reduce = dyn_cast<ReduceOp>(op))
    for (int64_t dim : reduce.getDims())
      work *= getTensorShape(reduce.getOperand())[dim];
  return work;
}

/// The cost of an element of the nest beside the GEMM itself: some for
/// reading and writing it, the rest for its ops.
static int64_t getWorkPerElement(const KernelNest &nest) {
  int64_t work = 8;
  for (Operation *op : nest.ops)
    work += getWork(op, nest.kind);
  return work;
}

/// How many iterations the nest is worth if each element takes so many
/// multiply-adds of a GEMM: a power of two, so that nests over the same rows
/// are mostly divided at the same ones. Then their iterations need not wait for
/// one another.
static int64_t getIterations(const NestPlan &plan, int64_t elementsPerUnit,
                             int64_t contracted = 0) {
  int64_t workPerUnit =
      elementsPerUnit * (contracted + getWorkPerElement(plan.nest));
  double wanted = double(plan.units) * workPerUnit / workPerIteration;
  int64_t iterations = wanted >= worthSharing ? 2 : 1;
  while (2 * iterations <= wanted)
    iterations *= 2;
  return iterations;
}

/// Divides the units into about so many iterations, at multiples of `together`
/// units.
static void divide(NestPlan &plan, int64_t iterations, int64_t together = 1) {
  // Of few pieces a worker would have one more than another, or two, if they
  // were put together.
  constexpr int64_t fewPieces = 64;
  const int64_t pieces = divideCeil(plan.units, together);
  int64_t perIteration = divideCeil(pieces, iterations);
  if (pieces % iterations != 0 && pieces <= fewPieces && iterations > 1)
    perIteration = 1;
  plan.unitsPerIteration = perIteration * together;
}

/// Rows of a register tile, as many as `most` if they make whole tiles: a third
/// less is as fast, and nests are divided at the same rows. Rather a fifth less
/// than an odd number of tiles, which two workers cannot share evenly.
static int64_t getTileRows(int64_t rows, int64_t most) {
  for (int64_t tile = most; 5 * tile >= 4 * most; --tile)
    if (rows % (2 * tile) == 0)
      return tile;
  for (int64_t tile = most; 3 * tile >= 2 * most; --tile)
    if (rows % tile == 0)
      return tile;
  return divideCeil(rows, divideCeil(rows, most));
}

/// Divides a nest of rows, each of so many elements, at those where GEMMs over
/// the same rows are divided, if these are enough.
static void divideRows(NestPlan &plan, int64_t elementsPerUnit) {
  const int64_t iterations = getIterations(plan, elementsPerUnit);
  int64_t ofTile = 1;
  if (!plan.nest.shape.empty() && plan.units % plan.nest.shape[0] == 0) {
    const int64_t rows = plan.nest.shape[0];
    ofTile = plan.units / rows * getTileRows(rows, mostRowsOfTwo);
  }
  divide(plan, iterations, ofTile * iterations <= plan.units ? ofTile : 1);
}

int64_t getGemmChains(const GemmView &gemm, int64_t rows) {
  int64_t tile = rows * (gemm.n > baseLanes ? 2 : 1);
  int64_t chains = tile >= 8 ? 1 : tile >= 4 ? 2 : 4;
  return std::max<int64_t>(1, std::min(chains, gemm.k));
}

/// Gives a Gemm of few columns lanes over pairs of columns if this suits. One
/// vector of them, made of four rows of the first factor by one shuffle, serves
/// the multiply-adds of all pairs; with lanes over columns alone, lanes beside
/// the columns would be empty, and each multiply-add needs a load of its own.
static void planPairs(NestPlan &plan, int64_t rowDims) {
  const GemmView &gemm = plan.gemm;
  // Terms of a row lie side by side, four at least.
  if (plan.isSwapped || gemm.n < 2 || gemm.n > mostColumnsOfPairs ||
      rowDims > 1 || gemm.k < baseLanes / 2 || gemm.k > mostTermsOfPairs ||
      gemm.lhs.contracted != 1 || gemm.lhs.free < gemm.k || plan.chains > 1)
    return;
  // Each element of the epilogue needs others at its own place alone.
  DotGeneralOp dot = plan.nest.dot;
  for (Operation *op : plan.nest.ops) {
    bool isFactor = isa<ReshapeOp>(op) &&
                    llvm::all_of(op->getUsers(),
                                 [&](Operation *user) { return user == dot; });
    if (op != dot && !isFactor && !isElementwise(op) && !isFreeToRepeat(op) &&
        !isa<RandomUniformOp>(op))
      return;
  }
  // Four to six sums in registers, and the rows beside them.
  int64_t rows = (gemm.n <= 2 ? 4 : 2) * rowsOfPairs;
  if (gemm.m < rows)
    return;
  plan.hasPairs = true;
  plan.tileRows = rows;
  if (getGemmChains(gemm, plan.lastRows) == 1)
    plan.lastRows = 0;
  // A unit is no tile: it ends where one of wider GEMMs does, the neighbours.
  if (plan.lastRows == 0)
    plan.unitRows = getTileRows(gemm.m, mostRowsOfTwo);
}

/// Plans a Gemm nest; returns false if it has no matrix view that suits.
static bool planGemm(NestPlan &plan, int64_t mostLanes) {
  DotGeneralOp dot = plan.nest.dot;
  std::optional<GemmView> view = getGemmView(dot);
  if (!view)
    return false;
  plan.gemm = *view;
  GemmView &gemm = plan.gemm;
  auto lhsShape = getTensorShape(dot.getLhs()),
       rhsShape = getTensorShape(dot.getRhs());
  auto countLong = [](ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
    return llvm::count_if(dims, [&](int64_t dim) { return shape[dim] > 1; });
  };
  int64_t rowDims = countLong(lhsShape, dot.getLhsFree());
  int64_t columnDims = countLong(rhsShape, dot.getRhsFree());
  // A result of one column has its lanes along the rows; so has one with fewer
  // columns than a vector if the factor's rows lie side by side, and enough is
  // added up to pay for storing its lanes one by one.
  plan.isSwapped =
      gemm.m > gemm.n &&
      (gemm.n == 1 || (gemm.n < baseLanes && rowDims == 1 &&
                       gemm.lhs.free == 1 && gemm.k >= 2 * baseLanes));
  if (plan.isSwapped) {
    std::swap(gemm.m, gemm.n);
    std::swap(gemm.lhs, gemm.rhs);
  }
  // Lanes run over one dimension of the result.
  if ((plan.isSwapped ? rowDims : columnDims) > 1)
    return false;
  bool isFloat = isa<FloatType>(getComputeType(dot.getResult()));
  if (plan.isSwapped && gemm.rhs.free != 1 && gemm.k > 1 && isFloat &&
      gemm.lhs.contracted == 1 && gemm.rhs.contracted == 1) {
    plan.isInnerProduct = true;
    plan.units = gemm.batch * gemm.n;
    divide(plan, getIterations(plan, /*elementsPerUnit=*/1, gemm.k));
    return true;
  }
  bool isWide = getComputeType(dot.getResult()).getIntOrFloatBitWidth() > 32;
  // Wider vectors make the same sums, of more columns at a time.
  if (gemm.n > baseLanes && !isWide)
    plan.numLanes = mostLanes;
  int64_t vectors = gemm.n > baseLanes ? 2 : 1;
  int64_t mostRows =
      (vectors == 2 ? mostRowsOfTwo : mostRowsOfVector) / (isWide ? 2 : 1);
  plan.tileRows = plan.unitRows = getTileRows(gemm.m, mostRows);
  plan.chains = getGemmChains(gemm, plan.tileRows);
  plan.lastRows = gemm.m % plan.tileRows;
  if (!isWide)
    planPairs(plan, rowDims);
  if (gemm.batch > 1) {
    plan.units = gemm.batch;
    divide(plan, getIterations(plan, gemm.m * gemm.n, gemm.k));
  } else if (plan.isSwapped) {
    plan.units = (gemm.n + columnBlock - 1) / columnBlock;
    divide(plan,
           getIterations(plan, gemm.m * std::min(gemm.n, columnBlock), gemm.k));
  } else {
    plan.units = (gemm.m + plan.unitRows - 1) / plan.unitRows;
    divide(plan, getIterations(plan, plan.unitRows * gemm.n, gemm.k));
  }
  return true;
}

void planSideBySide(NestPlan &plan, int64_t devices) {
  plan.devices = devices;
  plan.deviceLanes = plan.gemm.n;
  const int64_t columns = devices * plan.deviceLanes;
  plan.hasPairs = false;
  const int64_t mostRows =
      columns > plan.numLanes ? mostRowsOfTwo : mostRowsOfVector;
  plan.tileRows = getTileRows(plan.unitsPerIteration * plan.unitRows,
                              std::max<int64_t>(mostRows / plan.chains, 1));
}

NestPlan planNest(KernelNest nest, int64_t mostLanes, int64_t groupDevices) {
  NestPlan plan;
  plan.nest = std::move(nest);
  KernelNest &n = plan.nest;
  if (n.kind == NestKind::Gemm) {
    if (planGemm(plan, mostLanes)) {
      // It has as many times the work, and ends where nests over the same rows
      // do.
      for (; groupDevices > 1 && plan.unitsPerIteration % 2 == 0;
           groupDevices /= 2)
        plan.unitsPerIteration /= 2;
      return plan;
    }
    n.kind = NestKind::Map;
  }
  plan.isFlat = isFlatNest(n);
  plan.isScalar = isScalarNest(n);
  int64_t elements = getNumElements(n.shape);
  if (n.kind == NestKind::Map) {
    if (plan.isFlat || plan.isScalar) {
      if (elements > baseLanes)
        plan.numLanes = mostLanes;
      // Whole blocks of vectors, whatever their number.
      plan.units = elements;
      divide(plan, getIterations(plan, 1), /*together=*/64);
      return plan;
    }
    int64_t laneDim = getLastLongDim(n.shape);
    int64_t inner = laneDim < 0 ? 1 : n.shape[laneDim];
    if (inner > baseLanes)
      plan.numLanes = mostLanes;
    plan.units = elements / inner;
    divideRows(plan, inner);
    return plan;
  }
  // Reductions have an accumulator for each lane: base lanes on every CPU.
  auto [keptSizes, reducedSizes] = splitShape(n);
  int64_t kept = getNumElements(keptSizes);
  int64_t reduced = getNumElements(reducedSizes);
  int64_t laneDim = getLastLongDim(keptSizes);
  int64_t inner = laneDim < 0 ? 1 : keptSizes[laneDim];
  // Rows shorter than a vector are columns here, whose lanes run over rows.
  if (n.kind == NestKind::Rows && reduced < baseLanes && inner >= baseLanes)
    n.kind = NestKind::Columns;
  if (n.kind == NestKind::Rows) {
    plan.units = kept;
    divideRows(plan, reduced);
    return plan;
  }
  plan.units = kept / inner * ((inner + columnBlock - 1) / columnBlock);
  divide(plan, getIterations(plan, reduced * std::min(inner, columnBlock)));
  return plan;
}

} // namespace shardc
