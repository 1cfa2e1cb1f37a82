//===- Gemm.cpp - GEMMs by cuBLASLt ---------------------------------------===//

#include "backends/cuda/Gemm.h"

#include "backends/cuda/CublasLtStatus.h"
#include "backends/cuda/TimeIssued.h"

#include <limits>

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
Gemm::prepare(const GemmLibrary &library, const GemmRequest &request,
              const GemmOperands &operands, uint64_t maxWorkspace,
              const GemmChoices *choices) {
  std::unique_ptr<Gemm> gemm(new Gemm(library, request));
  if (absl::Status s = library.context().makeCurrent(); !s.ok())
    return s;
  if (absl::Status s = gemm->describe(); !s.ok())
    return s;
  if (absl::Status s = gemm->setPlace(operands); !s.ok())
    return s;
  if (choices)
    if (auto timed = choices->find(request.name());
        timed && timed->workspaceBytes <= maxWorkspace) {
      gemm->choice = *timed;
      return gemm;
    }
  absl::StatusOr<std::vector<GemmChoices::Choice>> found =
      gemm->candidates(1, maxWorkspace);
  if (!found.ok())
    return found.status();
  gemm->choice = found->front();
  return gemm;
}

Gemm::~Gemm() {
  const CublasLt &api = library->api();
  for (cublasLtMatrixLayout_t layout : {first, second, result})
    if (layout)
      (void)api.matrixLayoutDestroy(layout);
  if (descriptor)
    (void)api.matmulDescDestroy(descriptor);
}

absl::Status Gemm::check(cublasStatus_t status, absl::string_view call) const {
  return toStatus(status, absl::StrCat(call, " of a GEMM m=", command.m,
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
absl::Status Gemm::addLayout(cublasLtMatrixLayout_t &layout, DType dtype,
                             int64_t rows, int64_t columns) {
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

static uint32_t epilogueOf(const GemmCommand &command) {
  bool hasBias = command.bias >= 0, hasSums = command.columnSums >= 0;
  if (command.activation == Activation::Relu)
    return hasBias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  if (hasSums)
    return command.columnSumsOf == Summed::A ? CUBLASLT_EPILOGUE_BGRADB
                                             : CUBLASLT_EPILOGUE_BGRADA;
  return hasBias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

absl::Status Gemm::setAttribute(int attribute, const void *value,
                                size_t bytes) const {
  return check(library->api().matmulDescSetAttribute(descriptor, attribute,
                                                     value, bytes),
               "cublasLtMatmulDescSetAttribute");
}

absl::Status Gemm::describe() {
  const CublasLt &api = library->api();
  if (absl::Status s =
          check(api.matmulDescCreate(
                    &descriptor, computeType(types.factors, command.precision),
                    CUDA_R_32F),
                "cublasLtMatmulDescCreate");
      !s.ok()) {
    descriptor = nullptr;
    return s;
  }
  int32_t transposeFirst = command.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N;
  int32_t transposeSecond = command.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N;
  uint32_t epilogue = epilogueOf(command);
  struct {
    int attribute;
    const void *value;
  } attributes[] = {{CUBLASLT_MATMUL_DESC_TRANSA, &transposeFirst},
                    {CUBLASLT_MATMUL_DESC_TRANSB, &transposeSecond},
                    {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue}};
  for (auto [attribute, value] : attributes)
    if (absl::Status s = setAttribute(attribute, value, 4); !s.ok())
      return s;
  if (absl::Status s = addLayout(first, types.factors,
                                 command.transposeB ? command.n : command.k,
                                 command.transposeB ? command.k : command.n);
      !s.ok())
    return s;
  if (absl::Status s = addLayout(second, types.factors,
                                 command.transposeA ? command.k : command.m,
                                 command.transposeA ? command.m : command.k);
      !s.ok())
    return s;
  return addLayout(result, types.result, command.m, command.n);
}

absl::StatusOr<std::vector<GemmChoices::Choice>>
Gemm::candidates(int number, uint64_t maxWorkspace) const {
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
  std::vector<cublasLtMatmulHeuristicResult_t> results(number);
  int found = 0;
  if (status.ok())
    status = check(api.matmulAlgoGetHeuristic(
                       library->get(), descriptor, first, second, result,
                       result, preference, number, results.data(), &found),
                   "cublasLtMatmulAlgoGetHeuristic");
  (void)api.matmulPreferenceDestroy(preference);
  if (status.ok() && found == 0)
    status = check(CUBLAS_STATUS_NOT_SUPPORTED,
                   "cublasLtMatmulAlgoGetHeuristic, which found nothing,");
  if (status.ok())
    status = check(results[0].state, "cublasLtMatmulAlgoGetHeuristic");
  if (!status.ok())
    return status;
  std::vector<GemmChoices::Choice> usable;
  for (int i = 0; i < found; ++i)
    if (results[i].state == CUBLAS_STATUS_SUCCESS)
      usable.push_back({results[i].algo, results[i].workspaceSize});
  return usable;
}

absl::StatusOr<GemmChoices::Choice>
Gemm::fastest(const GemmOperands &operands, CUdeviceptr workspace,
              uint64_t maxWorkspace, const Stream &stream,
              absl::FunctionRef<absl::Status()> wait) {
  constexpr int number = 8, repeats = 5;
  absl::StatusOr<std::vector<GemmChoices::Choice>> all =
      candidates(number, maxWorkspace);
  if (!all.ok())
    return all.status();
  GemmChoices::Choice best = all->front();
  double least = std::numeric_limits<double>::infinity();
  for (const GemmChoices::Choice &candidate : *all) {
    choice = candidate;
    absl::StatusOr<double> taken = timeIssued(
        repeats, [&] { return issue(operands, workspace, stream); }, wait);
    if (!taken.ok())
      return taken.status();
    if (*taken < least) {
      least = *taken;
      best = candidate;
    }
  }
  return best;
}

static void *pointer(CUdeviceptr address) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

absl::Status Gemm::setPlace(const GemmOperands &operands) const {
  if (vectorOf(command) < 0)
    return absl::OkStatus();
  void *vector = pointer(operands.vector);
  return setAttribute(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector,
                      sizeof(vector));
}

absl::Status Gemm::issue(const GemmOperands &operands, CUdeviceptr workspace,
                         const Stream &stream) const {
  if (absl::Status s = setPlace(operands); !s.ok())
    return s;
  float alpha = 1, beta = command.accumulate ? 1 : 0;
  void *c = pointer(operands.c);
  return check(library->api().matmul(
                   library->get(), descriptor, &alpha, pointer(operands.b),
                   first, pointer(operands.a), second, &beta, c, result, c,
                   result, &choice.algorithm, pointer(workspace),
                   choice.workspaceBytes, stream.get()),
               "cublasLtMatmul");
}
