//===- PackedGemm.cpp - GEMMs on packed panels ----------------------------===//

#include "backends/cpu/PackedGemm.h"

#include "base/Convert.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace shardc::rt;

/// Terms of a block. A panel of b of 16 columns then takes 24 KiB, a panel of a
/// 9 KiB. The bits depend on it.
static constexpr int64_t maxTerms = 384;
/// Of GEMMs of bf16. A panel of b of 32 columns takes 64 KiB of pairs, and may
/// come from the second-level cache: a term is 28 multiply-adds.
static constexpr int64_t maxHalfTerms = 1024;
/// Rows of a and columns of b that a worker packs at a time: they stay in its
/// second-level cache.
static constexpr int64_t maxGroupRows = 144, maxGroupColumns = 128;
/// Elements of all that a worker packs.
static constexpr int64_t maxOwn = (maxGroupRows + maxGroupColumns) * maxTerms;
/// Elements of shared factors that are packed at a time: 4 MiB.
static constexpr int64_t maxSharedElements = int64_t(1) << 20;
/// Elements that tiles may pack more than once; beyond that they are packed
/// before the tiles, which takes a barrier, or about as long as packing these.
static constexpr int64_t maxRepacked = int64_t(1) << 14;
/// Rows or columns of a tile, and its operations, at least.
static constexpr int64_t minTileExtent = 32, minTileFlops = 1 << 20;
/// Elements of a factor, 1 MiB, that stays in the second-level cache or comes
/// from the third-level one by itself. Panels of larger ones are fetched while
/// at least so many panels of rows are multiplied: with fewer, instructions to
/// fetch hold up the multiply-adds.
static constexpr int64_t maxNear = int64_t(1) << 18, minPanelsToFetch = 8;
/// With so few terms a kernel takes all panels of columns that lie side by
/// side: to begin and end one takes as long as some terms.
static constexpr int64_t maxTermsAlongRows = 128;
/// Elements of a block of the factor of rows that are read in place: 128 KiB.
static constexpr int64_t maxInPlace = 1 << 15;
/// With fewer terms a kernel has more to do to find rows than to read them.
static constexpr int64_t minTermsInPlace = 48;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

PackedGemm::Range PackedGemm::part(int64_t extent, int64_t unit, int64_t index,
                                   int64_t count) {
  int64_t units = ceilDiv(extent, unit);
  return {std::min(extent, units * index / count * unit),
          std::min(extent, units * (index + 1) / count * unit)};
}

/// The addends of a block: the largest power of two of them, so that each block
/// is a node of the tree, with `maxTerms` at most.
static int64_t addendsOfBlock(const GemmCommand &gemm) {
  static_assert(maxTerms <= MicroKernels::mostAddends);
  int64_t count = 1;
  while (2 * count * gemm.k <= maxTerms)
    count *= 2;
  return count;
}

bool PackedGemm::canAdd(const GemmCommand &gemm, int64_t addends) {
  // The tree of two or three blocks adds one after the other.
  return gemm.batch == 1 && gemm.k > 0 && gemm.k <= maxTerms &&
         ceilDiv(addends, addendsOfBlock(gemm)) <= 3 && !gemm.accumulate &&
         gemm.bias < 0 && gemm.activation == Activation::None;
}

PackedGemm::PackedGemm(const GemmCommand &gemm, GemmCalls calls,
                       const MicroKernels &kernels, int64_t addends,
                       const GemmPieces &pieces, GemmTypes types)
    : gemm(gemm), pieces(pieces), isHalf(types.factors == DType::BF16),
      isResultHalf(types.result == DType::BF16), kernels(&kernels),
      inPairs(isHalf && kernels.multipliesPairs()), m(gemm.m), n(gemm.n),
      k(inPairs ? ceilDiv(gemm.k, 2) : addends * gemm.k), addends(addends),
      perBlock(addends > 1 ? addendsOfBlock(gemm) : 1),
      blocks(addends > 1 ? ceilDiv(addends, perBlock)
                         : ceilDiv(gemm.k, isHalf ? maxHalfTerms : maxTerms)) {
  if (m == 0 || n == 0)
    return;
  chooseKernels();
  alongRows = k <= maxTermsAlongRows; // One block.
  chooseTiles(calls);
  keepsSums = mayKeepSums() && slabs == 1;
}

