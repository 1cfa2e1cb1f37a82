//===- PackedGemm.h - GEMMs on packed panels --------------------*- C++ -*-===//
//
// The loops around the micro-kernel, after Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication" (ACM TOMS 34(3), 2008), and Van Zee
// and van de Geijn, "BLIS" (ACM TOMS 41(3), 2015): blocks of terms, so that a
// panel of b stays in the first-level cache, and blocks of rows, so that those
// of a stay in the second-level cache.
//
// Tiles are blocks of rows or of columns, and all of them read the other
// factor. It is packed once, before them, by all workers, into memory that they
// share. A tile packs its own factor itself, when it needs it. So each factor
// is packed once, but that with few terms rows are packed for each group of
// columns.
//
// A sum of GEMMs is one GEMM with the terms of all, but that the sum of the
// products of each is complete before it is added to those of others: in
// registers and the first-level cache, a tile of the micro-kernel at a time.
//
// A factor may lie in pieces, the shards of a matrix that need not be gathered
// or rows of several devices: packing reads them where they are. What kernels
// read in place is in one piece.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_PACKEDGEMM_H
#define SHARDC_RT_SRC_BACKENDS_CPU_PACKEDGEMM_H

#include "backends/cpu/Gemm.h"
#include "backends/cpu/MicroKernels.h"
#include "backends/cpu/PackPanel.h"

namespace shardc::rt {

/// GEMMs of f32, or of bf16 added up in f32. Terms are added up in blocks that
/// depend on their number alone; an element of c is the sum of its blocks, in
/// order. So the bits are the same for any tiles, workers and vector widths.
///
/// Of bf16, terms are packed in pairs where the CPU has instructions that add
/// up the products of two, and otherwise widened to f32. These instructions add
/// that of the second term first, and take subnormal numbers for 0; the others
/// do the same, so that the bits are those. Bias, ReLU and the addition to the
/// old result come before the one rounding to a result of bf16. A factor that
/// is shared is then packed in one round, since sums of several ones would be
/// rounded between them.
class PackedGemm : public PreparedGemm {
public:
  /// The sum of `addends` GEMMs, as `prepareSum` has it, if that is possible.
  explicit PackedGemm(const GemmCommand &gemm, GemmCalls calls = {},
                      const MicroKernels &kernels = MicroKernels::best(),
                      int64_t addends = 1, const GemmPieces &pieces = {},
                      GemmTypes types = {DType::F32, DType::F32});

  static bool canAdd(const GemmCommand &gemm, int64_t addends);

  int64_t numRounds() const override { return gemm.batch * slabs; }
  int64_t numTiles() const override { return tiles; }
  void run(const GemmOperands &operands, int64_t round,
           int64_t tile) const override;
  SharedFactor sharedFactor() const override;
  uint64_t packedBytes() const override;
  int64_t numPackTasks(int64_t round) const override;
  void pack(const void *const *factors, void *packed, int64_t round,
            int64_t task) const override;

private:
  struct Range {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };
  struct Tile;

  /// Part `index` of `count` of [0, extent), cut at multiples of `unit`.
  static Range part(int64_t extent, int64_t unit, int64_t index, int64_t count);

