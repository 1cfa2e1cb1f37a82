//===- PackPanel.cpp - Panels of a GEMM's factors -------------------------===//

#include "backends/cpu/PackPanel.h"

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
SHARDC_AVX2 void copyPanel(const Factor &from, int64_t width, int64_t terms,
                           float *to) {
  const float *row = from.data;
  if (width == 2 * lanes)
    for (int64_t term = 0; term < terms; ++term, row += from.termStride) {
      _mm256_storeu_ps(to + term * 16, _mm256_loadu_ps(row));
      _mm256_storeu_ps(to + term * 16 + 8, _mm256_loadu_ps(row + 8));
    }
  else
    for (int64_t term = 0; term < terms; ++term, row += from.termStride)
      for (int64_t i = 0; i < width; i += lanes)
        _mm256_storeu_ps(to + term * width + i, _mm256_loadu_ps(row + i));
}

/// Terms lie side by side in the factor: squares of it are transposed. Only
/// `terms` that are a multiple of eight.
SHARDC_AVX2 void transposePanel(const Factor &from, int64_t count,
                                int64_t width, int64_t terms, float *to) {
  for (int64_t i = 0; i < width; i += lanes) {
    const float *data[lanes];
    for (int64_t row = 0; row < lanes; ++row)
      data[row] = from.data + std::min(i + row, count - 1) * from.stride;
    // A vector that is wider than the panel reaches into the next term, which
    // is stored afterwards, unless it has been stored already.
    int64_t size = std::min(lanes, width - i);
    __m256i stored = _mm256_cmpgt_epi32(
        _mm256_set1_epi32(static_cast<int>(i == 0 ? lanes : size)),
        _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    for (int64_t term = 0; term < terms; term += lanes) {
      __m256 rows[lanes];
      for (int64_t row = 0; row < lanes; ++row)
        rows[row] = _mm256_loadu_ps(data[row] + term);
      transpose(rows);
      for (int64_t row = 0; row < lanes; ++row) {
        float *packed = to + (term + row) * width + i;
        if (i == 0 || size == lanes)
          _mm256_storeu_ps(packed, rows[row]);
        else
          _mm256_maskstore_ps(packed, stored, rows[row]);
      }
    }
  }
}

} // namespace

#endif

void shardc::rt::packPanel(Factor from, int64_t count, int64_t width,
                           int64_t terms, float *to) {
  // Vectors may reach beyond a term, but not beyond the last one.
  int64_t fast = 0;
#if defined(__x86_64__)
  static const bool hasAvx2 = __builtin_cpu_supports("avx2");
  int64_t beyond = width % lanes == 0 ? 0 : (lanes + width - 1) / width;
  if (hasAvx2 && from.stride == 1) {
    if (width % lanes != 0 || count < width)
      beyond = std::max(beyond, lanes / from.termStride + 1);
    fast = std::max<int64_t>(terms - beyond, 0);
    copyPanel(from, width, fast, to);
  } else if (hasAvx2 && from.termStride == 1) {
    fast = std::max<int64_t>(terms - beyond, 0) / lanes * lanes;
    transposePanel(from, count, width, fast, to);
  }
#endif
  packTerms(from, count, width, fast, terms, to);
}
