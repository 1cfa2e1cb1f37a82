//===- MatmulPrimitive.h - oneDNN's matmul with an epilogue -----*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_MATMULPRIMITIVE_H
#define SHARDC_RT_SRC_BACKENDS_CPU_MATMULPRIMITIVE_H

#include "shardc-rt/DType.h"

#include "absl/status/statusor.h"

#include <memory>
#include <oneapi/dnnl/dnnl.h>

namespace shardc::rt {

/// One matrix product c = relu?(a·b + bias? + c?) of fixed, positive sizes, the
/// last term if it accumulates. Strides are in elements; rows of c are
/// `cStride` apart.
struct MatmulShape {
  int64_t m, n, k;
  int64_t aStrides[2];
  int64_t bStrides[2];
  int64_t cStride;
  bool hasBias, accumulate, relu;
  DType dtype;
};

/// A matmul primitive of oneDNN, its epilogue fused. Runs on the calling
/// thread; thread-safe: scratch memory is the call's own.
class MatmulPrimitive {
public:
  /// Unimplemented if oneDNN has no such product on this CPU.
  static absl::StatusOr<std::unique_ptr<MatmulPrimitive>>
  create(const MatmulShape &shape);
  ~MatmulPrimitive();

  /// ResourceExhausted or Internal if oneDNN fails.
  [[nodiscard]] absl::Status run(const void *a, const void *b, const void *bias,
                                 void *c) const;

private:
  MatmulPrimitive() = default;

  dnnl_engine_t engine = nullptr;
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_desc_t a, b, bias, c, scratchpad;
  size_t scratchpadBytes = 0;
  bool hasBias = false;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_MATMULPRIMITIVE_H
