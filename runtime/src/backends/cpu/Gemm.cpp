//===- Gemm.cpp - Matrix products through oneDNN --------------------------===//

#include "backends/cpu/Gemm.h"

#include "backends/cpu/MatmulPrimitive.h"
#include "backends/cpu/NarrowProduct.h"
#include "base/VectorClones.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <oneapi/dnnl/dnnl.h>
#include <vector>

using namespace shardc::rt;

namespace {

/// The tiles of one product: row blocks, or column blocks where there are more
/// columns than rows. Small products are one tile.
struct Tiling {
  bool byRows;
  int64_t block;
  int64_t tilesPerMatrix;

  /// Products of at most `smallFlops` operations are one tile.
  explicit Tiling(const GemmCommand &gemm,
                  int64_t smallFlops = int64_t(1) << 24,
                  int64_t minBlock = 128) {
    byRows = gemm.m >= gemm.n;
    int64_t extent = byRows ? gemm.m : gemm.n;
    constexpr int64_t maxTiles = 8;
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

/// row = relu?(row + bias?); NaN stays.
SHARDC_VECTOR_CLONES
void finishRow(float *__restrict row, const float *__restrict bias, bool relu,
               int64_t elements) {
  if (bias)
    for (int64_t i = 0; i < elements; ++i)
      row[i] += bias[i];
  if (relu)
    for (int64_t i = 0; i < elements; ++i)
      row[i] = row[i] < 0 ? 0 : row[i];
}

/// What all ways of computing a product share.
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

/// Products of f32. What follows the product is done to a tile when it is
/// complete, and still in the cache.
class Sgemm : public TiledGemm {
public:
  using TiledGemm::TiledGemm;

  absl::Status run(const void *a, const void *b, const void *bias, void *c,
                   int64_t index) const override {
    Tile tile = tileOf(gemm, tiling, index);
    float *result = static_cast<float *>(c) + tile.c;
    if (gemm.k > 0 &&
        dnnl_sgemm(
            gemm.transposeA ? 'T' : 'N', gemm.transposeB ? 'T' : 'N', tile.m,
            tile.n, gemm.k, 1.0f, static_cast<const float *>(a) + tile.a,
            gemm.transposeA ? gemm.m : gemm.k,
            static_cast<const float *>(b) + tile.b,
            gemm.transposeB ? gemm.k : gemm.n, gemm.accumulate ? 1.0f : 0.0f,
            result, gemm.n) != dnnl_success)
      return absl::InternalError("oneDNN: sgemm failed");
    if (gemm.k == 0 && !gemm.accumulate)
      for (int64_t row = 0; row < tile.m; ++row)
        std::memset(result + row * gemm.n, 0, tile.n * sizeof(float));
    const float *addend = static_cast<const float *>(bias);
    if (addend || gemm.activation == Activation::Relu)
      for (int64_t row = 0; row < tile.m; ++row)
        finishRow(result + row * gemm.n, addend ? addend + tile.bias : nullptr,
                  gemm.activation == Activation::Relu, tile.n);
    return absl::OkStatus();
  }
};

/// Products of f32 with a short side.
class NarrowGemm : public TiledGemm {
public:
  explicit NarrowGemm(const GemmCommand &gemm)
      : TiledGemm(gemm, Tiling(gemm, /*smallFlops=*/int64_t(1) << 20,
                               /*minBlock=*/16)) {}

  absl::Status run(const void *a, const void *b, const void *bias, void *c,
                   int64_t index) const override {
    Tile tile = tileOf(gemm, tiling, index);
    NarrowProduct product{tile.m,
                          tile.n,
                          gemm.k,
                          gemm.transposeA ? 1 : gemm.k,
                          gemm.transposeA ? gemm.m : 1,
                          gemm.transposeB ? 1 : gemm.n,
                          gemm.transposeB ? gemm.k : 1,
                          gemm.n,
                          gemm.accumulate,
                          gemm.activation == Activation::Relu};
    const float *addend = static_cast<const float *>(bias);
    product.run(static_cast<const float *>(a) + tile.a,
                static_cast<const float *>(b) + tile.b,
                addend ? addend + tile.bias : nullptr,
                static_cast<float *>(c) + tile.c);
    return absl::OkStatus();
  }
};

/// Products of bf16: primitives, one for full tiles and one for the last, which
/// may be smaller.
class PrimitiveGemm : public TiledGemm {
public:
  using TiledGemm::TiledGemm;

  absl::Status create(DType dtype) {
    width = byteSize(dtype);
    for (int64_t index : {int64_t(0), tiling.tilesPerMatrix - 1}) {
      Tile tile = tileOf(gemm, tiling, index);
      absl::StatusOr<std::unique_ptr<MatmulPrimitive>> made =
          MatmulPrimitive::create(
              {tile.m,
               tile.n,
               gemm.k,
               {gemm.transposeA ? 1 : gemm.k, gemm.transposeA ? gemm.m : 1},
               {gemm.transposeB ? 1 : gemm.n, gemm.transposeB ? gemm.k : 1},
               gemm.n,
               gemm.bias >= 0,
               gemm.accumulate,
               gemm.activation == Activation::Relu,
               dtype});
      if (!made.ok())
        return made.status();
      (index == 0 ? full : last) = *std::move(made);
      if (tiling.tilesPerMatrix == 1)
        break;
    }
    return absl::OkStatus();
  }

  absl::Status run(const void *a, const void *b, const void *bias, void *c,
                   int64_t index) const override {
    Tile tile = tileOf(gemm, tiling, index);
    bool isLast =
        last && index % tiling.tilesPerMatrix + 1 == tiling.tilesPerMatrix;
    auto at = [&](const void *data, int64_t offset) {
      return static_cast<const char *>(data) + offset * width;
    };
    return (isLast ? *last : *full)
        .run(at(a, tile.a), at(b, tile.b), bias ? at(bias, tile.bias) : nullptr,
             static_cast<char *>(c) + tile.c * width);
  }

private:
  int64_t width = 0;
  std::unique_ptr<MatmulPrimitive> full, last;
};

/// Rounds the factors of a tile's product, which is of f32, before it is
/// computed. Meant for comparisons with a GPU: it copies them for every tile.
class RoundedGemm : public PreparedGemm {
public:
  /// `product` computes one matrix of `gemm` with the factors as they are.
  RoundedGemm(const GemmCommand &gemm, std::unique_ptr<PreparedGemm> product)
      : gemm(gemm), product(std::move(product)) {}

  int64_t numTiles() const override { return gemm.batch * product->numTiles(); }

  absl::Status run(const void *a, const void *b, const void *bias, void *c,
                   int64_t index) const override {
    int64_t matrix = index / product->numTiles();
    std::vector<float> roundedA = round(a, matrix, gemm.m * gemm.k);
    std::vector<float> roundedB = round(b, matrix, gemm.k * gemm.n);
    return product->run(roundedA.data(), roundedB.data(), bias,
                        static_cast<float *>(c) + matrix * gemm.m * gemm.n,
                        index % product->numTiles());
  }

private:
  std::vector<float> round(const void *factors, int64_t matrix,
                           int64_t size) const {
    const float *first = static_cast<const float *>(factors) + matrix * size;
    std::vector<float> rounded(first, first + size);
    for (float &value : rounded)
      value = roundTo(gemm.precision, value);
    return rounded;
  }

  GemmCommand gemm;
  std::unique_ptr<PreparedGemm> product;
};

} // namespace

float shardc::rt::roundTo(Precision precision, float value) {
  if (precision == Precision::Highest || !std::isfinite(value))
    return value;
  int dropped = precision == Precision::TF32 ? 13 : 16;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  // Half a unit, less one bit where the last bit kept is even.
  bits += (uint32_t(1) << (dropped - 1)) - 1 + (bits >> dropped & 1);
  bits &= ~uint32_t(0) << dropped;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

absl::StatusOr<std::unique_ptr<PreparedGemm>>
PreparedGemm::prepare(const GemmCommand &command, DType dtype) {
  if (command.precision != Precision::Highest && dtype == DType::F32) {
    GemmCommand matrix = command;
    matrix.precision = Precision::Highest;
    matrix.batch = 1;
    absl::StatusOr<std::unique_ptr<PreparedGemm>> product =
        prepare(matrix, dtype);
    if (!product.ok())
      return product;
    return std::make_unique<RoundedGemm>(command, *std::move(product));
  }
  bool isEmpty = command.m == 0 || command.n == 0;
  bool isNarrow = std::min(command.n, command.k) <= narrowSide;
  if (dtype == DType::F32 && isNarrow && !isEmpty && command.k > 0)
    return std::make_unique<NarrowGemm>(command);
  if (isEmpty || dtype == DType::F32)
    return std::make_unique<Sgemm>(command);
  if (command.k == 0)
    return absl::UnimplementedError(
        "a matrix product over no terms with an epilogue");
  auto gemm = std::make_unique<PrimitiveGemm>(command);
  if (absl::Status status = gemm->create(dtype); !status.ok())
    return status;
  return gemm;
}
