//===- Gemm.cpp - Matrix products through oneDNN
//---------------------------===//

#include "backends/cpu/Gemm.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>
#include <oneapi/dnnl/dnnl.h>

using namespace shardc::rt;

namespace {

/// The tiles of one product: row blocks, or column blocks where there are more
/// columns than rows. Small products are one tile.
struct Tiling {
  bool byRows;
  int64_t block;
  int64_t tilesPerMatrix;

  explicit Tiling(const GemmCommand &gemm) {
    byRows = gemm.m >= gemm.n;
    int64_t extent = byRows ? gemm.m : gemm.n;
    constexpr int64_t smallFlops = int64_t(1) << 24;
    constexpr int64_t minBlock = 128, maxTiles = 8;
    block = std::max<int64_t>(extent, 1);
    if (2.0 * gemm.m * gemm.n * gemm.k > smallFlops) {
      block = std::max(minBlock, (extent + maxTiles - 1) / maxTiles);
      block = (block + 15) / 16 * 16;
    }
    tilesPerMatrix = std::max<int64_t>(1, (extent + block - 1) / block);
  }
};

/// What one tile computes, as offsets in elements.
struct Tile {
  int64_t batch, m, n, a, b, c, bias;
};

Tile tileOf(const GemmCommand &gemm, const Tiling &tiling, int64_t index) {
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

/// f32 products through dnnl_sgemm, with the epilogue over the tile while it is
/// in the cache.
class Sgemm : public PreparedGemm {
public:
  explicit Sgemm(const GemmCommand &gemm) : gemm(gemm), tiling(gemm) {}

  int64_t numTiles() const override {
    return gemm.batch * tiling.tilesPerMatrix;
  }

  void run(const void *a, const void *b, const void *bias, void *c,
           int64_t index) const override {
    Tile tile = tileOf(gemm, tiling, index);
    float *result = static_cast<float *>(c) + tile.c;
    if (tile.m == 0 || tile.n == 0)
      return;
    if (gemm.k > 0)
      dnnl_sgemm(gemm.transposeA ? 'T' : 'N', gemm.transposeB ? 'T' : 'N',
                 tile.m, tile.n, gemm.k, 1.0f,
                 static_cast<const float *>(a) + tile.a,
                 gemm.transposeA ? gemm.m : gemm.k,
                 static_cast<const float *>(b) + tile.b,
                 gemm.transposeB ? gemm.k : gemm.n,
                 gemm.accumulate ? 1.0f : 0.0f, result, gemm.n);
    else if (!gemm.accumulate)
      for (int64_t row = 0; row < tile.m; ++row)
        std::memset(result + row * gemm.n, 0, tile.n * sizeof(float));
    epilogue(tile, static_cast<const float *>(bias), result);
  }

private:
  void epilogue(const Tile &tile, const float *bias, float *result) const {
    bool relu = gemm.activation == Activation::Relu;
    if (!bias && !relu)
      return;
    for (int64_t row = 0; row < tile.m; ++row) {
      float *values = result + row * gemm.n;
      if (bias)
        for (int64_t i = 0; i < tile.n; ++i)
          values[i] += bias[tile.bias + i];
      if (relu)
        for (int64_t i = 0; i < tile.n; ++i)
          values[i] = values[i] < 0.0f ? 0.0f : values[i];
    }
  }

  GemmCommand gemm;
  Tiling tiling;
};

} // namespace

absl::StatusOr<std::unique_ptr<PreparedGemm>>
PreparedGemm::prepare(const GemmCommand &command, DType dtype) {
  if (dtype != DType::F32)
    return absl::UnimplementedError(
        absl::StrCat("matrix products of ", toString(dtype),
                     " are not available on the CPU backend; use f32"));
  return std::make_unique<Sgemm>(command);
}
