//===- PackPanel.cpp - Panels of a GEMM's factors -------------------------===//

#include "backends/cpu/PackPanel.h"

#include "base/VectorClones.h"

#include <algorithm>
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

/// Panels that are packed together: of 6 rows each, they are three cache lines
/// of a term.
constexpr int64_t maxGroup = 8;

/// A panel of a group.
struct Part {
  int64_t place; ///< Of its first element, from that of the group.
  int64_t width;
  float *to;
};

/// Copies the elements of a term, one or more vectors: the last vector ends
/// with them.
template <int vectors>
SHARDC_AVX2 inline void copyTerm(const float *from, int64_t width, float *to) {
#pragma GCC unroll 4
  for (int64_t i = 0; i < vectors; ++i) {
    int64_t place = i + 1 < vectors ? i * lanes : width - lanes;
    _mm256_storeu_ps(to + place, _mm256_loadu_ps(from + place));
  }
}

/// As above, for 4 to 7 elements.
template <>
SHARDC_AVX2 inline void copyTerm<0>(const float *from, int64_t width,
                                    float *to) {
  for (int64_t place : {int64_t(0), width - lanes / 2})
    _mm_storeu_ps(to + place, _mm_loadu_ps(from + place));
}

/// Terms are rows of the factor: they are copied, those of all panels four at
/// a time, since rows may lie so that few of them stay in the first-level
/// cache.
template <int vectors>
SHARDC_AVX2 void copyTerms(const Factor &from, const Part *parts, int64_t count,
                           int64_t terms) {
  constexpr int64_t atOnce = 4, lineElements = 16;
  const int64_t stride = from.termStride,
                extent = parts[count - 1].place + parts[count - 1].width;
  int64_t term = 0;
  for (; term + atOnce <= terms; term += atOnce) {
    const float *rows = from.data + term * stride;
    for (int64_t ahead = atOnce; ahead < 2 * atOnce; ++ahead)
      for (int64_t place = 0; place < extent; place += lineElements)
        __builtin_prefetch(rows + ahead * stride + place);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t width = parts[i].width;
      const float *row = rows + parts[i].place;
      float *to = parts[i].to + term * width;
#pragma GCC unroll 4
      for (int64_t j = 0; j < atOnce; ++j, row += stride, to += width)
        copyTerm<vectors>(row, width, to);
    }
  }
  for (; term < terms; ++term)
    for (int64_t i = 0; i < count; ++i)
      copyTerm<vectors>(from.data + term * stride + parts[i].place,
                        parts[i].width, parts[i].to + term * parts[i].width);
}

/// How panels of a width are copied: vectors, 0 for less than one, or -1 for
/// too few elements.
int vectorsOf(int64_t width) {
  return width < lanes / 2 ? -1
         : width < lanes   ? 0
                           : (width + lanes - 1) / lanes;
}

/// Copies panels from `begin` on that are copied alike; returns the first of
/// those that are left.
int64_t copyGroup(const Factor &from, const Panels &panels, int64_t begin,
                  int64_t end, const Terms &of, float *to) {
  const int64_t terms = of.count;
  int vectors = vectorsOf(panels.packedSize(begin));
  Part parts[maxGroup];
  int64_t count = 0, fast = terms, first = panels.begin(begin);
  for (int64_t panel = begin; panel < end && count < maxGroup; ++panel) {
    int64_t width = panels.packedSize(panel);
    if (vectorsOf(width) != vectors)
      break;
    int64_t place = panels.begin(panel) - first;
    parts[count++] = {place, width, to + place * of.of + of.first * width};
    // Vectors may reach beyond a term, but not beyond the last one.
    if (int64_t padding = width - panels.size(panel))
      fast = std::max<int64_t>(0, terms - padding / from.termStride - 1);
  }
  switch (vectors) {
  case 0:
    copyTerms<0>(from, parts, count, fast);
    break;
  case 1:
    copyTerms<1>(from, parts, count, fast);
    break;
  case 2:
    copyTerms<2>(from, parts, count, fast);
    break;
  case 3:
    copyTerms<3>(from, parts, count, fast);
    break;
  case 4:
    copyTerms<4>(from, parts, count, fast);
    break;
  default:
    fast = 0;
  }
  for (int64_t i = 0; i < count; ++i)
    packTerms(from.at(parts[i].place, 0), panels.size(begin + i),
              parts[i].width, fast, terms, parts[i].to);
  return begin + count;
}