  /// The blocks of terms in a round.
  Range blocksOf(int64_t round) const {
    return part(blocks, 1, round % slabs, slabs);
  }
  /// Terms, as they are packed, of all addends one after the other; a block of
  /// several addends has a power of two of them, one of bf16 whole pairs.
  Range termsOf(int64_t block) const {
    return part(k, unitOfBlocks(), block, blocks);
  }
  int64_t unitOfBlocks() const {
    return addends > 1 ? perBlock * gemm.k : isHalf && !inPairs ? 2 : 1;
  }
  /// Which of the factors: that whose elements are rows of what is computed, or
  /// columns.
  enum class Side { Rows, Columns };
  bool isA(Side side) const { return (side == Side::Rows) != isSwapped; }
  const void *addressOf(Side side, const GemmOperands &operands,
                        int64_t addend = 0) const {
    return isA(side) ? operands.factorA(addend) : operands.factorB(addend);
  }
  PiecedFactor factor(Side side, const void *data, int64_t round) const;
  HalfFactor halfFactor(Side side, const void *data, int64_t round) const;
  /// Of a panel: more where there is but one vector of columns.
  int64_t maxRows() const {
    const bool isTall =
        n <= kernels->lanes && (areRowsAdjacent || m <= kernels->maxTallRows);
    return std::min(mostRows, isTall ? kernels->maxTallRows : kernels->maxRows);
  }
  Panels rowPanels(int64_t rows) const {
    return Panels::ofRows(rows, maxRows());
  }
  Panels columnPanels(int64_t columns) const {
    return Panels::ofColumns(columns, kernels->maxColumns(), kernels->lanes);
  }
  /// Of the factor that all tiles read.
  Panels sharedPanels() const {
    return byRows ? columnPanels(n) : rowPanels(m);
  }
  void orient(bool swaps);
  void chooseKernels();
  double estimateCycles() const;
  /// Whether storing a tile of c takes long, and complete sums are cheap: each
  /// panel of rows, which are many, is read where it lies.
  bool mayKeepSums() const;
  void chooseTiles(GemmCalls calls);
  /// Panels of the factor of rows that are packed together.
  int64_t panelsAtOnce() const { return areRowsAdjacent ? 8 : 1; }
  int64_t sharedPanelsAtOnce() const { return byRows ? 1 : panelsAtOnce(); }
  template <typename AddressOf>
  void packFactor(Side side, AddressOf addressOfAddend, int64_t round,
                  int64_t firstElement, const Panels &panels, Range which,
                  Range terms, float *to) const;
  void packOwn(Side side, const Tile &tile, Range which, Range terms,
               float *to) const;
  [[gnu::always_inline]] void chooseRows(const Tile &tile, Range terms,
                                         Range group, int64_t i, bool isFirst,
                                         MicroFactors &factors) const;
  void multiplyRows(const Tile &tile, Range rows, Range columns) const;
  void multiplyKeepingSums(const Tile &tile) const;
  void placeResult(const Tile &tile, int64_t row, int64_t column,
                   MicroTile &result) const;
  void multiplyPanels(const Tile &tile, int64_t block, Range rows,
                      Range columns) const;
  void finishEmpty(int64_t rows, int64_t columns,
                   const MicroTile &result) const;

  void placeHalves(const GemmOperands &operands, int64_t first, Range rows,
                   Range columns, MicroTile &result) const;
  /// Into how many groups panels are divided of at most `most` elements, or of
  /// as many as take no more memory where blocks have more or fewer terms.
  int64_t numGroups(const Panels &panels, int64_t most,
                    int64_t panelSize) const;
  /// Of kernels for packed panels.
  MicroKernels::Use packedUse() const {
    return addends > 1 ? MicroKernels::Use::Sum
           : inPairs   ? MicroKernels::Use::Pairs
                       : MicroKernels::Use::Packed;
  }

  GemmCommand gemm;
  GemmPieces pieces;
  bool isHalf;       ///< Factors are of bf16.
  bool isResultHalf; ///< So are c and the bias.
  const MicroKernels *kernels;
  bool inPairs; ///< Of bf16: how terms are packed.
  /// Whether the transpose of c is computed, of bᵀ by aᵀ: there the vectors of
  /// a narrow c are full.
  bool isSwapped = false;
  /// Whether elements of a term of the factor of rows are side by side.
  bool areRowsAdjacent = false;
  /// Rows and columns of what is computed, and the terms of all addends, as
  /// they are packed: pairs are one.
  int64_t m, n, k;
  int64_t addends;
  int64_t perBlock; ///< Addends of a block, but for the last one.
  /// Whether kernels read the factor of rows where it lies: it does not pay to
  /// pack what few panels of columns meet.
  bool readsRows = false;
  /// Of a panel that is read in place.
  int64_t mostRows = INT64_MAX;
  /// Whether the sums of all blocks of terms are complete before they are
  /// stored.
  bool keepsSums = false;
  /// Whether a kernel takes all panels of columns of a group.
  bool alongRows = false;
  /// Whether tiles are blocks of rows; otherwise they are blocks of columns.
  bool byRows = false;
  /// Whether the factor that all tiles read is packed before them; if not, each
  /// tile packs it.
  bool isShared = false;
  int64_t tiles = 0;  ///< Of a round.
  int64_t blocks = 0; ///< Of terms.
  /// Rounds of a matrix, each with some of the blocks: they bound the memory
  /// for the shared factor.
  int64_t slabs = 1;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_PACKEDGEMM_H