/// How many rows that lie `stride` elements apart stay in the first-level cache
/// while kernels read them side by side: as many as one set has ways, times the
/// sets in which they are. Rows of 4 KiB are all in one.
static int64_t mostRowsApart(int64_t stride) {
  constexpr int64_t ways = 8, bytesOfAllSets = 4096;
  return ways * (bytesOfAllSets /
                 std::gcd<int64_t>(stride * sizeof(float), bytesOfAllSets));
}

/// Decides whether the transpose is computed, and what is read in place.
void PackedGemm::orient(bool swaps) {
  isSwapped = swaps;
  m = swaps ? gemm.n : gemm.m;
  n = swaps ? gemm.m : gemm.n;
  const PiecedFactor rowFactor = factor(Side::Rows, nullptr, 0);
  areRowsAdjacent = rowFactor.stride() == 1;
  // Rounding is a part of packing, and packed addends follow one another.
  // Where terms are rows, a panel is a part of a line or two of each.
  bool mayRead = gemm.precision == Precision::Highest && addends == 1 &&
                 !isHalf && rowFactor.isWhole();
  bool areFewPanels = columnPanels(n).count() <= 4;
  bool isSmall = m * std::min(k, maxTerms) <= maxInPlace;
  readsRows =
      mayRead &&
      (areRowsAdjacent ? m <= 16 || (areFewPanels && isSmall)
                       : areFewPanels || (isSmall && k > minTermsInPlace));
  mostRows = INT64_MAX;
  if (readsRows && !areRowsAdjacent)
    mostRows = mostRowsApart(rowFactor.stride());
}

/// Chooses kernels and orientation by an estimate of the cycles.
void PackedGemm::chooseKernels() {
  constexpr int64_t narrow = 64;
  const bool maySwap =
      pieces.columnsOfC == 0 && std::min(gemm.m, gemm.n) < narrow;
  auto estimate = [&](bool swaps) {
    orient(swaps);
    return estimateCycles();
  };
  auto chooseOrientation = [&] {
    const double swapped = maySwap ? estimate(true) : HUGE_VAL,
                 plain = estimate(false);
    if (swapped < plain)
      orient(true);
    return std::min(swapped, plain);
  };
  const double cycles = chooseOrientation();
  const MicroKernels *first = kernels;
  if (!first->narrower || isHalf)
    return;
  kernels = first->narrower;
  // The estimates are not that exact; kernels of shorter vectors begin and end
  // in less time.
  const double least = k <= maxTermsAlongRows ? 1.01 : 0.95;
  if (chooseOrientation() < least * cycles)
    return;
  kernels = first;
  chooseOrientation();
}

/// The cycles of one core: those of multiply-adds, each of which ends after
/// four, of packing, and of storing c.
double PackedGemm::estimateCycles() const {
  Panels rows = rowPanels(m), columns = columnPanels(n);
  int64_t vectors = ceilDiv(columns.packedExtent(), kernels->lanes);
  double rowsOfPanel = double(m) / rows.count();
  auto ofTerm = [&](int64_t vectorsOfPanel) {
    return std::max(
        rowsOfPanel * vectorsOfPanel / kernels->multiplyAddsPerCycle, 4.0);
  };
  int64_t fullTiles = vectors / kernels->maxVectors;
  double perTerm = double(fullTiles) * ofTerm(kernels->maxVectors);
  if (vectors % kernels->maxVectors)
    perTerm += ofTerm(1);
  double cycles = perTerm * rows.count() * k;
  if (!readsRows)
    cycles += 0.5 * m * k;
  if (factor(Side::Columns, nullptr, 0).stride() != 1)
    cycles += 0.6 * n * k;
  return cycles +
         (isSwapped ? 1.5 : 0.25) * m * n * (mayKeepSums() ? 1 : blocks);
}

bool PackedGemm::mayKeepSums() const {
  return isSwapped && readsRows && m > n && blocks > 1 && !gemm.accumulate &&
         columnPanels(n).packedExtent() * k <= maxOwn;
}