/// Terms lie side by side in the factor, one or two of them in 32 bits: squares
/// of these are transposed, the last eight columns first. A vector that is
/// wider than what is left of the panel reaches into the next term, which is
/// stored later, and behind the last one: seven elements where a term has one,
/// four in all where it has four. Few rows are read at a time, since they may
/// meet in few sets of the first-level cache.
template <typename Element>
SHARDC_AVX2 inline void transposeTerms(const FactorOf<Element> &from,
                                       int64_t count, int64_t width,
                                       int64_t terms, float *to) {
  constexpr int64_t together = sizeof(float) / sizeof(Element);
  for (int64_t i = (width - 1) / lanes * lanes; i >= 0; i -= lanes) {
    const Element *data[lanes];
    for (int64_t row = 0; row < lanes; ++row)
      data[row] = from.data + std::min(i + row, count - 1) * from.stride;
    for (int64_t term = 0; term < terms; term += lanes) {
      int64_t stored = std::min(lanes, terms - term);
      // What the next call reads, a line of each row in two turns.
      for (int64_t row = term / lanes % 2; row < lanes; row += 2)
        __builtin_prefetch(data[row] + (term + terms) * together);
      __m256 rows[lanes];
      auto words = [&](int64_t row) {
        return reinterpret_cast<const float *>(data[row] + term * together);
      };
      if (stored == lanes) {
        for (int64_t row = 0; row < lanes; ++row)
          rows[row] = _mm256_loadu_ps(words(row));
      } else {
        __m256i loaded =
            _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(stored)),
                               _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        for (int64_t row = 0; row < lanes; ++row)
          rows[row] = _mm256_maskload_ps(words(row), loaded);
      }
      transpose(rows);
      for (int64_t row = 0; row < stored; ++row)
        _mm256_storeu_ps(to + (term + row) * width + i, rows[row]);
    }
  }
}

template <typename Element>
SHARDC_AVX2 void transposePanel(const FactorOf<Element> &from, int64_t count,
                                int64_t width, int64_t terms, float *to) {
  constexpr int64_t together = sizeof(float) / sizeof(Element);
  // What is packed at a time stays in the first-level cache.
  constexpr int64_t chunk = 8 * lanes;
  int64_t term = 0;
  for (; term + lanes < terms; term += chunk)
    transposeTerms(from.at(0, term * together), count, width,
                   std::min(chunk, (terms - 1 - term) / lanes * lanes),
                   to + term * width);
  // The last term comes last, since nothing may be stored behind it. What the
  // term before reaches into is no more than that if it is four elements wide.
  term = (terms - 1) / lanes * lanes;
  alignas(32) float last[lanes * maxWidth + lanes];
  transposeTerms(from.at(0, term * together), count, width, terms - term, last);
  std::memcpy(to + term * width, last, (terms - term) * width * sizeof(float));
}

SHARDC_AVX2 inline __m256i loadWidened(const uint16_t *from) {
  return _mm256_cvtepu16_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
}

/// A term of each of eight elements with the term behind it.
SHARDC_AVX2 inline void joinTerms(const uint16_t *first, const uint16_t *second,
                                  float *to) {
  _mm256_storeu_si256(
      reinterpret_cast<__m256i *>(to),
      _mm256_or_si256(loadWidened(first),
                      _mm256_slli_epi32(loadWidened(second), 16)));
}

/// Terms are rows of the factor, at least eight elements wide.
SHARDC_AVX2 void joinPanel(const HalfFactor &from, int64_t count, int64_t width,
                           int64_t pairs, float *to) {
  for (int64_t pair = 0; pair < pairs; ++pair, to += width) {
    const uint16_t *first = from.at(0, 2 * pair).data,
                   *second = first + from.termStride;
    for (int64_t ahead = 8; ahead < 10; ++ahead)
      __builtin_prefetch(first + ahead * from.termStride);
    for (int64_t i = 0; i < count; i += lanes) {
      int64_t place = std::min(i, count - lanes);
      joinTerms(first + place, second + place, to + place);
    }
  }
}

} // namespace

#endif

/// Packs panels that are in one piece.
static void packPiece(const Factor &from, const Panels &panels, int64_t begin,
                      int64_t end, const Terms &terms, float *to) {
  int64_t first = panels.begin(begin);
  while (begin < end) {
    int64_t place = panels.begin(begin) - first;
    int64_t size = panels.size(begin), width = panels.packedSize(begin);
    Factor panel = from.at(place, 0);
    float *packed = to + place * terms.of;
#if defined(__x86_64__)
    static const bool hasAvx2 = __builtin_cpu_supports("avx2");
    if (hasAvx2 && from.stride == 1) {
      begin = copyGroup(panel, panels, begin, end, terms, packed);
      continue;
    }
    if (hasAvx2 && from.termStride == 1 && terms.count > 0 && width >= 4) {
      transposePanel(panel, size, width, terms.count,
                     packed + terms.first * width);
      ++begin;
      continue;
    }
#endif
    packTerms(panel, size, width, 0, terms.count, packed + terms.first * width);
    ++begin;
  }
}

/// Packs a panel of elements of several pieces, piece by piece.
static void packAcross(const PiecedFactor &from, int64_t size, int64_t width,
                       int64_t terms, float *to) {
  for (int64_t i = 0, count; i < size; i += count) {
    count = from.inPiece(i, size - i);
    const Factor piece = from.from(i, 0);
    for (int64_t term = 0; term < terms; ++term)
      for (int64_t j = 0; j < count; ++j)
        to[term * width + i + j] =
            piece.data[j * piece.stride + term * piece.termStride];
  }
  for (int64_t term = 0; term < terms; ++term)
    std::fill(to + term * width + size, to + (term + 1) * width, 0.0f);
}

