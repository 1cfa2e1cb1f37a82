//===- CublasLt.cpp - The stand-in's libcublasLt --------------------------===//

#include "State.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

using namespace shardc::rt::test;

namespace {

constexpr cublasStatus_t invalidValue = 7, internalError = 14;

float loadValue(int type, const void *data, int64_t index) {
  if (type == CUDA_R_32F)
    return static_cast<const float *>(data)[index];
  uint32_t bits = uint32_t(static_cast<const uint16_t *>(data)[index]) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

void storeValue(int type, void *data, int64_t index, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float *>(data)[index] = value;
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  static_cast<uint16_t *>(data)[index] =
      std::isnan(value) ? 0x7fff : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

} // namespace

namespace shardc::rt::cuda {
struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t {
  int computeType = 0;
  std::map<int, uint64_t> attributes;
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

/// The sum over the columns of row `row`.
static float sumOf(const cublasLtMatrixLayoutOpaque_t &layout, const void *data,
                   int64_t row, int64_t columns) {
  float sum = 0;
  for (int64_t column = 0; column < columns; ++column)
    sum += loadValue(layout.type, data, column * layout.leading + row);
  return sum;
}

/// d = epilogue(a·b + beta·c) of column-major matrices.
static void multiply(const cublasLtMatmulDescOpaque_t &desc, const void *a,
                     const cublasLtMatrixLayoutOpaque_t &la, const void *b,
                     const cublasLtMatrixLayoutOpaque_t &lb, float beta,
                     void *d, const cublasLtMatrixLayoutOpaque_t &ld) {
  auto attribute = [&](int which, uint64_t otherwise) {
    auto found = desc.attributes.find(which);
    return found == desc.attributes.end() ? otherwise : found->second;
  };
  bool transA = attribute(CUBLASLT_MATMUL_DESC_TRANSA, 0) == CUBLAS_OP_T;
  bool transB = attribute(CUBLASLT_MATMUL_DESC_TRANSB, 0) == CUBLAS_OP_T;
  uint64_t epilogue =
      attribute(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  const void *bias = reinterpret_cast<const void *>(
      attribute(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 0));
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
          sum += loadValue(ld.type, bias, row);
        if (epilogue & CUBLASLT_EPILOGUE_RELU)
          sum = std::max(sum, 0.0f);
        storeValue(ld.type, d, at, sum);
      }
  // Sums over k of the first factor's rows, or of the second one's columns.
  void *sums = const_cast<void *>(bias);
  if (epilogue == CUBLASLT_EPILOGUE_BGRADA)
    for (int64_t row = 0; row < ld.rows; ++row)
      storeValue(ld.type, sums, row, sumOf(la, a, row, depth));
  if (epilogue == CUBLASLT_EPILOGUE_BGRADB)
    for (int64_t column = 0; column < ld.columns; ++column)
      storeValue(ld.type, sums, column, sumOf(lb, b, column, depth));
}

/// What the library has no algorithm for: gradients of a bias along rows that
/// are not contiguous, or of several products.
static bool isSupported(const cublasLtMatmulDescOpaque_t &desc,
                        const cublasLtMatrixLayoutOpaque_t &ld) {
  auto is = [&](int which, uint64_t value) {
    auto found = desc.attributes.find(which);
    return found != desc.attributes.end() && found->second == value;
  };
  if (is(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADA))
    return ld.batch == 1 && !is(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  if (is(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB))
    return ld.batch == 1 && is(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
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
  if (bytes != (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? 8 : 4))
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
  auto value = [&](int which) {
    auto found = desc->attributes.find(which);
    return found == desc->attributes.end() ? 0 : found->second;
  };
  // The bias or its gradient, of the library's m or n elements.
  uint64_t epilogue = value(CUBLASLT_MATMUL_DESC_EPILOGUE);
  int64_t elements =
      epilogue == CUBLASLT_EPILOGUE_BGRADB ? ld->columns : ld->rows;
  bool hasVector =
      epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADA |
                  CUBLASLT_EPILOGUE_BGRADB);
  if (hasVector && !isDevice(value(CUBLASLT_MATMUL_DESC_BIAS_POINTER),
                             elements * (ld->type == CUDA_R_32F ? 4 : 2)))
    return invalidValue;
  if (*static_cast<const float *>(alpha) != 1 || c != d || lc != ld ||
      !isGood(a, *la) || !isGood(b, *lb) || !isGood(d, *ld) ||
      (workspaceBytes > 0 &&
       !isDevice(reinterpret_cast<uintptr_t>(workspace), workspaceBytes)))
    return invalidValue;
  float scale = *static_cast<const float *>(beta);
  return addWork(stream, [=, desc = *desc, la = *la, lb = *lb, ld = *ld] {
    // Whoever has something there learns of it.
    if (workspaceBytes > 0)
      std::memset(workspace, 0xab, workspaceBytes);
    multiply(desc, a, la, b, lb, scale, d, ld);
  });
}

} // extern "C"