/// Tiles of some microseconds or more, at most eight or as many as have
/// `maxGroupColumns` twice, in all calls together. Several are an even number,
/// so that two workers can share them.
void PackedGemm::chooseTiles(GemmCalls calls) {
  int64_t distinctRows = isSwapped ? calls.distinctB : calls.distinctA;
  int64_t distinctColumns = isSwapped ? calls.distinctA : calls.distinctB;
  // The way with fewer elements to pack.
  int64_t packedM = readsRows ? 0 : m,
          packedN = rowPanels(m).count() == 1 ? 0 : n;
  int64_t ofRowTiles = calls.count * packedM + distinctColumns * packedN;
  int64_t ofColumnTiles = distinctRows * packedM + calls.count * packedN;
  byRows = ofRowTiles < ofColumnTiles ||
           (ofRowTiles == ofColumnTiles && m >= (readsRows ? 4 * n : n));
  int64_t extent = byRows ? m : n;
  int64_t most =
      std::max(ceilDiv(8, calls.count), ceilDiv(extent, 2 * maxGroupColumns));
  tiles = std::clamp<double>(2.0 * m * n * k / minTileFlops, 1, double(most));
  tiles = std::clamp<int64_t>(extent / minTileExtent, 1, tiles);
  if (tiles > 1)
    tiles -= tiles % 2;

  int64_t distinct = byRows ? distinctColumns : distinctRows;
  int64_t elements = sharedPanels().packedExtent() * k;
  isShared =
      !(!byRows && readsRows) &&
      elements * (tiles * calls.count - distinct) > maxRepacked * calls.count;
  if (isShared && !isResultHalf)
    slabs = std::clamp<int64_t>(ceilDiv(elements * distinct, maxSharedElements),
                                1, blocks);
}

PreparedGemm::SharedFactor PackedGemm::sharedFactor() const {
  if (!isShared)
    return SharedFactor::None;
  return byRows != isSwapped ? SharedFactor::B : SharedFactor::A;
}

uint64_t PackedGemm::packedBytes() const {
  int64_t terms = 0;
  for (int64_t slab = 0; isShared && slab < slabs; ++slab) {
    Range of = blocksOf(slab);
    terms = std::max(terms, termsOf(of.end - 1).end - termsOf(of.begin).begin);
  }
  return sharedPanels().packedExtent() * terms * sizeof(float);
}

int64_t PackedGemm::numPackTasks(int64_t round) const {
  return isShared ? blocksOf(round).size() *
                        ceilDiv(sharedPanels().count(), sharedPanelsAtOnce())
                  : 0;
}

/// A matrix of `columns`, whose elements are its rows, or its columns.
static PiecedFactor factorOf(const float *data, int64_t columns,
                             bool elementsAreRows, const MatrixPieces &pieces) {
  const int64_t row = pieces.isWhole() ? columns : pieces.rowStride;
  const int64_t stride = elementsAreRows ? row : 1;
  const int64_t termStride = elementsAreRows ? 1 : row;
  const Factor first{data, stride, termStride};
  if (pieces.isWhole())
    return PiecedFactor(first);
  const bool areTerms = pieces.areRows != elementsAreRows;
  if (pieces.distance > 0)
    return {first, pieces.distance, pieces.extent, areTerms};
  return {reinterpret_cast<const float *const *>(data), pieces.extent, areTerms,
          stride, termStride};
}

PiecedFactor PackedGemm::factor(Side side, const void *data,
                                int64_t round) const {
  const float *batch = static_cast<const float *>(data) +
                       round / slabs * gemm.k * (isA(side) ? gemm.m : gemm.n);
  return isA(side) ? factorOf(batch, gemm.transposeA ? gemm.m : gemm.k,
                              !gemm.transposeA, pieces.a)
                   : factorOf(batch, gemm.transposeB ? gemm.k : gemm.n,
                              gemm.transposeB, pieces.b);
}

