//===- StagedInputs.h - The inputs of a batch on a GPU ----------*- C++ -*-===//
//
// The inputs of a run are copied to its GPU, beside the arenas, while the GPU
// still works on the run before; the run takes them from there.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_STAGEDINPUTS_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_STAGEDINPUTS_H

#include "backends/cuda/Device.h"
#include "backends/cuda/HostLayout.h"
#include "backends/cuda/PinnedMemory.h"

namespace shardc::rt::cuda {

/// What the devices on one GPU read of one batch. Not thread-safe.
class StagedInputs {
public:
  /// For those of `devices` that are on `gpu`. The memory is zero when
  /// `gpu.main` gets there.
  [[nodiscard]] static absl::StatusOr<StagedInputs>
  create(const Gpu &gpu, const HostLayout &host,
         const std::vector<Device> &devices);

  uint64_t bytes() const { return memory.bytes(); }

  /// The address of what lies at `offset` in the host's batch.
  CUdeviceptr address(uint64_t offset) const {
    return memory.address() + places.at(offset);
  }

  /// Copies the shards of input `input` from the host's batch, on
  /// `gpu.uploads`.
  [[nodiscard]] absl::Status copy(size_t input, const char *batch) const;

  /// Lets `gpu.main` wait for the copies so far.
  [[nodiscard]] absl::Status join() const;

private:
  const Gpu *gpu = nullptr;
  const HostLayout *host = nullptr;
  DeviceMemory memory;
  std::unique_ptr<Event> copied;
  /// From offsets in the host's batch to those in `memory`.
  std::map<uint64_t, uint64_t> places;
  /// Bytes that are one behind the other in both memories.
  struct Run {
    uint64_t offset; ///< In the host's batch.
    uint64_t bytes;
  };
  /// By input.
  std::vector<std::vector<Run>> runs;
};

/// Where a run has its inputs and results: on the host, and by GPU.
struct BatchMemory {
  PinnedMemory host;
  std::vector<StagedInputs> staged;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_STAGEDINPUTS_H
