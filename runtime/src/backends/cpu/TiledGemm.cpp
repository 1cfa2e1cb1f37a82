//===- TiledGemm.cpp - The epilogue of a GEMM -----------------------------===//

#include "backends/cpu/TiledGemm.h"

#include "base/VectorClones.h"

using namespace shardc::rt;

// Static, since clones of non-static functions ignore the visibility.
SHARDC_VECTOR_CLONES
static void finish(float *__restrict row, const float *__restrict bias,
                   bool relu, int64_t elements) {
  if (bias)
    for (int64_t i = 0; i < elements; ++i)
      row[i] += bias[i];
  if (relu)
    for (int64_t i = 0; i < elements; ++i)
      row[i] = row[i] < 0 ? 0 : row[i];
}

void shardc::rt::finishRow(float *row, const float *bias, bool relu,
                           int64_t elements) {
  finish(row, bias, relu, elements);
}