HalfFactor PackedGemm::halfFactor(Side side, const void *data,
                                  int64_t round) const {
  const int64_t elements = isA(side) ? gemm.m : gemm.n;
  const bool areRows = isA(side) ? !gemm.transposeA : gemm.transposeB;
  return {static_cast<const uint16_t *>(data) +
              round / slabs * gemm.k * elements,
          areRows ? gemm.k : 1, areRows ? 1 : elements};
}

/// Packs panels of a factor of some addends, whose elements begin at
/// `firstElement`, rounded to the precision of the GEMM.
template <typename AddressOf>
void PackedGemm::packFactor(Side side, AddressOf addressOfAddend, int64_t round,
                            int64_t firstElement, const Panels &panels,
                            Range which, Range terms, float *to) const {
  const int64_t place = panels.begin(which.begin), last = which.end - 1;
  if (isHalf) {
    const int64_t together = inPairs ? 2 : 1, begin = terms.begin * together,
                  end = std::min(gemm.k, terms.end * together);
    const HalfFactor from = halfFactor(side, addressOfAddend(0), round)
                                .at(firstElement + place, begin);
    (inPairs ? packPairs : packWidened)(from, panels, which.begin, which.end,
                                        end - begin, to);
    return;
  }
  for (int64_t term = terms.begin, next; term < terms.end; term = next) {
    int64_t addend = term / gemm.k;
    next = std::min(terms.end, (addend + 1) * gemm.k);
    packPanels(factor(side, addressOfAddend(addend), round)
                   .at(firstElement + place, term - addend * gemm.k),
               panels, which.begin, which.end,
               {term - terms.begin, next - term, terms.size()}, to);
  }
  if (gemm.precision == Precision::Highest)
    return;
  int64_t width = panels.begin(last) - place + panels.packedSize(last);
  for (int64_t i = 0; i < width * terms.size(); ++i)
    to[i] = roundTo(gemm.precision, to[i]);
}

void PackedGemm::pack(const void *const *factors, void *packed, int64_t round,
                      int64_t task) const {
  Panels panels = sharedPanels();
  int64_t first = blocksOf(round).begin,
          groups = ceilDiv(panels.count(), sharedPanelsAtOnce());
  Range which =
      part(panels.count(), sharedPanelsAtOnce(), task % groups, groups);
  Range terms = termsOf(first + task / groups);
  int64_t before = (terms.begin - termsOf(first).begin) * panels.packedExtent();
  packFactor(
      byRows ? Side::Columns : Side::Rows,
      [&](int64_t addend) { return factors[addend]; }, round, 0, panels, which,
      terms,
      static_cast<float *>(packed) + before +
          panels.begin(which.begin) * terms.size());
}

namespace {

/// Fetches rows of memory into the second-level cache, a part at a time, while
/// others are at work.
class Prefetch {
public:
  Prefetch() = default;
  /// `rows` rows of `elements`, in `parts` parts.
  Prefetch(const float *data, int64_t rows, int64_t elements, int64_t stride,
           int64_t parts)
      : data(data), rows(rows), lines(ceilDiv(elements, lineElements)),
        stride(stride), step(ceilDiv(rows * lines, parts)) {}
  /// What a panel of `size` elements is packed from.
  Prefetch(const Factor &from, int64_t size, int64_t terms, int64_t parts)
      : Prefetch(from.data, from.stride == 1 ? terms : size,
                 from.stride == 1 ? size : terms,
                 from.stride == 1 ? from.termStride : from.stride, parts) {}

  void fetchPart() {
    for (int64_t i = 0; i < step && row < rows; ++i) {
      __builtin_prefetch(data + row * stride + line * lineElements, 0, 2);
      if (++line == lines)
        line = 0, ++row;
    }
  }

private:
  static constexpr int64_t lineElements = 64 / sizeof(float);

  const float *data = nullptr;
  int64_t rows = 0, lines = 0, stride = 0;
  int64_t step = 0;          ///< Lines of a part.
  int64_t row = 0, line = 0; ///< The next one.
};

} // namespace

/// One tile in one round.
struct PackedGemm::Tile {
  const GemmOperands &operands;
  int64_t round;
  int64_t firstRow, firstColumn;
  Panels rows, columns;
  /// The panels that have been packed for all tiles; null: the tile packs them.
  const float *packedA, *packedB;
  float *ownA, *ownB; ///< Where it packs the panels of a group.
  int64_t firstTerm;  ///< Of the round.
  /// From the first row and column, with the epilogue; in blocks of columns
  /// from those of c.
  MicroTile result;
};

