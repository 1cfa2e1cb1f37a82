//===- Module.h - Kernels on a GPU ------------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_MODULE_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_MODULE_H

#include "backends/cuda/Owned.h"

#include "absl/types/span.h"

#include <string>
#include <vector>

namespace shardc::rt::cuda {

/// Code that a driver can load.
struct Code {
  const std::string &ptx;
  /// Made of the PTX for the GPU `chip`, such as "sm_90"; may be empty.
  absl::string_view cubin = {};
  absl::string_view chip = {};

  /// Whether a GPU, 90 for sm_90, can run the cubin: if it is of the same
  /// generation, and not older.
  bool hasCubinFor(int architecture) const;
};

/// Code that the driver has loaded, and the kernels asked for, by number.
class Module {
public:
  Module() = default;
  /// Loads the cubin if the GPU can run it, else lets the driver compile the
  /// PTX. The driver also compiles the PTX if it does not know the cubin
  /// because it is older than the toolkit that made it. DataLoss, with the
  /// compiler's log: the driver does not take the code or lacks a kernel.
  /// Unavailable: the GPU or the driver is too old for it. `what` names the
  /// code in errors.
  [[nodiscard]] static absl::StatusOr<Module>
  load(const Context &context, const Code &code,
       absl::Span<const std::string> kernels, absl::string_view what);

  CUfunction kernel(size_t index) const { return functions[index]; }

private:
  Owned<CUmodule, &Driver::moduleUnload> owned;
  std::vector<CUfunction> functions;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_MODULE_H
