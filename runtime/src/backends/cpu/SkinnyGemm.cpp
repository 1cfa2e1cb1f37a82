//===- SkinnyGemm.cpp - GEMMs with a short side ---------------------------===//
//
// Columns of b are packed sixteen at a time into a panel on the stack, and rows
// of a run over it six at a time: sums stay in registers.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/SkinnyGemm.h"

#include "base/VectorClones.h"

#include <algorithm>

using namespace shardc::rt;

namespace {

constexpr int64_t lanes = 16, rowsAtOnce = 6;
/// Terms of a sum that a panel holds.
constexpr int64_t panelTerms = 512;

typedef float Vector __attribute__((vector_size(lanes * sizeof(float))));

/// Sums of `rows` rows of a over a panel of `terms` rows.
template <int64_t rows>
[[gnu::always_inline]] inline void
addTerms(const float *a, int64_t aRow, int64_t aColumn, const Vector *panel,
         int64_t terms, Vector *result) {
  Vector sums[rows] = {};
  for (int64_t term = 0; term < terms; ++term) {
    Vector factor = panel[term];
    for (int64_t row = 0; row < rows; ++row)
      sums[row] += a[row * aRow + term * aColumn] * factor;
  }
  for (int64_t row = 0; row < rows; ++row)
    result[row] = sums[row];
}

/// `count` rows, at most `rowsAtOnce`.
[[gnu::always_inline]] inline void addRows(int64_t count, const float *a,
                                           int64_t aRow, int64_t aColumn,
                                           const Vector *panel, int64_t terms,
                                           Vector *result) {
  if (count == rowsAtOnce)
    return addTerms<rowsAtOnce>(a, aRow, aColumn, panel, terms, result);
  for (int64_t row = 0; row < count; ++row)
    addTerms<1>(a + row * aRow, aRow, aColumn, panel, terms, result + row);
}

} // namespace

SHARDC_VECTOR_CLONES
static void runPanels(const SkinnyGemm &of, const float *a, const float *b,
                      const float *bias, float *c) {
  Vector panel[panelTerms], sums[rowsAtOnce];
  for (int64_t column = 0; column < of.n; column += lanes) {
    int64_t width = std::min(lanes, of.n - column);
    for (int64_t first = 0; first < of.k; first += panelTerms) {
      int64_t terms = std::min(panelTerms, of.k - first);
      const float *from = b + first * of.bRow + column * of.bColumn;
      for (int64_t term = 0; term < terms; ++term) {
        panel[term] = Vector{};
        for (int64_t lane = 0; lane < width; ++lane)
          panel[term][lane] = from[term * of.bRow + lane * of.bColumn];
      }
      bool adds = first > 0 || of.accumulate;
      bool ends = first + terms == of.k;
      for (int64_t row = 0; row < of.m; row += rowsAtOnce) {
        int64_t count = std::min(rowsAtOnce, of.m - row);
        addRows(count, a + row * of.aRow + first * of.aColumn, of.aRow,
                of.aColumn, panel, terms, sums);
        for (int64_t i = 0; i < count; ++i) {
          float *result = c + (row + i) * of.cRow + column;
          for (int64_t lane = 0; lane < width; ++lane) {
            float value = sums[i][lane];
            if (adds)
              value += result[lane];
            if (ends && bias)
              value += bias[column + lane];
            // NaN stays.
            if (ends && of.relu && value < 0)
              value = 0;
            result[lane] = value;
          }
        }
      }
    }
  }
}

void SkinnyGemm::run(const float *a, const float *b, const float *bias,
                     float *c) const {
  runPanels(*this, a, b, bias, c);
}
