//===- PackedGemm.cpp - GEMMs on packed panels ----------------------------===//

#include "backends/cpu/PackedGemm.h"

#include "backends/cpu/TiledGemm.h"

#include <algorithm>

using namespace shardc::rt;

/// Terms of a block. A panel of b of 16 columns then takes 24 KiB, a panel of a
/// 9 KiB. The bits depend on it.
static constexpr int64_t maxTerms = 384;
/// Rows of a and columns of b that a worker packs at a time: they stay in its
/// second-level cache.
static constexpr int64_t maxGroupRows = 144, maxGroupColumns = 128;
/// Elements of shared factors that are packed at a time: 4 MiB.
static constexpr int64_t maxSharedElements = int64_t(1) << 20;
/// Elements that tiles may pack more than once; beyond that they are packed
/// before the tiles, which takes a barrier, or about as long as packing these.
static constexpr int64_t maxRepacked = int64_t(1) << 14;
/// Rows or columns of a tile, at least.
static constexpr int64_t minTileExtent = 48;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

PackedGemm::Range PackedGemm::part(int64_t extent, int64_t unit, int64_t index,
                                   int64_t count) {
  int64_t units = ceilDiv(extent, unit);
  return {std::min(extent, units * index / count * unit),
          std::min(extent, units * (index + 1) / count * unit)};
}

/// Tiles of `flops` operations on `extent` rows or columns, beside those of the
/// other calls: some microseconds each or more, at most eight or as many as
/// have `maxGroupColumns`. Several are an even number, so that two workers can
/// share them.
static int64_t chooseTiles(double flops, int64_t extent, int64_t calls) {
  int64_t most =
      std::max(ceilDiv(8, calls), ceilDiv(extent, 2 * maxGroupColumns));
  int64_t tiles = std::clamp<double>(flops / (1 << 20), 1, double(most));
  tiles = std::clamp<int64_t>(extent / minTileExtent, 1, tiles);
  return tiles > 1 ? tiles - tiles % 2 : 1;
}

PackedGemm::PackedGemm(const GemmCommand &gemm, GemmCalls calls,
                       const MicroKernels &kernels)
    : gemm(gemm), kernels(&kernels) {
  // The one with fewer elements to pack.
  int64_t ofRowTiles = calls.count * gemm.m + calls.distinctB * gemm.n;
  int64_t ofColumnTiles = calls.distinctA * gemm.m + calls.count * gemm.n;
  byRows = ofRowTiles < ofColumnTiles ||
           (ofRowTiles == ofColumnTiles && gemm.m >= gemm.n);
  blocks = ceilDiv(gemm.k, maxTerms);
  if (gemm.m == 0 || gemm.n == 0)
    return;
  tiles = chooseTiles(2.0 * gemm.m * gemm.n * gemm.k, byRows ? gemm.m : gemm.n,
                      calls.count);
  int64_t distinct = byRows ? calls.distinctB : calls.distinctA;
  int64_t elements = sharedPanels().packedExtent() * gemm.k;
  isShared =
      elements * (tiles * calls.count - distinct) > maxRepacked * calls.count;
  if (isShared)
    slabs = std::clamp<int64_t>(ceilDiv(elements * distinct, maxSharedElements),
                                1, blocks);
}

void PackedGemm::multiply(const GemmCommand &gemm, const float *a,
                          const float *b, float *c) {
  PackedGemm whole(gemm);
  whole.tiles = whole.slabs = 1;
  whole.isShared = false;
  for (int64_t round = 0; round < whole.numRounds(); ++round)
    whole.run({a, b, nullptr, c}, round, 0);
}

PreparedGemm::SharedFactor PackedGemm::sharedFactor() const {
  if (!isShared)
    return SharedFactor::None;
  return byRows ? SharedFactor::B : SharedFactor::A;
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
  return isShared ? blocksOf(round).size() * sharedPanels().count : 0;
}

Factor PackedGemm::factorA(const void *a, int64_t round) const {
  const float *data =
      static_cast<const float *>(a) + round / slabs * gemm.m * gemm.k;
  return gemm.transposeA ? Factor{data, 1, gemm.m} : Factor{data, gemm.k, 1};
}

Factor PackedGemm::factorB(const void *b, int64_t round) const {
  const float *data =
      static_cast<const float *>(b) + round / slabs * gemm.k * gemm.n;
  return gemm.transposeB ? Factor{data, gemm.k, 1} : Factor{data, 1, gemm.n};
}

/// Packs a panel of `from`, rounded to the precision of the GEMM.
void PackedGemm::packRounded(const Factor &from, const Panels &panels,
                             int64_t panel, Range terms, float *to) const {
  int64_t width = panels.packedSize(panel);
  packPanel(from.at(panels.begin(panel), terms.begin), panels.size(panel),
            width, terms.size(), to);
  if (gemm.precision != Precision::Highest)
    for (int64_t i = 0; i < width * terms.size(); ++i)
      to[i] = roundTo(gemm.precision, to[i]);
}

