//===- LoadedPlan.h - A plan on the GPUs of this process --------*- C++ -*-===//
//
// All that is made when a plan is loaded: open libraries, memory, code,
// prepared GEMMs and collectives, graphs. Runs neither allocate nor compile.
// Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_LOADEDPLAN_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_LOADEDPLAN_H

#include "backends/cuda/LocalGpus.h"
#include "backends/cuda/PinnedMemory.h"
#include "backends/cuda/Program.h"
#include "exec/Shards.h"
#include "shardc-rt/Cuda.h"

namespace shardc::rt::cuda {

/// A tensor on a device.
struct LocalShard {
  Shard shard;
  /// In the arena; none: the device's pipeline rank does not have it.
  std::optional<uint64_t> offset;
};

/// The inputs and results of a run.
struct Batch {
  BatchMemory memory;
  std::vector<Event> done;                ///< By GPU.
  std::vector<std::vector<Graph>> graphs; ///< By program, then GPU.
};

/// For the devices of the mesh that this process holds: all on one GPU, or one
/// on each of several. Members are destroyed from the last to the first: each
/// may use those before it.
class LoadedPlan {
public:
  /// Batches, and so runs that may be in flight.
  static constexpr int numBatches = 2;

  /// `local` are the numbers of this process's devices. The plan and both
  /// options outlive this.
  LoadedPlan(const PlanSpec &spec, const ExecutorOptions &options,
             const CudaOptions &cudaOptions, std::vector<int64_t> local);

  /// Opens libraries, allocates, compiles and captures. After an error
  /// `collectives` may be there, connected with other processes.
  [[nodiscard]] absl::Status load();

  /// Of inputs on GPUs beside the arenas, of a device; rounded up.
  uint64_t stagedBytes() const;
  /// Beside the arena, of a device.
  uint64_t scratchBytesPerDevice() const {
    return gemmScratchBytes + collectives->scratchBytes() +
           devices[0].kernelContextBytes * kernelContexts + stagedBytes();
  }

private:
  const PlanSpec &spec;
  const ExecutorOptions &options;
  const CudaOptions &cudaOptions;

public:
  const std::vector<int64_t> local;
  const HostLayout host;
  std::unique_ptr<LocalGpus> hardware;
  std::vector<Device> devices;
  /// For tensors set and read between runs.
  PinnedMemory transfer;
  std::unique_ptr<DeviceCollectives> collectives;
  std::unique_ptr<GemmChoices> choices;
  std::unique_ptr<DeviceSet> set;
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<Batch> batches;
  /// By tensor, then device of this process.
  std::vector<std::vector<LocalShard>> shards;

private:
  absl::Status allocateDevices();
  absl::Status addDevice(int64_t number, const Gpu &gpu);
  LocalShard shardOn(size_t tensor, const Device &device) const;
  absl::Status fillKernelContexts();
  absl::Status preparePrograms();
  absl::Status allocateBatches();
  absl::Status warmUp();
  absl::Status captureBatches();

  uint64_t gemmScratchBytes = 0; ///< Of a device.
  /// Of a device: the runs of the longest loop, or the microbatches.
  int64_t kernelContexts = 1;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_LOADEDPLAN_H
