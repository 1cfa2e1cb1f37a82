//===- PackPanel.h - Panels of a GEMM's factors -----------------*- C++ -*-===//
//
// A factor is packed so that a micro-kernel reads it in the order of memory:
// Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
// (ACM TOMS 34(3), 2008). A panel has some rows of a, or columns of b; packing
// also transposes where that is needed, so that all four transpositions of a
// GEMM are the same afterwards.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_PACKPANEL_H
#define SHARDC_RT_SRC_BACKENDS_CPU_PACKPANEL_H

#include <algorithm>
#include <cstdint>

namespace shardc::rt {

/// A factor in memory: element `i` (a row of a, a column of b) of term `term`
/// is at `data[i * stride + term * termStride]`. One of the strides is 1.
template <typename Element>
struct FactorOf {
  const Element *data;
  int64_t stride, termStride;

  FactorOf at(int64_t i, int64_t term) const {
    return {data + i * stride + term * termStride, stride, termStride};
  }
};
using Factor = FactorOf<float>;
/// One of bf16.
using HalfFactor = FactorOf<uint16_t>;

/// A factor in one piece, or in several of equal strides: blocks of its
/// elements or of its terms, each of `extent` but for the last. They are in
/// a list, or begin at the same distance of each other.
class PiecedFactor {
public:
  explicit PiecedFactor(const Factor &whole) : whole(whole) {}
  PiecedFactor(const float *const *pieces, int64_t extent, bool areTerms,
               int64_t stride, int64_t termStride)
      : whole{nullptr, stride, termStride}, pieces(pieces), extent(extent),
        areTerms(areTerms) {}
  PiecedFactor(const Factor &first, int64_t distance, int64_t extent,
               bool areTerms)
      : whole(first), distance(distance), extent(extent), areTerms(areTerms) {}

  int64_t stride() const { return whole.stride; }
  bool isWhole() const { return extent == 0; }
  bool isOfTerms() const { return areTerms; }

  PiecedFactor at(int64_t i, int64_t term) const {
    PiecedFactor from = *this;
    if (isWhole())
      from.whole = whole.at(i, term);
    from.firstElement += i;
    from.firstTerm += term;
    return from;
  }
  /// The piece that has element `i` of term `term`, from there on.
  Factor from(int64_t i, int64_t term) const {
    if (isWhole())
      return whole.at(i, term);
    i += firstElement, term += firstTerm;
    int64_t &place = areTerms ? term : i, piece = place / extent;
    place -= piece * extent;
    const float *data = pieces ? pieces[piece] : whole.data + piece * distance;
    return Factor{data, whole.stride, whole.termStride}.at(i, term);
  }
  /// How many of `count` elements or terms, which pieces are blocks of, from
  /// number `begin` on are in the piece of the first.
  int64_t inPiece(int64_t begin, int64_t count) const {
    int64_t place = begin + (areTerms ? firstTerm : firstElement);
    return isWhole() ? count : std::min(count, extent - place % extent);
  }
  /// Whether `count` elements of `terms` terms are in one piece.
  bool isOnePiece(int64_t i, int64_t count, int64_t term, int64_t terms) const {
    return areTerms ? inPiece(term, terms) == terms
                    : inPiece(i, count) == count;
  }

private:
  Factor whole; ///< If it is not in one piece, the first one, or its strides.
  const float *const *pieces = nullptr;
  int64_t distance = 0;
  int64_t extent = 0;
  bool areTerms = false;
  int64_t firstElement = 0, firstTerm = 0;
};

/// How the rows of a, or the columns of b, are cut into panels. They follow one
/// another in packed memory.
class Panels {
public:
  /// Panels of a differ by one row at most.
  static Panels ofRows(int64_t rows, int64_t maxRows) {
    int64_t count = (rows + maxRows - 1) / maxRows;
    return {rows, count, rows / std::max<int64_t>(count, 1),
            rows % std::max<int64_t>(count, 1), 1};
  }
  /// All panels of b but the last one are full; that is padded to whole
  /// vectors.
  static Panels ofColumns(int64_t columns, int64_t maxColumns, int64_t lanes) {
    return {columns, (columns + maxColumns - 1) / maxColumns, maxColumns, 0,
            lanes};
  }

  int64_t count() const { return number; }
  int64_t begin(int64_t panel) const {
    return std::min(panel * width + std::min(panel, wider), extent);
  }
  /// Without padding.
  int64_t size(int64_t panel) const { return begin(panel + 1) - begin(panel); }
  int64_t packedSize(int64_t panel) const { return padded(size(panel)); }
  /// Of all panels.
  int64_t packedExtent() const { return padded(extent); }

private:
  Panels(int64_t extent, int64_t number, int64_t width, int64_t wider,
         int64_t lanes)
      : extent(extent), number(number), width(width), wider(wider),
        lanes(lanes) {}

  int64_t padded(int64_t size) const { return (size + lanes - 1) & -lanes; }

  int64_t extent, number;
  /// The first `wider` panels are wider by one.
  int64_t width, wider;
  int64_t lanes; ///< A power of two.
};

/// The terms of panels that are packed: `count` from term `first` of `of`.
struct Terms {
  int64_t first, count, of;
};

/// Packs terms of panels [`begin`, `end`), the first of which begins at `from`
/// with the first of the terms: element i of term t of a panel of `width` comes
/// to `to[t * width + i]`, and panels follow one another. Elements behind the
/// size of a panel become any number.
void packPanels(const PiecedFactor &from, const Panels &panels, int64_t begin,
                int64_t end, const Terms &terms, float *to);

/// Packs `terms` terms of bf16, from the first of `from` on, in pairs, each of
/// which takes the place of a term of f32: the first one in the lower half, the
/// second, or 0 behind an odd number of terms, in the upper one.
void packPairs(const HalfFactor &from, const Panels &panels, int64_t begin,
               int64_t end, int64_t terms, float *to);

/// Packs them as terms of f32, of each pair the second one first.
void packWidened(const HalfFactor &from, const Panels &panels, int64_t begin,
                 int64_t end, int64_t terms, float *to);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_PACKPANEL_H
