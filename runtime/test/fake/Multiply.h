//===- Multiply.h - The GEMMs of the fake's libcublasLt ---------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_FAKE_MULTIPLY_H
#define SHARDC_RT_TEST_FAKE_MULTIPLY_H

#include "backends/cuda/CublasLt.h"

#include <map>

namespace shardc::rt::cuda {
struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t {
  int computeType = 0;
  std::map<int, uint64_t> attributes;

  /// An attribute as it was set; 0: it was not.
  uint64_t get(int which) const {
    auto found = attributes.find(which);
    return found == attributes.end() ? 0 : found->second;
  }
};
struct cublasLtMatrixLayoutOpaque_t {
  int type = 0;
  int64_t rows = 0, columns = 0, leading = 0;
  int64_t batch = 1, stride = 0;

  uint64_t bytes() const {
    return ((batch - 1) * stride + (columns - 1) * leading + rows) *
           (type == CUDA_R_32F ? 4 : 2);
  }
};
struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t workspace = 0;
  uint32_t alignment = 256;
};
} // namespace shardc::rt::cuda

namespace shardc::rt::test {

using namespace shardc::rt::cuda;

/// Whether the epilogue has a bias or makes the gradient of one.
bool hasVector(uint64_t epilogue);

/// d = epilogue(a·b + beta·d) of column-major matrices.
void multiply(const cublasLtMatmulDescOpaque_t &desc, const void *a,
              const cublasLtMatrixLayoutOpaque_t &la, const void *b,
              const cublasLtMatrixLayoutOpaque_t &lb, float beta, void *d,
              const cublasLtMatrixLayoutOpaque_t &ld);

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_FAKE_MULTIPLY_H
