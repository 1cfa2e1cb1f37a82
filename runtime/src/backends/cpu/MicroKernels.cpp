//===- MicroKernels.cpp - Products of packed panels -----------------------===//
//
// Sums take as many registers as fit beside the vectors of a row of b and one
// element of a in all lanes: 12 of 16 with AVX2 (6 rows of 2 vectors), 28 of 32
// with AVX-512 (14 rows). Two multiply-adds begin in a cycle and end four
// cycles later, so that 8 sums keep a core busy; more sums need fewer loads.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/MicroKernels.h"

#include <utility>

using namespace shardc::rt;

namespace {

template <int lanes>
struct Vectors {
  typedef float Vector __attribute__((vector_size(lanes * sizeof(float)),
                                      aligned(sizeof(float)), may_alias));
};

/// Bytes that a core loads at once.
constexpr int cacheLine = 64;

/// Finishes sums in rows of `width` and stores them.
template <int lanes>
[[gnu::always_inline]] inline void storeTile(const float *sums, int rows,
                                             int width, const MicroTile &tile) {
  using Vector = typename Vectors<lanes>::Vector;
  for (int row = 0; row < rows; ++row, sums += width) {
    float *c = tile.c + row * tile.cRow;
    int64_t column = 0;
    for (; column + lanes <= tile.columns; column += lanes) {
      Vector values = *reinterpret_cast<const Vector *>(sums + column);
      if (tile.adds)
        values += *reinterpret_cast<const Vector *>(c + column);
      if (tile.bias)
        values += *reinterpret_cast<const Vector *>(tile.bias + column);
      if (tile.relu) // NaN stays.
        values = values < 0 ? Vector{} : values;
      *reinterpret_cast<Vector *>(c + column) = values;
    }
    for (; column < tile.columns; ++column) {
      float value = sums[column];
      if (tile.adds)
        value += c[column];
      if (tile.bias)
        value += tile.bias[column];
      c[column] = tile.relu && value < 0 ? 0 : value;
    }
  }
}

/// Sums in registers: without this, GCC 12 keeps some in memory.
template <typename Vector, int rows, int vectors>
[[gnu::always_inline]] inline void
keepInRegisters(Vector (&sums)[rows][vectors]) {
#if defined(__x86_64__)
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
    for (int vector = 0; vector < vectors; ++vector)
      asm("" : "+v"(sums[row][vector]));
#endif
}

/// The sums of a tile, row by row.
template <int lanes, int rows, int vectors>
[[gnu::always_inline]] inline void
addTerms(int64_t terms, const float *a, const float *b, const MicroTile &tile,
         float *result) {
  using Vector = typename Vectors<lanes>::Vector;
  constexpr int width = vectors * lanes;
  // The lines of c arrive while the sums are computed.
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row) {
    const float *c = tile.c + row * tile.cRow;
    for (int column = 0; column < width; column += cacheLine / sizeof(float))
      __builtin_prefetch(c + column, 1);
    __builtin_prefetch(c + width - 1, 1);
  }

  Vector sums[rows][vectors];
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
    for (int vector = 0; vector < vectors; ++vector)
      sums[row][vector] = Vector{};
  do {
    Vector factors[vectors];
#pragma GCC unroll 16
    for (int vector = 0; vector < vectors; ++vector)
      factors[vector] = *reinterpret_cast<const Vector *>(b + vector * lanes);
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
      for (int vector = 0; vector < vectors; ++vector)
        sums[row][vector] += a[row] * factors[vector];
    keepInRegisters(sums);
    a += rows;
    b += width;
  } while (--terms > 0);
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
    for (int vector = 0; vector < vectors; ++vector)
      *reinterpret_cast<Vector *>(result + row * width + vector * lanes) =
          sums[row][vector];
}

#if defined(__x86_64__)
#define SHARDC_TARGET(features) __attribute__((target(features)))
#else
#define SHARDC_TARGET(features)
#endif

[[gnu::noinline]] SHARDC_TARGET(
    "avx512f,avx512vl,avx2,fma,prfchw") void store512(const float *sums,
                                                      int rows, int width,
                                                      const MicroTile &tile) {
  storeTile<16>(sums, rows, width, tile);
}

template <int rows, int vectors>
SHARDC_TARGET("avx512f,avx512vl,avx2,fma,prfchw")
void multiply512(int64_t terms, const float *a, const float *b,
                 const MicroTile &tile) {
  float sums[rows * vectors * 16];
  addTerms<16, rows, vectors>(terms, a, b, tile, sums);
  store512(sums, rows, vectors * 16, tile);
}

[[gnu::noinline]] SHARDC_TARGET("avx2,fma,prfchw") void store256(
    const float *sums, int rows, int width, const MicroTile &tile) {
  storeTile<8>(sums, rows, width, tile);
}

template <int rows, int vectors>
SHARDC_TARGET("avx2,fma,prfchw")
void multiply256(int64_t terms, const float *a, const float *b,
                 const MicroTile &tile) {
  float sums[rows * vectors * 8];
  addTerms<8, rows, vectors>(terms, a, b, tile, sums);
  store256(sums, rows, vectors * 8, tile);
}

[[gnu::noinline]] void store128(const float *sums, int rows, int width,
                                const MicroTile &tile) {
  storeTile<4>(sums, rows, width, tile);
}

template <int rows, int vectors>
void multiply128(int64_t terms, const float *a, const float *b,
                 const MicroTile &tile) {
  float sums[rows * vectors * 4];
  addTerms<4, rows, vectors>(terms, a, b, tile, sums);
  store128(sums, rows, vectors * 4, tile);
}

#undef SHARDC_TARGET

/// Kernels of up to `count / 2` rows and of one or two vectors.
template <template <int, int> class Kernel, int... index>
const MicroKernel *tableOf(std::integer_sequence<int, index...> /*places*/) {
  static const MicroKernel table[] = {
      Kernel<index / 2 + 1, index % 2 + 1>::multiply...};
  return table;
}

template <int rows, int vectors>
struct Kernel512 {
  static constexpr MicroKernel multiply = multiply512<rows, vectors>;
};
template <int rows, int vectors>
struct Kernel256 {
  static constexpr MicroKernel multiply = multiply256<rows, vectors>;
};
template <int rows, int vectors>
struct Kernel128 {
  static constexpr MicroKernel multiply = multiply128<rows, vectors>;
};

template <template <int, int> class Kernel, int maxRows, int lanes>
const MicroKernels &kernelsOf() {
  static const MicroKernels kernels{
      maxRows, lanes, 2,
      tableOf<Kernel>(std::make_integer_sequence<int, 2 * maxRows>())};
  return kernels;
}

} // namespace

const MicroKernels &MicroKernels::avx512() {
  return kernelsOf<Kernel512, 14, 16>();
}
const MicroKernels &MicroKernels::avx2() {
  return kernelsOf<Kernel256, 6, 8>();
}
const MicroKernels &MicroKernels::portable() {
  return kernelsOf<Kernel128, 6, 4>();
}

const MicroKernels &MicroKernels::best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    return avx512();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return avx2();
#endif
  return portable();
}
