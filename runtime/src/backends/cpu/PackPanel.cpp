//===- PackPanel.cpp - Panels of a GEMM's factors -------------------------===//

#include "backends/cpu/PackPanel.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace shardc::rt;

/// Terms [first, last), one element at a time.
static void packTerms(const Factor &from, int64_t count, int64_t width,
                      int64_t first, int64_t last, float *to) {
  for (int64_t term = first; term < last; ++term)
    for (int64_t i = 0; i < width; ++i)
      to[term * width + i] =
          i < count ? from.data[i * from.stride + term * from.termStride] : 0;
}

#if defined(__x86_64__)

namespace {

constexpr int64_t lanes = 8;
/// Of a panel.
constexpr int64_t maxWidth = 4 * lanes;

#define SHARDC_AVX2 __attribute__((target("avx2")))

/// Transposes a square of eight rows.
SHARDC_AVX2 inline void transpose(__m256 (&rows)[lanes]) {
  __m256 pairs[lanes], fours[lanes];
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
  }
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 2; ++i) {
      __m256 first = pairs[4 * half + i], second = pairs[4 * half + i + 2];
      fours[4 * half + 2 * i] = _mm256_shuffle_ps(first, second, 0x44);
      fours[4 * half + 2 * i + 1] = _mm256_shuffle_ps(first, second, 0xee);
    }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

/// Terms are rows of the factor: they are copied.
template <int vectors>
SHARDC_AVX2 void copyVectors(const Factor &from, int64_t width, int64_t terms,
                             float *to) {
  const float *row = from.data;
  for (int64_t term = 0; term < terms; ++term, row += from.termStride)
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i)
      _mm256_storeu_ps(to + term * width + i * lanes,
                       _mm256_loadu_ps(row + i * lanes));
}

SHARDC_AVX2 void copyPanel(const Factor &from, int64_t width, int64_t terms,
                           float *to) {
  switch ((width + lanes - 1) / lanes) {
  case 1:
    return copyVectors<1>(from, width, terms, to);
  case 2:
    return copyVectors<2>(from, width, terms, to);
  case 3:
    return copyVectors<3>(from, width, terms, to);
  default:
    return copyVectors<4>(from, width, terms, to);
  }
}

/// Terms lie side by side in the factor: squares of it are transposed, the
/// last eight columns first. A vector that is wider than what is left of the
/// panel reaches into the next term, which is stored later; so `to` has room
/// for eight elements more. Few rows are read at a time, since they may meet
/// in few sets of the first-level cache.
SHARDC_AVX2 inline void transposeTerms(const Factor &from, int64_t count,
                                       int64_t width, int64_t terms,
                                       float *to) {
  for (int64_t i = (width - 1) / lanes * lanes; i >= 0; i -= lanes) {
    const float *data[lanes];
    for (int64_t row = 0; row < lanes; ++row)
      data[row] = from.data + std::min(i + row, count - 1) * from.stride;
    for (int64_t term = 0; term < terms; term += lanes) {
      int64_t stored = std::min(lanes, terms - term);
      __m256 rows[lanes];
      if (stored == lanes) {
        for (int64_t row = 0; row < lanes; ++row)
          rows[row] = _mm256_loadu_ps(data[row] + term);
      } else {
        __m256i loaded =
            _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(stored)),
                               _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        for (int64_t row = 0; row < lanes; ++row)
          rows[row] = _mm256_maskload_ps(data[row] + term, loaded);
      }
      transpose(rows);
      for (int64_t row = 0; row < stored; ++row)
        _mm256_storeu_ps(to + (term + row) * width + i, rows[row]);
    }
  }
}

SHARDC_AVX2 void transposePanel(const Factor &from, int64_t count,
                                int64_t width, int64_t terms, float *to) {
  // What is packed at a time stays in the first-level cache.
  constexpr int64_t chunk = 8 * lanes;
  int64_t term = 0;
  for (; term + lanes < terms; term += chunk)
    transposeTerms(from.at(0, term), count, width,
                   std::min(chunk, (terms - 1 - term) / lanes * lanes),
                   to + term * width);
  // Nothing may be stored behind the last term.
  term = (terms - 1) / lanes * lanes;
  alignas(32) float last[lanes * maxWidth + lanes];
  transposeTerms(from.at(0, term), count, width, terms - term, last);
  std::memcpy(to + term * width, last, (terms - term) * width * sizeof(float));
}

} // namespace

#endif

void shardc::rt::packPanel(Factor from, int64_t count, int64_t width,
                           int64_t terms, float *to) {
  int64_t fast = 0;
#if defined(__x86_64__)
  static const bool hasAvx2 = __builtin_cpu_supports("avx2");
  if (hasAvx2 && from.stride == 1) {
    // Vectors may reach beyond a term, but not beyond the last one.
    int64_t beyond = 0;
    if (width % lanes != 0 || count < width)
      beyond =
          std::max((lanes + width - 1) / width, lanes / from.termStride + 1);
    fast = std::max<int64_t>(terms - beyond, 0);
    copyPanel(from, width, fast, to);
  } else if (hasAvx2 && from.termStride == 1 && terms > 0) {
    return transposePanel(from, count, width, terms, to);
  }
#endif
  packTerms(from, count, width, fast, terms, to);
}