/// Packs panels of a tile's own factor.
void PackedGemm::packOwn(Side side, const Tile &tile, Range which, Range terms,
                         float *to) const {
  bool ofRows = side == Side::Rows;
  packFactor(
      side,
      [&](int64_t addend) { return addressOf(side, tile.operands, addend); },
      tile.round, ofRows ? tile.firstRow : tile.firstColumn,
      ofRows ? tile.rows : tile.columns, which, terms, to);
}

/// The place of the element of c in a row and a column of a tile, and of its
/// bias if there is one.
inline void PackedGemm::placeResult(const Tile &tile, int64_t row,
                                    int64_t column, MicroTile &result) const {
  const MicroTile &first = tile.result;
  if (first.bias)
    result.bias = first.bias + row * first.biasRow + column * first.biasColumn;
  if (first.half)
    result.half = first.half + row * first.halfRow + column * first.halfColumn;
  const int64_t width = pieces.columnsOfC;
  if (width == 0) {
    result.c = first.c + row * first.cRow + column * first.cColumn;
    return;
  }
  row += tile.firstRow;
  column += tile.firstColumn;
  result.c =
      first.c + column / width * width * m + row * width + column % width;
}

/// Sets the factor of rows to a panel, of `group`, which is packed with the
/// first panel of columns.
inline void PackedGemm::chooseRows(const Tile &tile, Range terms, Range group,
                                   int64_t i, bool isFirst,
                                   MicroFactors &factors) const {
  const Panels &panels = tile.rows;
  int64_t row = panels.begin(i);
  factors.aRow = 1;
  factors.aTerm = panels.size(i);
  if (tile.packedA) {
    factors.a = tile.packedA +
                (terms.begin - tile.firstTerm) * panels.packedExtent() +
                row * terms.size();
  } else if (readsRows) {
    Factor inPlace =
        factor(Side::Rows, addressOf(Side::Rows, tile.operands), tile.round)
            .from(tile.firstRow + row, terms.begin);
    factors.a = inPlace.data;
    factors.aRow = inPlace.stride;
    factors.aTerm = inPlace.termStride;
  } else {
    float *own = tile.ownA + (row - panels.begin(group.begin)) * terms.size();
    factors.a = own;
    int64_t atOnce = panelsAtOnce();
    if (isFirst && (i - group.begin) % atOnce == 0)
      packOwn(Side::Rows, tile, {i, std::min(i + atOnce, group.end)}, terms,
              own);
  }
}