void shardc::rt::packPanels(const PiecedFactor &from, const Panels &panels,
                            int64_t begin, int64_t end, const Terms &terms,
                            float *to) {
  if (from.isWhole())
    return packPiece(from.from(0, 0), panels, begin, end, terms, to);
  if (from.isOfTerms()) {
    for (int64_t term = 0, count; term < terms.count; term += count) {
      count = from.inPiece(term, terms.count - term);
      packPiece(from.from(0, term), panels, begin, end,
                {terms.first + term, count, terms.of}, to);
    }
    return;
  }
  const int64_t first = panels.begin(begin);
  for (int64_t next; begin < end; begin = next) {
    const int64_t place = panels.begin(begin) - first;
    const int64_t inPiece =
        from.inPiece(place, panels.begin(end) - first - place);
    for (next = begin;
         next < end && panels.begin(next + 1) - first <= place + inPiece;)
      ++next;
    float *packed = to + place * terms.of;
    if (next > begin) {
      packPiece(from.from(place, 0), panels, begin, next, terms, packed);
      continue;
    }
    const int64_t width = panels.packedSize(begin);
    packAcross(from.at(place, 0), panels.size(begin), width, terms.count,
               packed + terms.first * width);
    ++next;
  }
}

/// Pairs [first, last), one element at a time.
static void packPairsOf(const HalfFactor &from, int64_t count, int64_t width,
                        int64_t first, int64_t last, int64_t terms, float *to) {
  for (int64_t pair = first; pair < last; ++pair)
    for (int64_t i = 0; i < count; ++i) {
      uint32_t word = *from.at(i, 2 * pair).data;
      if (2 * pair + 1 < terms)
        word |= static_cast<uint32_t>(*from.at(i, 2 * pair + 1).data) << 16;
      std::memcpy(&to[pair * width + i], &word, sizeof(word));
    }
}

/// Packs the pairs of a panel of `count` elements.
static void packPanelInPairs(const HalfFactor &from, int64_t count,
                             int64_t width, int64_t terms, float *to) {
  int64_t fast = 0;
#if defined(__x86_64__)
  static const bool hasAvx2 = __builtin_cpu_supports("avx2");
  if (hasAvx2 && from.stride == 1 && count >= lanes) {
    fast = terms / 2;
    joinPanel(from, count, width, fast, to);
  } else if (hasAvx2 && from.termStride == 1 && terms >= 2 && width >= 4) {
    fast = terms / 2;
    transposePanel(from, count, width, fast, to);
  }
#endif
  packPairsOf(from, count, width, fast, (terms + 1) / 2, terms, to);
}

void shardc::rt::packPairs(const HalfFactor &from, const Panels &panels,
                           int64_t begin, int64_t end, int64_t terms,
                           float *to) {
  const int64_t first = panels.begin(begin);
  for (int64_t panel = begin; panel < end; ++panel) {
    int64_t place = panels.begin(panel) - first;
    packPanelInPairs(from.at(place, 0), panels.size(panel),
                     panels.packedSize(panel), terms,
                     to + place * ((terms + 1) / 2));
  }
}

/// Widens the pairs of a panel, which end where its terms will, to those.
SHARDC_VECTOR_CLONES
static void widenPairs(float *panel, int64_t width, int64_t terms) {
  const int64_t pairs = (terms + 1) / 2;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const float *from = panel + (terms - pairs + pair) * width;
    float *to = panel + 2 * pair * width;
    bool isWhole = 2 * pair + 1 < terms;
    // A vector or more at a time, since a pair may lie where its terms will.
    constexpr int64_t atOnce = 16;
    for (int64_t i = 0; i < width; i += atOnce) {
      uint32_t words[atOnce], seconds[atOnce];
      const int64_t count = std::min(atOnce, width - i);
      std::memcpy(words, from + i, count * sizeof(float));
      for (int64_t j = 0; j < atOnce; ++j) {
        seconds[j] = words[j] & 0xffff0000;
        words[j] <<= 16;
      }
      if (isWhole)
        std::memcpy(to + i, seconds, count * sizeof(float));
      std::memcpy(to + isWhole * width + i, words, count * sizeof(float));
    }
  }
}

void shardc::rt::packWidened(const HalfFactor &from, const Panels &panels,
                             int64_t begin, int64_t end, int64_t terms,
                             float *to) {
  const int64_t first = panels.begin(begin), pairs = (terms + 1) / 2;
  for (int64_t panel = begin; panel < end; ++panel) {
    int64_t place = panels.begin(panel) - first,
            width = panels.packedSize(panel);
    float *own = to + place * terms;
    packPanelInPairs(from.at(place, 0), panels.size(panel), width, terms,
                     own + (terms - pairs) * width);
    widenPairs(own, width, terms);
  }
}
