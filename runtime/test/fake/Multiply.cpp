//===- Multiply.cpp - The GEMMs of the fake's libcublasLt -----------------===//

#include "Multiply.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace shardc::rt::test;

static float loadValue(int type, const void *data, int64_t index) {
  if (type == CUDA_R_32F)
    return static_cast<const float *>(data)[index];
  uint32_t bits = uint32_t(static_cast<const uint16_t *>(data)[index]) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

static void storeValue(int type, void *data, int64_t index, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float *>(data)[index] = value;
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  static_cast<uint16_t *>(data)[index] =
      std::isnan(value) ? 0x7fff : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

/// The sum over the columns of row `row`.
static float sumOf(const cublasLtMatrixLayoutOpaque_t &layout, const void *data,
                   int64_t row, int64_t columns) {
  float sum = 0;
  for (int64_t column = 0; column < columns; ++column)
    sum += loadValue(layout.type, data, column * layout.leading + row);
  return sum;
}

bool shardc::rt::test::hasVector(uint64_t epilogue) {
  return epilogue & CUBLASLT_EPILOGUE_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_BGRADA ||
         epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

void shardc::rt::test::multiply(const cublasLtMatmulDescOpaque_t &desc,
                                const void *a,
                                const cublasLtMatrixLayoutOpaque_t &la,
                                const void *b,
                                const cublasLtMatrixLayoutOpaque_t &lb,
                                float beta, void *d,
                                const cublasLtMatrixLayoutOpaque_t &ld) {
  bool transA = desc.get(CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T;
  bool transB = desc.get(CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  uint64_t epilogue = desc.get(CUBLASLT_MATMUL_DESC_EPILOGUE);
  void *vector =
      reinterpret_cast<void *>(desc.get(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
  int64_t depth = transA ? la.rows : la.columns;
  for (int64_t batch = 0; batch < ld.batch; ++batch)
    for (int64_t column = 0; column < ld.columns; ++column)
      for (int64_t row = 0; row < ld.rows; ++row) {
        float sum = 0;
        for (int64_t k = 0; k < depth; ++k)
          sum +=
              loadValue(la.type, a,
                        batch * la.stride + (transA ? row * la.leading + k
                                                    : k * la.leading + row)) *
              loadValue(lb.type, b,
                        batch * lb.stride + (transB ? k * lb.leading + column
                                                    : column * lb.leading + k));
        int64_t at = batch * ld.stride + column * ld.leading + row;
        if (beta != 0)
          sum += beta * loadValue(ld.type, d, at);
        if (epilogue & CUBLASLT_EPILOGUE_BIAS)
          sum += loadValue(ld.type, vector, row);
        if (epilogue & CUBLASLT_EPILOGUE_RELU)
          sum = std::max(sum, 0.0f);
        storeValue(ld.type, d, at, sum);
      }
  // Sums over k of the first factor's rows, or of the second one's columns.
  if (epilogue == CUBLASLT_EPILOGUE_BGRADA)
    for (int64_t row = 0; row < ld.rows; ++row)
      storeValue(ld.type, vector, row, sumOf(la, a, row, depth));
  if (epilogue == CUBLASLT_EPILOGUE_BGRADB)
    for (int64_t column = 0; column < ld.columns; ++column)
      storeValue(ld.type, vector, column, sumOf(lb, b, column, depth));
}
