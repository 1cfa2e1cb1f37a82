//===- Gemm.cpp - GEMMs through oneDNN ------------------------------------===//

#include "backends/cpu/Gemm.h"

#include "backends/cpu/HalfGemm.h"
#include "backends/cpu/SkinnyGemm.h"
#include "backends/cpu/TiledGemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <oneapi/dnnl/dnnl.h>
#include <vector>

using namespace shardc::rt;

namespace {

/// GEMMs of f32. The epilogue runs on a tile when it is complete and still in
/// the cache.
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

/// GEMMs of f32 with a short side.
class NarrowGemm : public TiledGemm {
public:
  explicit NarrowGemm(const GemmCommand &gemm)
      : TiledGemm(gemm, Tiling(gemm, /*tileFlops=*/int64_t(1) << 17,
                               /*minBlock=*/16)) {}

  absl::Status run(const void *a, const void *b, const void *bias, void *c,
                   int64_t index) const override {
    Tile tile = tileOf(gemm, tiling, index);
    SkinnyGemm skinny{tile.m,
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
    skinny.run(static_cast<const float *>(a) + tile.a,
               static_cast<const float *>(b) + tile.b,
               addend ? addend + tile.bias : nullptr,
               static_cast<float *>(c) + tile.c);
    return absl::OkStatus();
  }
};

/// Rounds the factors of a tile's GEMM, which is of f32, before it is
/// computed. Meant for comparisons with a GPU: it copies them for every tile.
class RoundedGemm : public PreparedGemm {
public:
  /// `inner` computes one matrix of `gemm` with the factors as they are.
  RoundedGemm(const GemmCommand &gemm, std::unique_ptr<PreparedGemm> inner)
      : gemm(gemm), inner(std::move(inner)) {}

  int64_t numTiles() const override { return gemm.batch * inner->numTiles(); }

  absl::Status run(const void *a, const void *b, const void *bias, void *c,
                   int64_t index) const override {
    int64_t matrix = index / inner->numTiles();
    std::vector<float> roundedA = round(a, matrix, gemm.m * gemm.k);
    std::vector<float> roundedB = round(b, matrix, gemm.k * gemm.n);
    return inner->run(roundedA.data(), roundedB.data(), bias,
                      static_cast<float *>(c) + matrix * gemm.m * gemm.n,
                      index % inner->numTiles());
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
  std::unique_ptr<PreparedGemm> inner;
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
PreparedGemm::prepare(const GemmCommand &command, GemmTypes types) {
  bool isEmpty = command.m == 0 || command.n == 0;
  if (types.factors == DType::BF16 && !isEmpty)
    return std::make_unique<HalfGemm>(command, types.result);
  if (command.precision != Precision::Highest) {
    GemmCommand matrix = command;
    matrix.precision = Precision::Highest;
    matrix.batch = 1;
    absl::StatusOr<std::unique_ptr<PreparedGemm>> inner =
        prepare(matrix, types);
    if (!inner.ok())
      return inner;
    return std::make_unique<RoundedGemm>(command, *std::move(inner));
  }
  bool isSkinny = std::min(command.n, command.k) <= skinnySide;
  if (isSkinny && !isEmpty && command.k > 0)
    return std::make_unique<NarrowGemm>(command);
  return std::make_unique<Sgemm>(command);
}
