//===- CublasLt.h - Our subset of cuBLASLt ----------------------*- C++ -*-===//
//
// Types, constants and signatures of libcublasLt as NVIDIA's "cuBLAS" reference
// (section "Using the cuBLASLt API") documents them, so that no header of the
// toolkit is needed. They are the same in versions 12 and 13.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_CUBLASLT_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_CUBLASLT_H

#include "backends/cuda/Driver.h"

#include <cstdint>

namespace shardc::rt::cuda {

using cublasStatus_t = int;
using cublasLtHandle_t = struct cublasLtContext *;
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescOpaque_t *;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutOpaque_t *;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceOpaque_t *;

inline constexpr cublasStatus_t CUBLAS_STATUS_SUCCESS = 0;
inline constexpr cublasStatus_t CUBLAS_STATUS_ALLOC_FAILED = 3;
inline constexpr cublasStatus_t CUBLAS_STATUS_ARCH_MISMATCH = 8;
inline constexpr cublasStatus_t CUBLAS_STATUS_NOT_SUPPORTED = 15;

// cudaDataType_t.
inline constexpr int CUDA_R_32F = 0;
inline constexpr int CUDA_R_16BF = 14;
// cublasComputeType_t.
inline constexpr int CUBLAS_COMPUTE_32F = 68;
inline constexpr int CUBLAS_COMPUTE_32F_FAST_16BF = 75;
inline constexpr int CUBLAS_COMPUTE_32F_FAST_TF32 = 77;
// cublasOperation_t.
inline constexpr int32_t CUBLAS_OP_N = 0;
inline constexpr int32_t CUBLAS_OP_T = 1;
// cublasLtMatmulDescAttributes_t.
inline constexpr int CUBLASLT_MATMUL_DESC_TRANSA = 3;
inline constexpr int CUBLASLT_MATMUL_DESC_TRANSB = 4;
inline constexpr int CUBLASLT_MATMUL_DESC_EPILOGUE = 7;
inline constexpr int CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8;
// cublasLtEpilogue_t.
inline constexpr uint32_t CUBLASLT_EPILOGUE_DEFAULT = 1;
inline constexpr uint32_t CUBLASLT_EPILOGUE_RELU = 2;
inline constexpr uint32_t CUBLASLT_EPILOGUE_BIAS = 4;
inline constexpr uint32_t CUBLASLT_EPILOGUE_RELU_BIAS = 6;
inline constexpr uint32_t CUBLASLT_EPILOGUE_BGRADA = 256;
inline constexpr uint32_t CUBLASLT_EPILOGUE_BGRADB = 512;
// cublasLtMatrixLayoutAttribute_t.
inline constexpr int CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5;
inline constexpr int CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6;
// cublasLtMatmulPreferenceAttributes_t.
inline constexpr int CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8;

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};

struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

/// The functions of an open libcublasLt. Immutable; any thread may call them.
class CublasLt {
public:
  /// Opens `path`, or if it is empty libcublasLt.so.13 or .so.12. Unavailable:
  /// there is none.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<CublasLt>>
  open(const std::string &path);

  size_t (*getVersion)();
  cublasStatus_t (*create)(cublasLtHandle_t *handle);
  cublasStatus_t (*destroy)(cublasLtHandle_t handle);
  cublasStatus_t (*matmulDescCreate)(cublasLtMatmulDesc_t *desc,
                                     int computeType, int scaleType);
  cublasStatus_t (*matmulDescDestroy)(cublasLtMatmulDesc_t desc);
  cublasStatus_t (*matmulDescSetAttribute)(cublasLtMatmulDesc_t desc,
                                           int attribute, const void *value,
                                           size_t bytes);
  cublasStatus_t (*matrixLayoutCreate)(cublasLtMatrixLayout_t *layout, int type,
                                       uint64_t rows, uint64_t columns,
                                       int64_t leading);
  cublasStatus_t (*matrixLayoutDestroy)(cublasLtMatrixLayout_t layout);
  cublasStatus_t (*matrixLayoutSetAttribute)(cublasLtMatrixLayout_t layout,
                                             int attribute, const void *value,
                                             size_t bytes);
  cublasStatus_t (*matmulPreferenceCreate)(cublasLtMatmulPreference_t *pref);
  cublasStatus_t (*matmulPreferenceDestroy)(cublasLtMatmulPreference_t pref);
  cublasStatus_t (*matmulPreferenceSetAttribute)(
      cublasLtMatmulPreference_t pref, int attribute, const void *value,
      size_t bytes);
  cublasStatus_t (*matmulAlgoGetHeuristic)(
      cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
      cublasLtMatmulPreference_t pref, int requested,
      cublasLtMatmulHeuristicResult_t *results, int *returned);
  cublasStatus_t (*matmul)(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                           const void *alpha, const void *a,
                           cublasLtMatrixLayout_t aLayout, const void *b,
                           cublasLtMatrixLayout_t bLayout, const void *beta,
                           const void *c, cublasLtMatrixLayout_t cLayout,
                           void *d, cublasLtMatrixLayout_t dLayout,
                           const cublasLtMatmulAlgo_t *algo, void *workspace,
                           size_t workspaceBytes, CUstream stream);

private:
  explicit CublasLt(SharedLibrary library) : library(std::move(library)) {}

  SharedLibrary library;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_CUBLASLT_H