/// Multiplies groups of panels; those of the tile's own factors are packed with
/// the first panel of the other factor that they meet, columns in their order
/// by the kernel that multiplies them.
void PackedGemm::multiplyPanels(const Tile &tile, int64_t block, Range rows,
                                Range columns) const {
  if (alongRows)
    return multiplyRows(tile, rows, columns);
  const Panels &ofRows = tile.rows, &ofColumns = tile.columns;
  Range terms = termsOf(block);
  int64_t before = terms.begin - tile.firstTerm;
  const PiecedFactor columnFactor =
      factor(Side::Columns, addressOf(Side::Columns, tile.operands), tile.round)
          .at(tile.firstColumn, 0);
  int64_t addendsOfTerms = addends > 1 ? terms.size() / gemm.k : 1;
  int64_t perAddend = terms.size() / addendsOfTerms;
  bool isLast = block + 1 == blocks;
  MicroTile result = tile.result;
  result.adds = gemm.accumulate || block > 0;
  result.relu = isLast && tile.result.relu;
  bool fetches = n * k > maxNear && rows.size() >= minPanelsToFetch;
  for (int64_t j = columns.begin; j < columns.end; ++j) {
    int64_t column = ofColumns.begin(j), width = ofColumns.packedSize(j);
    MicroFactors factors{nullptr, nullptr, 1, 0, width, addendsOfTerms};
    Prefetch next;
    // Whether the first panel of rows reads columns where they lie and packs
    // them.
    bool packsFirst = false;
    if (tile.packedB) {
      factors.b = tile.packedB + before * ofColumns.packedExtent() +
                  column * terms.size();
      if (fetches && j + 1 < columns.end)
        next = Prefetch(factors.b + width * terms.size(), 1,
                        ofColumns.packedSize(j + 1) * terms.size(), 0,
                        rows.size());
    } else {
      // One panel at a time if no other rows will read it.
      bool isOnly = rows.size() == ofRows.count();
      int64_t first = isOnly ? column : ofColumns.begin(columns.begin);
      float *own = tile.ownB + (column - first) * terms.size();
      packsFirst =
          rows.begin == 0 && columnFactor.stride() == 1 &&
          ofColumns.size(j) == kernels->maxColumns() && addends == 1 &&
          gemm.precision == Precision::Highest && !isHalf &&
          columnFactor.isOnePiece(column, width, terms.begin, terms.size());
      if (packsFirst) {
        Factor inPlace = columnFactor.from(column, terms.begin);
        factors.b = inPlace.data;
        factors.bTerm = inPlace.termStride;
        factors.packedB = ofRows.count() > 1 ? own : nullptr;
      } else {
        factors.b = own;
        if (rows.begin == 0)
          packOwn(Side::Columns, tile, {j, j + 1}, terms, own);
      }
      if (rows.begin == 0 && fetches && addends == 1 && !isHalf &&
          j + 1 < columns.end)
        next =
            Prefetch(columnFactor.from(column + ofColumns.size(j), terms.begin),
                     ofColumns.size(j + 1), terms.size(), rows.size());
    }
    result.columns = ofColumns.size(j);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      chooseRows(tile, terms, rows, i, j == columns.begin, factors);
      next.fetchPart();
      placeResult(tile, ofRows.begin(i), column, result);
      if (!isLast)
        result.bias = nullptr, result.half = nullptr;
      kernels->kernel(packsFirst ? MicroKernels::Use::InPlace : packedUse(),
                      ofRows.size(i), width,
                      factors.aRow == 1)(perAddend, factors, result);
      if (packsFirst) {
        packsFirst = false;
        factors.b = factors.packedB;
        factors.bTerm = width;
      }
    }
  }
}

/// As above, for so few terms that a kernel takes all full panels of columns.
void PackedGemm::multiplyRows(const Tile &tile, Range rows,
                              Range columns) const {
  const Panels &ofRows = tile.rows, &ofColumns = tile.columns;
  Range terms = termsOf(0);
  int64_t first = ofColumns.begin(columns.begin), last = columns.end - 1;
  const float *b = tile.packedB ? tile.packedB + first * k : tile.ownB;
  if (!tile.packedB && rows.begin == 0)
    packOwn(Side::Columns, tile, columns, terms, tile.ownB);
  int64_t width = kernels->maxColumns();
  int64_t full = columns.size() - (ofColumns.size(last) < width);
  MicroFactors factors{nullptr, nullptr, 1, 0, 0, addends};
  MicroTile result = tile.result;
  result.adds = gemm.accumulate;
  auto multiply = [&](int64_t i, int64_t j, int64_t panels) {
    int64_t row = ofRows.begin(i), height = ofRows.size(i);
    int64_t column = ofColumns.begin(j), packedWidth = ofColumns.packedSize(j);
    factors.b = b + (column - first) * k;
    factors.bTerm = packedWidth;
    placeResult(tile, row, column, result);
    result.columns = ofColumns.size(j);
    result.panels = panels;
    kernels->kernel(packedUse(), height, packedWidth,
                    factors.aRow == 1)(k / addends, factors, result);
  };
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    chooseRows(tile, terms, rows, i, true, factors);
    // Those of a block of c at a time.
    const int64_t end = columns.begin + full;
    for (int64_t j = columns.begin, panels; j < end; j += panels) {
      panels = end - j;
      if (int64_t ofBlock = pieces.columnsOfC / width)
        panels = std::min(panels,
                          ofBlock - (tile.firstColumn / width + j) % ofBlock);
      multiply(i, j, panels);
    }
    if (full < columns.size())
      multiply(i, last, 1);
  }
}

