//===- CublasLt.cpp - The fake's libcublasLt ------------------------------===//

#include "Multiply.h"
#include "State.h"

#include <chrono>
#include <cstring>
#include <thread>

using namespace shardc::rt::test;

static constexpr cublasStatus_t invalidValue = 7, internalError = 14;

static void count(const char *kind, int change) {
  state().live[kind] += change;
}

/// An attribute of 4 or 8 bytes.
static uint64_t readValue(const void *value, size_t bytes) {
  uint64_t result = 0;
  std::memcpy(&result, value, bytes);
  return result;
}

template <typename T>
static cublasStatus_t destroy(T *object, const char *call, const char *kind) {
  bool fails = enter(call);
  delete object;
  count(kind, -1);
  return fails ? internalError : 0;
}

/// Requests without an algorithm in the library: gradients of a bias along rows
/// that are not contiguous, or of several GEMMs.
static bool isSupported(const cublasLtMatmulDescOpaque_t &desc,
                        const cublasLtMatrixLayoutOpaque_t &ld) {
  uint64_t epilogue = desc.get(CUBLASLT_MATMUL_DESC_EPILOGUE);
  if (epilogue == CUBLASLT_EPILOGUE_BGRADA)
    return ld.batch == 1 &&
           desc.get(CUBLASLT_MATMUL_DESC_TRANSA) != CUBLAS_OP_T;
  if (epilogue == CUBLASLT_EPILOGUE_BGRADB)
    return ld.batch == 1 &&
           desc.get(CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  return true;
}

extern "C" {

size_t cublasLtGetVersion() { return 130000; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  if (enter("cublasLtCreate"))
    return internalError;
  *handle = new cublasLtContext;
  count("cuBLASLt", 1);
  return 0;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy(handle, "cublasLtDestroy", "cuBLASLt");
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                                        int computeType, int scaleType) {
  if (enter("cublasLtMatmulDescCreate", std::to_string(computeType)))
    return internalError;
  if (scaleType != CUDA_R_32F)
    return invalidValue;
  *desc = new cublasLtMatmulDescOpaque_t;
  (*desc)->computeType = computeType;
  count("matmul", 1);
  return 0;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return destroy(desc, "cublasLtMatmulDescDestroy", "matmul");
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              int attribute, const void *value,
                                              size_t bytes) {
  if (enter("cublasLtMatmulDescSetAttribute", std::to_string(attribute)))
    return internalError;
  bool isLong = attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER;
  if (bytes != (isLong ? 8 : 4))
    return invalidValue;
  desc->attributes[attribute] = readValue(value, bytes);
  return 0;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                          int type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  if (enter("cublasLtMatrixLayoutCreate",
            std::to_string(rows) + " x " + std::to_string(columns)))
    return internalError;
  if (leading < static_cast<int64_t>(rows))
    return invalidValue;
  *layout = new cublasLtMatrixLayoutOpaque_t;
  (*layout)->type = type;
  (*layout)->rows = rows;
  (*layout)->columns = columns;
  (*layout)->leading = leading;
  count("layout", 1);
  return 0;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout, "cublasLtMatrixLayoutDestroy", "layout");
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                int attribute,
                                                const void *value,
                                                size_t bytes) {
  if (enter("cublasLtMatrixLayoutSetAttribute", std::to_string(attribute)))
    return internalError;
  bool isBatch = attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
  if (bytes != (isBatch ? 4 : 8))
    return invalidValue;
  (isBatch ? layout->batch : layout->stride) = readValue(value, bytes);
  return 0;
}

cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref) {
  if (enter("cublasLtMatmulPreferenceCreate"))
    return internalError;
  *pref = new cublasLtMatmulPreferenceOpaque_t;
  count("preference", 1);
  return 0;
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref) {
  return destroy(pref, "cublasLtMatmulPreferenceDestroy", "preference");
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                     int attribute, const void *value,
                                     size_t bytes) {
  if (enter("cublasLtMatmulPreferenceSetAttribute", std::to_string(attribute)))
    return internalError;
  bool isWorkspace = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  if (bytes != (isWorkspace ? 8 : 4))
    return invalidValue;
  if (isWorkspace)
    pref->workspace = readValue(value, bytes);
  else
    pref->alignment = readValue(value, bytes);
  return 0;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t ld,
    cublasLtMatmulPreference_t pref, int requested,
    cublasLtMatmulHeuristicResult_t *results, int *returned) {
  *returned = 0;
  if (enter("cublasLtMatmulAlgoGetHeuristic"))
    return internalError;
  if (requested < 1)
    return invalidValue;
  if (!isSupported(*desc, *ld))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *returned = std::min<int>(requested, state().algorithms);
  for (int i = 0; i < *returned; ++i) {
    results[i] = {};
    results[i].algo.data[0] = pref->alignment;
    results[i].algo.data[1] = i;
    results[i].workspaceSize =
        std::min<uint64_t>(pref->workspace, state().workspaceBytes);
  }
  return 0;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                              const void *alpha, const void *a,
                              cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta,
                              const void *c, cublasLtMatrixLayout_t lc, void *d,
                              cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspaceBytes, CUstream stream) {
  int number = static_cast<int>(algo->data[1]);
  if (enter("cublasLtMatmul",
            std::to_string(ld->rows) + " x " + std::to_string(ld->columns) +
                (number > 0 ? ", algorithm " + std::to_string(number) : "")))
    return internalError;
  if (number != state().fastAlgorithm)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  auto isGood = [&](const void *data, const cublasLtMatrixLayoutOpaque_t &l) {
    auto address = reinterpret_cast<uintptr_t>(data);
    return address % algo->data[0] == 0 && isDevice(address, l.bytes());
  };
  // The bias or its gradient, of the library's m or n elements.
  uint64_t epilogue = desc->get(CUBLASLT_MATMUL_DESC_EPILOGUE);
  int64_t elements =
      epilogue == CUBLASLT_EPILOGUE_BGRADB ? ld->columns : ld->rows;
  if (hasVector(epilogue) &&
      !isDevice(desc->get(CUBLASLT_MATMUL_DESC_BIAS_POINTER),
                elements * (ld->type == CUDA_R_32F ? 4 : 2)))
    return invalidValue;
  if (*static_cast<const float *>(alpha) != 1 || c != d || lc != ld ||
      !isGood(a, *la) || !isGood(b, *lb) || !isGood(d, *ld) ||
      (workspaceBytes > 0 &&
       !isDevice(reinterpret_cast<uintptr_t>(workspace), workspaceBytes)))
    return invalidValue;
  float scale = *static_cast<const float *>(beta);
  return addWork(stream, [=, desc = *desc, la = *la, lb = *lb, ld = *ld] {
    if (state().isIdle)
      return;
    // Overwritten, so that a test fails if other data is there.
    if (workspaceBytes > 0)
      std::memset(workspace, 0xab, workspaceBytes);
    multiply(desc, a, la, b, lb, scale, d, ld);
  });
}

} // extern "C"
