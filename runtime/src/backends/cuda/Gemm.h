//===- Gemm.h - GEMMs by cuBLASLt -------------------------------*- C++ -*-===//
//
// The library takes matrices column by column, plans row by row. A row-major
// matrix is the column-major one of its transpose, so that c = op(a)·op(b) is
// given as cᵀ = op(b)ᵀ·op(a)ᵀ: the operands change places and nothing moves.
// The bias, one value per column of c, is one per row of cᵀ, as the library
// wants it. Sums of columns are the library's gradients of a bias: those of b,
// its first operand, are BGRADA, and those of a are BGRADB. It has them of a
// first operand that is not transposed and of a second one that is: of operands
// whose rows are along k.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_GEMM_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_GEMM_H

#include "backends/cuda/CublasLt.h"
#include "backends/cuda/GemmChoices.h"
#include "backends/cuda/Stream.h"
#include "plan/PlanSpec.h"

namespace shardc::rt::cuda {

/// A handle of the library for one GPU. Outlives the GEMMs made with it.
class GemmLibrary {
public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<GemmLibrary>>
  create(const CublasLt &api, const Context &context);
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary &) = delete;
  GemmLibrary &operator=(const GemmLibrary &) = delete;

  const CublasLt &api() const { return *lt; }
  const Context &context() const { return *owner; }
  cublasLtHandle_t get() const { return handle; }

private:
  GemmLibrary(const CublasLt &api, const Context &context)
      : lt(&api), owner(&context) {}

  const CublasLt *lt;
  const Context *owner;
  cublasLtHandle_t handle = nullptr;
};

/// A GEMM of a program, with the known alignment of its operands.
struct GemmRequest {
  uint32_t number; ///< Of the command.
  const GemmCommand *command;
  GemmTypes types;
  /// Of all operands, in bytes.
  uint32_t alignment;

  /// The key of an algorithm, as text.
  std::string name() const;
};

/// The request of command `number`, which is a GEMM.
GemmRequest gemmRequest(const ProgramSpec &program, uint32_t number);

/// The GEMMs of a program that the library computes, except those of no
/// elements.
std::vector<GemmRequest> gemmRequests(const ProgramSpec &program);

/// The buffer of the bias or of the sums of columns; a GEMM has at most one of
/// them. Negative: neither.
inline int64_t vectorOf(const GemmCommand &gemm) {
  return gemm.bias >= 0 ? gemm.bias : gemm.columnSums;
}

/// The addresses of a GEMM's operands, `vector` as `vectorOf`; 0: none.
struct GemmOperands {
  CUdeviceptr a, b, c, vector = 0;
};

/// The operands of `gemm`, with `address` giving the place of each buffer.
GemmOperands placesOf(const GemmCommand &gemm,
                      absl::FunctionRef<CUdeviceptr(uint32_t buffer)> address);

/// A GEMM with an algorithm: one that was timed, or else the first of the
/// library's heuristics. Not thread-safe: `issue` sets where the vector is.
class Gemm {
public:
  /// A GEMM of f32 or bf16, summed in f32, with m, n, k and batch at
  /// least 1. The algorithm is that of `choices`, which may be null, or takes
  /// at most `maxWorkspace` bytes. The vector has to be aligned as that of
  /// `operands` is. Unavailable: the library has none for it.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Gemm>>
  prepare(const GemmLibrary &library, const GemmRequest &request,
          const GemmOperands &operands, uint64_t maxWorkspace,
          const GemmChoices *choices);
  ~Gemm();
  Gemm(const Gemm &) = delete;
  Gemm &operator=(const Gemm &) = delete;

  /// Bytes of scratch memory that `issue` needs, aligned to 256.
  uint64_t workspaceBytes() const { return choice.workspaceBytes; }

  [[nodiscard]] absl::Status issue(const GemmOperands &operands,
                                   CUdeviceptr workspace,
                                   const Stream &stream) const;

  /// The fastest of the first algorithms that the heuristics name; `wait` waits
  /// for `stream`.
  [[nodiscard]] absl::StatusOr<GemmChoices::Choice>
  fastest(const GemmOperands &operands, CUdeviceptr workspace,
          uint64_t maxWorkspace, const Stream &stream,
          absl::FunctionRef<absl::Status()> wait);

private:
  Gemm(const GemmLibrary &library, const GemmRequest &request)
      : library(&library), command(*request.command), types(request.types),
        alignment(request.alignment) {}

  absl::Status describe();
  absl::Status setAttribute(int attribute, const void *value,
                            size_t bytes) const;
  absl::Status setPlace(const GemmOperands &operands) const;
  /// The first `number` algorithms of the heuristics; at least one.
  absl::StatusOr<std::vector<GemmChoices::Choice>>
  candidates(int number, uint64_t maxWorkspace) const;
  absl::Status addLayout(cublasLtMatrixLayout_t &layout, DType dtype,
                         int64_t rows, int64_t columns);
  absl::Status check(cublasStatus_t status, absl::string_view call) const;

  const GemmLibrary *library;
  const GemmCommand command;
  const GemmTypes types;
  const uint32_t alignment;
  cublasLtMatmulDesc_t descriptor = nullptr;
  /// Layouts of b, a and c in the library's order.
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  GemmChoices::Choice choice;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_GEMM_H