/// Multiplies rows in place by all columns, a panel of rows at a time: the sums
/// of all blocks of terms are complete before the tile of c is stored, whose
/// elements lie apart.
void PackedGemm::multiplyKeepingSums(const Tile &tile) const {
  const Panels &ofRows = tile.rows, &ofColumns = tile.columns;
  const float *b = tile.packedB;
  if (!b) {
    b = tile.ownB;
    for (int64_t block = 0; block < blocks; ++block)
      packOwn(Side::Columns, tile, {0, ofColumns.count()}, termsOf(block),
              tile.ownB + termsOf(block).begin * ofColumns.packedExtent());
  }
  alignas(64) float sums[MicroKernels::mostElements];
  for (int64_t i = 0; i < ofRows.count(); ++i)
    for (int64_t j = 0; j < ofColumns.count(); ++j) {
      const int64_t column = ofColumns.begin(j),
                    width = ofColumns.packedSize(j);
      MicroFactors factors{nullptr, nullptr, 1, 0, width};
      MicroTile partial{sums, width, 1, width, false, nullptr, 0, 0, false};
      MicroTile result = tile.result;
      result.adds = false;
      result.columns = ofColumns.size(j);
      placeResult(tile, ofRows.begin(i), column, result);
      for (int64_t block = 0; block < blocks; ++block) {
        const Range terms = termsOf(block);
        chooseRows(tile, terms, {}, i, false, factors);
        factors.b =
            b + terms.begin * ofColumns.packedExtent() + column * terms.size();
        const bool isLast = block + 1 == blocks;
        result.earlier = partial.earlier = block > 0 ? sums : nullptr;
        kernels->kernel(packedUse(), ofRows.size(i), width, factors.aRow == 1)(
            terms.size(), factors, isLast ? result : partial);
      }
    }
}

/// Memory for the groups that a thread packs, which stacks may be too small
/// for: 408 KiB.
static float *panelsOfThread() {
  struct Free {
    void operator()(float *data) const { std::free(data); }
  };
  thread_local std::unique_ptr<float, Free> panels(
      static_cast<float *>(std::aligned_alloc(64, maxOwn * sizeof(float))));
  return panels.get();
}

namespace {

/// Takes subnormal numbers of f32 for 0, as instructions for bf16 do, for as
/// long as it lives.
class FlushSubnormals {
public:
#if defined(__x86_64__)
  explicit FlushSubnormals(bool flushes)
      : flushes(flushes), before(flushes ? _mm_getcsr() : 0) {
    constexpr unsigned results = 0x8000, operands = 0x40;
    if (flushes)
      _mm_setcsr(before | results | operands);
  }
  ~FlushSubnormals() {
    if (flushes)
      _mm_setcsr(before);
  }

private:
  bool flushes;
  unsigned before;
#else
  explicit FlushSubnormals(bool /*flushes*/) {}
#endif
};

/// Where c has the type of the factors, bf16: the sums of a tile and its bias,
/// in f32.
struct WideTile {
  std::vector<float> sums, bias;
};

} // namespace

static void widen(const uint16_t *from, int64_t elements, int64_t distance,
                  float *to) {
  for (int64_t i = 0; i < elements; ++i)
    to[i] = fromBF16(from[i * distance]);
}

/// Places a tile of c of bf16, whose first element is number `first`, and its
/// sums and bias in f32.
void PackedGemm::placeHalves(const GemmOperands &operands, int64_t first,
                             Range rows, Range columns,
                             MicroTile &result) const {
  static thread_local WideTile wide;
  result.half = static_cast<uint16_t *>(operands.c) + first;
  result.halfRow = result.cRow;
  result.halfColumn = result.cColumn;
  result.cRow = columns.size();
  result.cColumn = 1;
  if (blocks != 1 || gemm.accumulate)
    wide.sums.resize(
        std::max<size_t>(wide.sums.size(), rows.size() * columns.size()));
  result.c = wide.sums.data();
  for (int64_t row = 0; gemm.accumulate && row < rows.size(); ++row)
    widen(result.half + row * result.halfRow, columns.size(), result.halfColumn,
          result.c + row * result.cRow);
  if (!operands.bias)
    return;
  Range of = isSwapped ? rows : columns;
  wide.bias.resize(std::max<size_t>(wide.bias.size(), of.size()));
  widen(static_cast<const uint16_t *>(operands.bias) + of.begin, of.size(), 1,
        wide.bias.data());
  result.bias = wide.bias.data();
}