void PackedGemm::pack(const void *factor, void *packed, int64_t round,
                      int64_t task) const {
  Panels panels = sharedPanels();
  int64_t first = blocksOf(round).begin, panel = task % panels.count;
  Range terms = termsOf(first + task / panels.count);
  int64_t before = (terms.begin - termsOf(first).begin) * panels.packedExtent();
  packRounded(byRows ? factorB(factor, round) : factorA(factor, round), panels,
              panel, terms,
              static_cast<float *>(packed) + before +
                  panels.begin(panel) * terms.size());
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
  Factor a, b; ///< From the first row and column of the tile.
  Panels rows, columns;
  /// The panels that have been packed for all tiles; null: the tile packs them.
  const float *packedA, *packedB;
  float *ownA, *ownB; ///< Where it packs the panels of a group.
  int64_t firstTerm;  ///< Of the round.
  MicroTile result;   ///< From the first row and column, with the epilogue.
};

/// Multiplies groups of panels; those of the tile's own factors are packed with
/// the first panel of the other factor that they meet.
void PackedGemm::multiplyPanels(const Tile &tile, int64_t block, Range rows,
                                Range columns) const {
  const Panels &ofRows = tile.rows, &ofColumns = tile.columns;
  Range terms = termsOf(block);
  int64_t before = terms.begin - tile.firstTerm;
  bool packsB = !tile.packedB && rows.begin == 0;
  for (int64_t j = columns.begin; j < columns.end; ++j) {
    int64_t column = ofColumns.begin(j);
    const float *panelB;
    Prefetch next;
    if (tile.packedB) {
      panelB = tile.packedB + before * ofColumns.packedExtent() +
               column * terms.size();
      if (j + 1 < columns.end)
        next = Prefetch(panelB + ofColumns.packedSize(j) * terms.size(),
                        ofColumns.packedSize(j + 1), terms.size(), terms.size(),
                        rows.size());
    } else {
      // One panel at a time if no other rows will read it.
      int64_t first =
          rows.size() == ofRows.count ? column : ofColumns.begin(columns.begin);
      float *own = tile.ownB + (column - first) * terms.size();
      if (packsB)
        packRounded(tile.b, ofColumns, j, terms, own);
      panelB = own;
      if (packsB && j + 1 < columns.end)
        next = Prefetch(tile.b.at(ofColumns.begin(j + 1), terms.begin),
                        ofColumns.size(j + 1), terms.size(), rows.size());
    }
    MicroTile result = tile.result;
    result.columns = ofColumns.size(j);
    result.adds = gemm.accumulate || block > 0;
    result.bias =
        result.bias && block + 1 == blocks ? result.bias + column : nullptr;
    result.relu = result.relu && block + 1 == blocks;
    int64_t vectors = ofColumns.packedSize(j) / kernels->lanes;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      int64_t row = ofRows.begin(i);
      const float *panelA;
      if (tile.packedA) {
        panelA = tile.packedA + before * ofRows.extent + row * terms.size();
      } else {
        float *own =
            tile.ownA + (row - ofRows.begin(rows.begin)) * terms.size();
        if (j == columns.begin)
          packRounded(tile.a, ofRows, i, terms, own);
        panelA = own;
      }
      next.fetchPart();
      result.c = tile.result.c + row * result.cRow + column;
      kernels->kernel(ofRows.size(i), vectors)(terms.size(), panelA, panelB,
                                               result);
    }
  }
}

void PackedGemm::run(const GemmOperands &operands, int64_t round,
                     int64_t index) const {
  Range rows =
      byRows ? part(gemm.m, kernels->maxRows, index, tiles) : Range{0, gemm.m};
  Range columns = byRows ? Range{0, gemm.n}
                         : part(gemm.n, kernels->maxColumns(), index, tiles);
  float *c = static_cast<float *>(operands.c) +
             (round / slabs * gemm.m + rows.begin) * gemm.n + columns.begin;
  const float *bias =
      operands.bias ? static_cast<const float *>(operands.bias) + columns.begin
                    : nullptr;
  bool relu = gemm.activation == Activation::Relu;
  if (gemm.k == 0) {
    for (int64_t row = 0; row < rows.size(); ++row, c += gemm.n) {
      if (!gemm.accumulate)
        std::fill_n(c, columns.size(), 0.0f);
      finishRow(c, bias, relu, columns.size());
    }
    return;
  }
  alignas(64) float ownA[maxGroupRows * maxTerms];
  alignas(64) float ownB[maxGroupColumns * maxTerms];
  const float *packed = static_cast<const float *>(operands.packed);
  Range slab = blocksOf(round);
  Tile tile{factorA(operands.a, round).at(rows.begin, 0),
            factorB(operands.b, round).at(columns.begin, 0),
            rowPanels(rows.size()),
            columnPanels(columns.size()),
            isShared && !byRows ? packed : nullptr,
            isShared && byRows ? packed : nullptr,
            ownA,
            ownB,
            termsOf(slab.begin).begin,
            {c, gemm.n, 0, false, bias, relu}};
  // Columns are in one group if their panels are packed: then each panel of a
  // is packed once.
  int64_t columnGroups = tile.packedB
                             ? 1
                             : ceilDiv(tile.columns.count,
                                       maxGroupColumns / kernels->maxColumns());
  int64_t rowGroups = ceilDiv(tile.rows.count, maxGroupRows / kernels->maxRows);
  for (int64_t columnGroup = 0; columnGroup < columnGroups; ++columnGroup)
    for (int64_t block = slab.begin; block < slab.end; ++block)
      for (int64_t rowGroup = 0; rowGroup < rowGroups; ++rowGroup)
        multiplyPanels(tile, block,
                       part(tile.rows.count, 1, rowGroup, rowGroups),
                       part(tile.columns.count, 1, columnGroup, columnGroups));
}
