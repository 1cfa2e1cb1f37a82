//===- Gemm.cpp - Matrix products by cuBLASLt -----------------------------===//

#include "backends/cuda/Gemm.h"

#include "backends/cuda/CublasLtStatus.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::StatusOr<std::unique_ptr<GemmLibrary>>
GemmLibrary::create(const CublasLt &api, const cuda::Context &context) {
  if (absl::Status s = context.makeCurrent(); !s.ok())
    return s;
  std::unique_ptr<GemmLibrary> library(new GemmLibrary(api, context));
  if (absl::Status s = toStatus(api.create(&library->handle), "cublasLtCreate");
      !s.ok()) {
    library->handle = nullptr;
    return s;
  }
  return library;
}

GemmLibrary::~GemmLibrary() {
  if (!handle)
    return;
  (void)owner->makeCurrent();
  (void)lt->destroy(handle);
}

absl::StatusOr<std::unique_ptr<Gemm>>
Gemm::prepare(const GemmLibrary &library, const GemmCommand &command,
              DType dtype, CUdeviceptr bias, uint32_t alignment,
              uint64_t maxWorkspace) {
  std::unique_ptr<Gemm> gemm(new Gemm(library, command, dtype));
  if (absl::Status s = library.context().makeCurrent(); !s.ok())
    return s;
  if (absl::Status s = gemm->describe(); !s.ok())
    return s;
  if (absl::Status s = gemm->setBias(bias); !s.ok())
    return s;
  if (absl::Status s = gemm->choose(alignment, maxWorkspace); !s.ok())
    return s;
  return gemm;
}

Gemm::~Gemm() {
  const CublasLt &api = library->api();
  for (cublasLtMatrixLayout_t layout : {first, second, result})
    if (layout)
      (void)api.matrixLayoutDestroy(layout);
  if (product)
    (void)api.matmulDescDestroy(product);
}

absl::Status Gemm::check(cublasStatus_t status, absl::string_view call) const {
  return toStatus(status, absl::StrCat(call, " of a product m=", command.m,
                                       " n=", command.n, " k=", command.k,
                                       " batch=", command.batch));
}

static int dataType(DType dtype) {
  return dtype == DType::BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static int computeType(DType dtype, Precision precision) {
  if (dtype == DType::F32 && precision == Precision::TF32)
    return CUBLAS_COMPUTE_32F_FAST_TF32;
  if (dtype == DType::F32 && precision == Precision::BF16)
    return CUBLAS_COMPUTE_32F_FAST_16BF;
  return CUBLAS_COMPUTE_32F;
}

/// `rows` x `columns` of a row-major matrix, as the library sees it.
absl::Status Gemm::addLayout(cublasLtMatrixLayout_t &layout, int64_t rows,
                             int64_t columns) {
  const CublasLt &api = library->api();
  if (absl::Status s =
          check(api.matrixLayoutCreate(&layout, dataType(dtype), columns, rows,
                                       std::max<int64_t>(1, columns)),
                "cublasLtMatrixLayoutCreate");
      !s.ok()) {
    layout = nullptr;
    return s;
  }
  if (command.batch == 1)
    return absl::OkStatus();
  int32_t batch = static_cast<int32_t>(command.batch);
  int64_t stride = rows * columns;
  if (absl::Status s = check(api.matrixLayoutSetAttribute(
                                 layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                 &batch, sizeof(batch)),
                             "cublasLtMatrixLayoutSetAttribute");
      !s.ok())
    return s;
  return check(api.matrixLayoutSetAttribute(
                   layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                   sizeof(stride)),
               "cublasLtMatrixLayoutSetAttribute");
}

absl::Status Gemm::describe() {
  const CublasLt &api = library->api();
  if (absl::Status s = check(
          api.matmulDescCreate(&product, computeType(dtype, command.precision),
                               CUDA_R_32F),
          "cublasLtMatmulDescCreate");
      !s.ok()) {
    product = nullptr;
    return s;
  }
  int32_t transposeFirst = command.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N;
  int32_t transposeSecond = command.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N;
  bool isRelu = command.activation == Activation::Relu;
  uint32_t epilogue =
      command.bias >= 0
          ? (isRelu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
          : (isRelu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT);
  struct {
    int attribute;
    const void *value;
  } attributes[] = {{CUBLASLT_MATMUL_DESC_TRANSA, &transposeFirst},
                    {CUBLASLT_MATMUL_DESC_TRANSB, &transposeSecond},
                    {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue}};
  for (auto [attribute, value] : attributes)
    if (absl::Status s =
            check(api.matmulDescSetAttribute(product, attribute, value, 4),
                  "cublasLtMatmulDescSetAttribute");
        !s.ok())
      return s;
  if (absl::Status s =
          addLayout(first, command.transposeB ? command.n : command.k,
                    command.transposeB ? command.k : command.n);
      !s.ok())
    return s;
  if (absl::Status s =
          addLayout(second, command.transposeA ? command.k : command.m,
                    command.transposeA ? command.m : command.k);
      !s.ok())
    return s;
  return addLayout(result, command.m, command.n);
}

absl::Status Gemm::choose(uint32_t alignment, uint64_t maxWorkspace) {
  const CublasLt &api = library->api();
  cublasLtMatmulPreference_t preference = nullptr;
  if (absl::Status s = check(api.matmulPreferenceCreate(&preference),
                             "cublasLtMatmulPreferenceCreate");
      !s.ok())
    return s;
  absl::Status status =
      check(api.matmulPreferenceSetAttribute(
                preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                &maxWorkspace, sizeof(maxWorkspace)),
            "cublasLtMatmulPreferenceSetAttribute");
  for (int attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    if (status.ok())
      status = check(api.matmulPreferenceSetAttribute(
                         preference, attribute, &alignment, sizeof(alignment)),
                     "cublasLtMatmulPreferenceSetAttribute");
  int found = 0;
  if (status.ok())
    status = check(api.matmulAlgoGetHeuristic(library->get(), product, first,
                                              second, result, result,
                                              preference, 1, &choice, &found),
                   "cublasLtMatmulAlgoGetHeuristic");
  (void)api.matmulPreferenceDestroy(preference);
  if (status.ok() && found == 0)
    status = check(CUBLAS_STATUS_NOT_SUPPORTED,
                   "cublasLtMatmulAlgoGetHeuristic, which found nothing,");
  if (status.ok())
    status = check(choice.state, "cublasLtMatmulAlgoGetHeuristic");
  return status;
}

static void *pointer(CUdeviceptr address) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

absl::Status Gemm::setBias(CUdeviceptr bias) const {
  if (command.bias < 0)
    return absl::OkStatus();
  void *place = pointer(bias);
  return check(
      library->api().matmulDescSetAttribute(
          product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &place, sizeof(place)),
      "cublasLtMatmulDescSetAttribute");
}

absl::Status Gemm::issue(const GemmOperands &operands, CUdeviceptr workspace,
                         const Stream &stream) const {
  if (absl::Status s = setBias(operands.bias); !s.ok())
    return s;
  float alpha = 1, beta = command.accumulate ? 1 : 0;
  void *c = pointer(operands.c);
  return check(library->api().matmul(
                   library->get(), product, &alpha, pointer(operands.b), first,
                   pointer(operands.a), second, &beta, c, result, c, result,
                   &choice.algo, pointer(workspace), choice.workspaceSize,
                   stream.get()),
               "cublasLtMatmul");
}