int64_t PackedGemm::numGroups(const Panels &panels, int64_t most,
                              int64_t panelSize) const {
  if (isHalf) {
    const int64_t unit = unitOfBlocks(),
                  longest = unit * ceilDiv(ceilDiv(k, unit), blocks);
    most = most * maxTerms / longest;
  } else if (alongRows) {
    most *= maxTerms / k;
  }
  return ceilDiv(panels.count(), std::max<int64_t>(1, most / panelSize));
}

void PackedGemm::run(const GemmOperands &operands, int64_t round,
                     int64_t index) const {
  FlushSubnormals flush(isHalf);
  Range rows = byRows ? part(m, maxRows(), index, tiles) : Range{0, m};
  Range columns =
      byRows ? Range{0, n} : part(n, kernels->maxColumns(), index, tiles);
  // Row-major, or of the transpose.
  int64_t cRow = isSwapped ? 1 : n, cColumn = isSwapped ? m : 1;
  int64_t biasRow = isSwapped, biasColumn = !isSwapped;
  int64_t first = round / slabs * m * n;
  if (pieces.columnsOfC > 0)
    cRow = pieces.columnsOfC;
  else
    first += rows.begin * cRow + columns.begin * cColumn;
  MicroTile result{nullptr, cRow,       cColumn,
                   0,       true,       nullptr,
                   biasRow, biasColumn, gemm.activation == Activation::Relu};
  if (isResultHalf) {
    placeHalves(operands, first, rows, columns, result);
  } else {
    result.c = static_cast<float *>(operands.c) + first;
    if (operands.bias)
      result.bias = static_cast<const float *>(operands.bias) +
                    rows.begin * biasRow + columns.begin * biasColumn;
  }
  if (gemm.k == 0)
    return finishEmpty(rows.size(), columns.size(), result);
  const float *packed =
      isShared ? static_cast<const float *>(operands.packed) : nullptr;
  float *own = panelsOfThread();
  Range slab = blocksOf(round);
  Tile tile{operands,
            round,
            rows.begin,
            columns.begin,
            rowPanels(rows.size()),
            columnPanels(columns.size()),
            byRows ? nullptr : packed,
            byRows ? packed : nullptr,
            own,
            keepsSums ? own : own + maxGroupRows * maxTerms,
            termsOf(slab.begin).begin,
            result};
  if (keepsSums)
    return multiplyKeepingSums(tile);
  // Columns are in one group unless the tile packs them: then it packs each
  // panel of rows once.
  int64_t columnGroups =
      tile.packedB && !alongRows
          ? 1
          : numGroups(tile.columns, maxGroupColumns, kernels->maxColumns());
  int64_t rowGroups = numGroups(tile.rows, maxGroupRows, maxRows());
  for (int64_t columnGroup = 0; columnGroup < columnGroups; ++columnGroup)
    for (int64_t block = slab.begin; block < slab.end; ++block)
      for (int64_t rowGroup = 0; rowGroup < rowGroups; ++rowGroup)
        multiplyPanels(
            tile, block, part(tile.rows.count(), 1, rowGroup, rowGroups),
            part(tile.columns.count(), 1, columnGroup, columnGroups));
}

/// A tile of a GEMM without terms.
void PackedGemm::finishEmpty(int64_t rows, int64_t columns,
                             const MicroTile &result) const {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      float &place = result.c[row * result.cRow + column * result.cColumn];
      float value = gemm.accumulate ? place : 0;
      if (result.bias)
        value += result.bias[row * result.biasRow + column * result.biasColumn];
      if (result.relu && value < 0)
        value = 0;
      if (result.half)
        result.half[row * result.halfRow + column * result.halfColumn] =
            toBF16(value);
      else
        place = value;
    }
}
