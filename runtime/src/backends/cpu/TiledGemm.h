//===- TiledGemm.h - How GEMMs are cut --------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_TILEDGEMM_H
#define SHARDC_RT_SRC_BACKENDS_CPU_TILEDGEMM_H

#include "backends/cpu/Gemm.h"

#include <algorithm>

namespace shardc::rt {

/// The tiles of one GEMM: row blocks, or column blocks where there are more
/// columns than rows.
struct Tiling {
  bool byRows;
  int64_t block;
  int64_t tilesPerMatrix;

  /// Up to eight tiles, each of at least about `tileFlops` operations and
  /// `minBlock` rows or columns. Several tiles are an even number, so that two
  /// workers can share them.
  Tiling(const GemmCommand &gemm, int64_t tileFlops, int64_t minBlock) {
    byRows = gemm.m >= gemm.n;
    int64_t extent = byRows ? gemm.m : gemm.n;
    int64_t tiles = std::clamp<double>(flopsOf(gemm) / tileFlops, 1, 8);
    tiles = std::clamp<int64_t>(extent / minBlock, 1, tiles);
    if (tiles > 1)
      tiles -= tiles % 2;
    block = std::max<int64_t>(extent, 1);
    if (tiles > 1)
      block = ((extent + tiles - 1) / tiles + 15) / 16 * 16;
    tilesPerMatrix = std::max<int64_t>(1, (extent + block - 1) / block);
  }

  /// For GEMMs of a library, whose calls cost little beside some microseconds.
  /// Blocks from 128 on come close to the peak; below 100 microseconds sharing
  /// among workers matters more.
  explicit Tiling(const GemmCommand &gemm)
      : Tiling(gemm, /*tileFlops=*/int64_t(1) << 20,
               /*minBlock=*/flopsOf(gemm) > (1 << 24) ? 128 : 32) {}

  static double flopsOf(const GemmCommand &gemm) {
    return 2.0 * gemm.m * gemm.n * gemm.k;
  }
};

/// The operands of one tile, as offsets in elements.
struct Tile {
  int64_t batch, m, n, a, b, c, bias;
};

inline Tile tileOf(const GemmCommand &gemm, const Tiling &tiling,
                   int64_t index) {
  Tile tile{index / tiling.tilesPerMatrix, gemm.m, gemm.n, 0, 0, 0, 0};
  int64_t start = index % tiling.tilesPerMatrix * tiling.block;
  if (tiling.byRows) {
    tile.m = std::min(tiling.block, gemm.m - start);
    tile.a = gemm.transposeA ? start : start * gemm.k;
    tile.c = start * gemm.n;
  } else {
    tile.n = std::min(tiling.block, gemm.n - start);
    tile.b = gemm.transposeB ? start * gemm.k : start;
    tile.c = start;
    tile.bias = start;
  }
  tile.a += tile.batch * gemm.m * gemm.k;
  tile.b += tile.batch * gemm.k * gemm.n;
  tile.c += tile.batch * gemm.m * gemm.n;
  return tile;
}

/// row = relu?(row + bias?); NaN stays. `bias` may be null.
void finishRow(float *row, const float *bias, bool relu, int64_t elements);

/// The arguments of all ways to compute a GEMM.
class TiledGemm : public PreparedGemm {
public:
  explicit TiledGemm(const GemmCommand &gemm) : TiledGemm(gemm, Tiling(gemm)) {}
  TiledGemm(const GemmCommand &gemm, Tiling tiling)
      : gemm(gemm), tiling(tiling) {}

  int64_t numTiles() const override {
    return gemm.m == 0 || gemm.n == 0 ? 0 : gemm.batch * tiling.tilesPerMatrix;
  }

protected:
  GemmCommand gemm;
  Tiling tiling;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_TILEDGEMM_H
