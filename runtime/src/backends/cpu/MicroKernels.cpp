//===- MicroKernels.cpp - Products of packed panels -----------------------===//
//
// Sums take as many registers as fit beside the vectors of a row of b and one
// element of a in all lanes: 12 of 16 with AVX2 (6 rows of 2 vectors), 28 of 32
// with AVX-512 (14 rows). Two multiply-adds begin in a cycle and end four
// cycles later, so that 8 sums keep a core busy; more sums need fewer loads.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/MicroKernels.h"

#include "base/Convert.h"

#include <algorithm>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

using namespace shardc::rt;

namespace {

using Use = MicroKernels::Use;

template <int lanes>
struct Vectors {
  typedef float Vector __attribute__((vector_size(lanes * sizeof(float)),
                                      aligned(sizeof(float)), may_alias));
  typedef uint32_t Bits __attribute__((vector_size(lanes * sizeof(float))));
  typedef uint16_t Halves __attribute__((vector_size(lanes * sizeof(uint16_t)),
                                         aligned(sizeof(uint16_t)), may_alias));
};

/// Bytes that a core loads at once.
constexpr int cacheLine = 64;
/// Fewer are done before a line arrives.
constexpr int minTermsToPrefetch = 32;
/// Terms of b that are on their way where it is not packed.
constexpr int64_t termsAhead = 12;
/// Elements between rows of b that lie in one or two sets of a first-level
/// cache of 32 KiB, which has room for fewer than those: they wait in the
/// second-level one.
constexpr int64_t fewSetsApart = 512;

/// Four rows of four elements as their columns.
[[gnu::always_inline]] inline void transpose(Vectors<4>::Vector (&rows)[4]) {
  auto low = [](auto a, auto b) {
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  };
  auto high = [](auto a, auto b) {
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
  };
  auto a = low(rows[0], rows[1]), b = low(rows[2], rows[3]),
       c = high(rows[0], rows[1]), d = high(rows[2], rows[3]);
  rows[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

/// Finishes sums in rows of `width` and stores rows [`row`, `row` + `count`) as
/// columns, where the rows of a column are side by side; at most four.
template <int count>
[[gnu::always_inline]] inline void
storeTransposed(const float *sums, int row, int width, const MicroTile &tile) {
  using Vector = Vectors<4>::Vector;
  for (int64_t column = 0; column < tile.columns; column += 4) {
    Vector square[4];
    for (int i = 0; i < 4; ++i)
      square[i] = *reinterpret_cast<const Vector *>(
          sums + (row + std::min(i, count - 1)) * width + column);
    transpose(square);
    int64_t stored = std::min<int64_t>(4, tile.columns - column);
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) {
      if (i == stored)
        break;
      float *c = tile.c + row + (column + i) * tile.cColumn;
      Vector values = square[i], old{}, bias{};
      constexpr size_t bytes = count * sizeof(float);
      if (tile.adds)
        std::memcpy(&old, c, bytes), values += old;
      if (tile.bias)
        std::memcpy(&bias, tile.bias + row, bytes), values += bias;
      if (tile.relu) // NaN stays.
        values = values < 0 ? Vector{} : values;
      std::memcpy(c, &values, bytes);
    }
  }
}

[[gnu::always_inline]] inline void
storeTransposed(const float *sums, int rows, int width, const MicroTile &tile) {
  int row = 0;
  for (; row + 4 <= rows; row += 4)
    storeTransposed<4>(sums, row, width, tile);
  switch (rows - row) {
  case 3:
    return storeTransposed<3>(sums, row, width, tile);
  case 2:
    return storeTransposed<2>(sums, row, width, tile);
  case 1:
    return storeTransposed<1>(sums, row, width, tile);
  }
}

/// Stores elements `distance` apart, rounded to bf16 as `toBF16` does.
template <int lanes>
[[gnu::always_inline]] inline void
storeHalves(const typename Vectors<lanes>::Vector &values, uint16_t *to,
            int64_t distance) {
  using Halves = typename Vectors<lanes>::Halves;
  auto bits = (typename Vectors<lanes>::Bits)values;
  auto rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  rounded = (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded;
  Halves halves = __builtin_convertvector(rounded, Halves);
  if (distance == 1) {
    *reinterpret_cast<Halves *>(to) = halves;
    return;
  }
  for (int lane = 0; lane < lanes; ++lane)
    to[lane * distance] = halves[lane];
}

/// Finishes sums in rows of `width` and stores them.
template <int lanes>
[[gnu::always_inline]] inline void storeTile(const float *sums, int rows,
                                             int width, const MicroTile &tile) {
  using Vector = typename Vectors<lanes>::Vector;
  if (!tile.half && tile.cRow == 1 && (!tile.bias || tile.biasRow == 1))
    return storeTransposed(sums, rows, width, tile);
  bool hasRows = tile.cColumn == 1 && (!tile.bias || tile.biasColumn == 1);
  for (int row = 0; row < rows; ++row, sums += width) {
    float *c = tile.c + row * tile.cRow;
    uint16_t *half = tile.half ? tile.half + row * tile.halfRow : nullptr;
    int64_t column = 0;
    for (; hasRows && column + lanes <= tile.columns; column += lanes) {
      Vector values = *reinterpret_cast<const Vector *>(sums + column);
      if (tile.adds)
        values += *reinterpret_cast<const Vector *>(c + column);
      if (tile.bias)
        values += *reinterpret_cast<const Vector *>(tile.bias + column);
      if (tile.relu) // NaN stays.
        values = values < 0 ? Vector{} : values;
      if (!half)
        *reinterpret_cast<Vector *>(c + column) = values;
      else
        storeHalves<lanes>(values, half + column * tile.halfColumn,
                           tile.halfColumn);
    }
    for (; column < tile.columns; ++column) {
      float value = sums[column];
      if (tile.adds)
        value += c[column * tile.cColumn];
      if (tile.bias)
        value += tile.bias[row * tile.biasRow + column * tile.biasColumn];
      value = tile.relu && value < 0 ? 0 : value;
      if (half)
        half[column * tile.halfColumn] = toBF16(value);
      else
        c[column * tile.cColumn] = value;
    }
  }
}

/// Sums in registers: without this, GCC 12 keeps some in memory.
template <typename Vector, int rows, int vectors>
[[gnu::always_inline]] inline void
keepInRegisters(Vector (&sums)[rows][vectors]) {
// clang-tidy checks the constraint without the target of the callers.
#if defined(__x86_64__) && !defined(__clang_analyzer__)
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
    for (int vector = 0; vector < vectors; ++vector)
      asm("" : "+v"(sums[row][vector]));
#endif
}

/// Adds a tile in rows of as many vectors.
template <int lanes, typename Vector, int rows, int vectors>
[[gnu::always_inline]] inline void addTile(Vector (&sums)[rows][vectors],
                                           const float *tile) {
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
    for (int vector = 0; vector < vectors; ++vector)
      sums[row][vector] += *reinterpret_cast<const Vector *>(
          tile + (row * vectors + vector) * lanes);
  keepInRegisters(sums);
}

/// Adds a row of b by an element of a: the product, or those of both halves.
template <Use use, typename Vector, int vectors>
[[gnu::always_inline]] inline void multiplyAdd(Vector (&sums)[vectors],
                                               const float &a,
                                               const Vector (&ofB)[vectors]) {
// clang-tidy checks constraints without the target of the callers.
#if defined(__x86_64__) && !defined(__clang_analyzer__)
  if constexpr (use == Use::Pairs) {
    Vector ofA;
    asm("vbroadcastss %1, %0" : "=v"(ofA) : "m"(a));
#pragma GCC unroll 16
    for (int vector = 0; vector < vectors; ++vector)
      asm("vdpbf16ps %2, %1, %0"
          : "+v"(sums[vector])
          : "v"(ofB[vector]), "v"(ofA));
    return;
  }
#endif
#pragma GCC unroll 16
  for (int vector = 0; vector < vectors; ++vector)
    sums[vector] += a * ofB[vector];
}

/// Multiplies panels; stores the tile, or if it needs more than that, stores
/// the sums row by row in `rest`. Returns whether it has stored the tile.
template <int lanes, int rows, int vectors, bool rowsAreAdjacent, Use use>
[[gnu::always_inline]] inline bool
multiplyPanels(int64_t terms, const MicroFactors &factors,
               const MicroTile &tile, const float *b, float *c, float *rest) {
  using Vector = typename Vectors<lanes>::Vector;
  constexpr int width = vectors * lanes;
  const int64_t addends = use == Use::Sum ? factors.addends : 1;
  // The lines of c arrive while the sums are computed.
  if (tile.cColumn == 1 && !tile.half && terms * addends > minTermsToPrefetch)
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row) {
      const float *ofRow = c + row * tile.cRow;
#pragma GCC unroll 16
      for (int column = 0; column < width; column += cacheLine / sizeof(float))
        __builtin_prefetch(ofRow + column, 1);
      __builtin_prefetch(ofRow + width - 1, 1);
    }

  const float *a = factors.a;
  // If rows are not adjacent, terms are.
  const int64_t aRow = rowsAreAdjacent ? 1 : factors.aRow,
                aTerm = rowsAreAdjacent ? factors.aTerm : 1,
                bTerm = factors.bTerm;
  const int64_t ahead = termsAhead * bTerm;
  const bool meetInFewSets = bTerm % fewSetsApart == 0;
  float *packed = factors.packedB;
  // The stack of nodes of 1, 2, 4, ... addends that wait for their right
  // siblings, and its end.
  constexpr int most = 9;
  static_assert(MicroKernels::mostAddends < 1 << most);
  alignas(64) float waiting[most * rows * width];
  float *end = waiting;
  Vector sums[rows][vectors];
  for (int64_t addend = 1;; ++addend) {
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
      for (int vector = 0; vector < vectors; ++vector)
        sums[row][vector] = Vector{};
    int64_t left = terms;
    do {
      Vector ofB[vectors];
#pragma GCC unroll 16
      for (int vector = 0; vector < vectors; ++vector)
        ofB[vector] = *reinterpret_cast<const Vector *>(b + vector * lanes);
      if constexpr (use == Use::InPlace) {
#pragma GCC unroll 16
        for (int column = 0; column < width;
             column += cacheLine / sizeof(float))
          if (meetInFewSets)
            __builtin_prefetch(b + ahead + column, 0, 2);
          else
            __builtin_prefetch(b + ahead + column);
        if (packed) {
#pragma GCC unroll 16
          for (int vector = 0; vector < vectors; ++vector)
            *reinterpret_cast<Vector *>(packed + vector * lanes) = ofB[vector];
          packed += width;
        }
      }
#pragma GCC unroll 16
      for (int row = 0; row < rows; ++row)
        multiplyAdd<use>(sums[row], a[row * aRow], ofB);
      keepInRegisters(sums);
      a += aTerm;
      b += bTerm;
    } while (--left > 0);
    if (addend == addends)
      break;
    // It completes nodes as the carries of a counter do.
    for (int64_t carry = addend; carry % 2 == 0; carry /= 2) {
      end -= rows * width;
      addTile<lanes>(sums, end);
    }
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
      for (int vector = 0; vector < vectors; ++vector)
        *reinterpret_cast<Vector *>(end + row * width + vector * lanes) =
            sums[row][vector];
    end += rows * width;
  }
  while (end != waiting) {
    end -= rows * width;
    addTile<lanes>(sums, end);
  }
  if (tile.earlier)
    addTile<lanes>(sums, tile.earlier);

  bool isPlain = tile.columns == width && tile.cColumn == 1 && !tile.bias &&
                 !tile.relu && !tile.half;
  float *to = isPlain ? c : rest;
  int64_t toRow = isPlain ? tile.cRow : width;
  if (isPlain && tile.adds)
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
      for (int vector = 0; vector < vectors; ++vector)
        sums[row][vector] += *reinterpret_cast<const Vector *>(
            to + row * toRow + vector * lanes);
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
    for (int vector = 0; vector < vectors; ++vector)
      *reinterpret_cast<Vector *>(to + row * toRow + vector * lanes) =
          sums[row][vector];
  return isPlain;
}

/// Multiplies by panels of columns that lie side by side.
template <int lanes, int rows, int vectors, bool rowsAreAdjacent, Use use>
[[gnu::always_inline]] inline void
multiplyStrip(int64_t terms, const MicroFactors &factors, const MicroTile &tile,
              void (*store)(const float *, int, int, const MicroTile &)) {
  constexpr int width = lanes * vectors;
  const int64_t ofPanel = use == Use::Sum ? terms * factors.addends : terms;
  float sums[rows * width];
  for (int64_t panel = 0; panel < tile.panels; ++panel) {
    int64_t column = panel * width;
    float *c = tile.c + column * tile.cColumn;
    if (multiplyPanels<lanes, rows, vectors, rowsAreAdjacent, use>(
            terms, factors, tile, factors.b + column * ofPanel, c, sums))
      continue;
    MicroTile part = tile;
    part.c = c;
    if (part.bias)
      part.bias += column * tile.biasColumn;
    if (part.half)
      part.half += column * tile.halfColumn;
    store(sums, rows, width, part);
  }
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

template <int rows, int vectors, bool rowsAreAdjacent, Use use>
SHARDC_TARGET("avx512f,avx512vl,avx2,fma,prfchw")
void multiply512(int64_t terms, const MicroFactors &factors,
                 const MicroTile &tile) {
  multiplyStrip<16, rows, vectors, rowsAreAdjacent, use>(terms, factors, tile,
                                                         store512);
}

[[gnu::noinline]] SHARDC_TARGET("avx2,fma,prfchw") void store256(
    const float *sums, int rows, int width, const MicroTile &tile) {
  storeTile<8>(sums, rows, width, tile);
}

template <int rows, int vectors, bool rowsAreAdjacent, Use use>
SHARDC_TARGET("avx2,fma,prfchw")
void multiply256(int64_t terms, const MicroFactors &factors,
                 const MicroTile &tile) {
  multiplyStrip<8, rows, vectors, rowsAreAdjacent, use>(terms, factors, tile,
                                                        store256);
}

[[gnu::noinline]] void store128(const float *sums, int rows, int width,
                                const MicroTile &tile) {
  storeTile<4>(sums, rows, width, tile);
}

template <int rows, int vectors, bool rowsAreAdjacent, Use use>
void multiply128(int64_t terms, const MicroFactors &factors,
                 const MicroTile &tile) {
  multiplyStrip<4, rows, vectors, rowsAreAdjacent, use>(terms, factors, tile,
                                                        store128);
}

#undef SHARDC_TARGET

/// Rows of a kernel of a table; what stands for more than `maxRows` of two
/// vectors is never called.
constexpr int rowsAt(int index, int maxRows) {
  int rows = index / 4 + 1;
  return index / 2 % 2 == 0 ? rows : std::min(rows, maxRows);
}

/// Kernels in the order of `MicroKernels::kernels`.
template <template <int, int, bool, Use> class Kernel, int maxRows, Use use,
          int... index>
const MicroKernel *tableOf(std::integer_sequence<int, index...> /*places*/) {
  static const MicroKernel table[] = {
      Kernel<rowsAt(index, maxRows), index / 2 % 2 + 1, index % 2 == 1,
             use>::multiply...};
  return table;
}

template <int rows, int vectors, bool rowsAreAdjacent, Use use>
struct Kernel512 {
  static constexpr MicroKernel multiply =
      multiply512<rows, vectors, rowsAreAdjacent, use>;
};
template <int rows, int vectors, bool rowsAreAdjacent, Use use>
struct Kernel256 {
  static constexpr MicroKernel multiply =
      multiply256<rows, vectors, rowsAreAdjacent, use>;
};
template <int rows, int vectors, bool rowsAreAdjacent, Use use>
struct Kernel128 {
  static constexpr MicroKernel multiply =
      multiply128<rows, vectors, rowsAreAdjacent, use>;
};

template <template <int, int, bool, Use> class Kernel, int maxRows,
          int maxTallRows, int lanes, bool inPairs = false>
const MicroKernels &kernelsOf() {
  static_assert(std::max(2 * maxRows, maxTallRows) * lanes <=
                MicroKernels::mostElements);
  constexpr auto places = std::make_integer_sequence<int, 4 * maxTallRows>();
  static const MicroKernels kernels = [&] {
    MicroKernels all{maxRows,
                     maxTallRows,
                     lanes,
                     2,
                     {tableOf<Kernel, maxRows, Use::Packed>(places),
                      tableOf<Kernel, maxRows, Use::InPlace>(places),
                      tableOf<Kernel, maxRows, Use::Sum>(places), nullptr},
                     /*multiplyAddsPerCycle=*/2,
                     /*narrower=*/nullptr};
    if constexpr (inPairs)
      all.kernels[static_cast<int>(Use::Pairs)] =
          tableOf<Kernel, maxRows, Use::Pairs>(places);
    return all;
  }();
  return kernels;
}

} // namespace

const MicroKernels &MicroKernels::avx512bf16() {
  return kernelsOf<Kernel512, 14, 14, 16, /*inPairs=*/true>();
}
const MicroKernels &MicroKernels::avx512() {
  return kernelsOf<Kernel512, 14, 14, 16>();
}
const MicroKernels &MicroKernels::avx2() {
  return kernelsOf<Kernel256, 6, 12, 8>();
}
const MicroKernels &MicroKernels::portable() {
  return kernelsOf<Kernel128, 6, 12, 4>();
}

#if defined(__x86_64__)
/// Whether the CPU is AMD's and computes 512 bits in two halves, as Zen 4 does:
/// bit 3 (FP512) of CPUID's Fn8000_001A_EAX is for those that do not.
static bool computesInHalves() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_AMD_ebx &&
         __get_cpuid(0x8000001a, &eax, &ebx, &ecx, &edx) && !(eax >> 3 & 1);
}
#endif

const MicroKernels &MicroKernels::best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
    static const MicroKernels wide = [] {
      MicroKernels all =
          __builtin_cpu_supports("avx512bf16") ? avx512bf16() : avx512();
      if (computesInHalves()) {
        all.multiplyAddsPerCycle = 1;
        all.narrower = &avx2();
      }
      return all;
    }();
    return wide;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return avx2();
#endif
  return portable();
}

const MicroKernels &MicroKernels::upTo(const std::string &cpuTarget) {
  const MicroKernels &widest = best();
  return cpuTarget == "x86-64-v3" && widest.lanes > avx2().lanes ? avx2()
                                                                 : widest;
}
