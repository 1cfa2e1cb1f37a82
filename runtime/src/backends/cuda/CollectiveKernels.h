//===- CollectiveKernels.h - Copies and reductions of boxes -----*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_COLLECTIVEKERNELS_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_COLLECTIVEKERNELS_H

#include "backends/cuda/BoxTable.h"
#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/Module.h"
#include "backends/cuda/Stream.h"
#include "plan/PlanSpec.h"

namespace shardc::rt::cuda {

/// One launch that copies or reduces any number of boxes; it can be issued many
/// times. Borrows the kernel.
class BoxLaunch {
public:
  [[nodiscard]] absl::Status issue(const Stream &stream) const;
  /// Of the table, on the GPU.
  uint64_t bytes() const { return table.bytes(); }

private:
  friend class CollectiveKernels;

  CUfunction kernel = nullptr;
  const char *what = nullptr;
  DeviceMemory table;
  CUdeviceptr blockEntries = 0;
  uint32_t blocks = 0, operands = 0, results = 0;
};

/// The kernels of CollectivePtx.h on a GPU.
class CollectiveKernels {
public:
  /// `deadline` is that of copying a table.
  [[nodiscard]] static absl::StatusOr<CollectiveKernels>
  load(const Context &context, absl::Duration deadline);

  /// Boxes of one operand and equally many results.
  [[nodiscard]] absl::StatusOr<BoxLaunch>
  prepareCopies(absl::Span<const BoxReduction> boxes) const;
  /// Boxes of equally many operands and results. InvalidArgument: booleans
  /// cannot be summed, or too many operands.
  [[nodiscard]] absl::StatusOr<BoxLaunch>
  prepareReductions(DType dtype, Reduction reduction,
                    absl::Span<const BoxReduction> boxes) const;

private:
  explicit CollectiveKernels(Stream uploads) : uploads(std::move(uploads)) {}
  absl::StatusOr<BoxLaunch> prepare(const std::string &kernel, const char *what,
                                    uint64_t elementBytes,
                                    absl::Span<const BoxReduction> boxes) const;

  Module module;
  Stream uploads;
  absl::Duration deadline;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_COLLECTIVEKERNELS_H
