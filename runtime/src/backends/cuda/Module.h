//===- Module.h - Kernels on a GPU ------------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_MODULE_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_MODULE_H

#include "backends/cuda/Owned.h"

#include "absl/types/span.h"

#include <string>
#include <vector>

namespace shardc::rt::cuda {

/// PTX that the driver has compiled, and the kernels asked for, by number.
class Module {
public:
  Module() = default;
  /// DataLoss, with the compiler's log: the driver does not take the code or
  /// lacks a kernel. Unavailable: the GPU or the driver is too old for it.
  /// `what` names the code in errors.
  [[nodiscard]] static absl::StatusOr<Module>
  load(const Context &context, const std::string &ptx,
       absl::Span<const std::string> kernels, absl::string_view what);

  CUfunction kernel(size_t index) const { return functions[index]; }

private:
  Owned<CUmodule, &Driver::moduleUnload> owned;
  std::vector<CUfunction> functions;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_MODULE_H
