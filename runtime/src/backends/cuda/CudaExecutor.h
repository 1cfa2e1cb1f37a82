//===- CudaExecutor.h - Runs a plan on a GPU --------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_CUDAEXECUTOR_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_CUDAEXECUTOR_H

#include "backends/cuda/PinnedMemory.h"
#include "backends/cuda/Program.h"
#include "shardc-rt/Cuda.h"

#include <chrono>
#include <deque>

namespace shardc::rt::cuda {

/// All devices of the mesh on one GPU. Members are destroyed from the last to
/// the first: what needs something stands behind it.
class CudaExecutor : public Executor {
public:
  CudaExecutor(std::shared_ptr<const Plan> plan, ExecutorOptions options,
               CudaOptions cudaOptions)
      : ownPlan(std::move(plan)), options(options),
        cudaOptions(std::move(cudaOptions)), host(*ownPlan) {}
  ~CudaExecutor() override;

  /// Opens libraries, allocates, compiles and captures.
  absl::Status load();

  const Plan &plan() const override { return *ownPlan; }
  uint64_t allocatedBytesPerDevice() const override {
    return ownPlan->arenaBytes;
  }
  absl::Status initializeParameters() override;
  absl::Status setTensor(absl::string_view name, ArrayView array) override;
  absl::StatusOr<HostArray> getTensor(absl::string_view name) const override;
  absl::Status submit(absl::string_view program,
                      const NamedArrays &inputs) override;
  absl::StatusOr<RunResult> await() override;
  int inFlight() const override { return running.size(); }
  int maxInFlight() const override { return numBatches; }

private:
  static constexpr int numBatches = 2;
  using Clock = std::chrono::steady_clock;

  /// A batch on the host and what runs with it.
  struct Batch {
    PinnedMemory memory;
    std::unique_ptr<Event> done;
    std::vector<Graph> graphs; ///< By program.
  };
  struct Running {
    int batch;
    size_t program;
    Clock::time_point start;
  };

  absl::Status openLibraries();
  absl::Status allocateDevices();
  absl::Status fillKernelContexts();
  absl::Status preparePrograms();
  absl::Status allocateBatches();
  absl::Status warmUp();
  absl::Status captureBatches();
  /// Copies what `fill` writes for each different shard of a tensor to all
  /// devices that hold it.
  absl::Status
  write(size_t tensor,
        absl::FunctionRef<absl::Status(const Shard &, char *)> fill);
  /// Until what `main` has been given is done.
  absl::Status waitForCopies(absl::string_view what) const;

  std::shared_ptr<const Plan> ownPlan;
  const ExecutorOptions options;
  const CudaOptions cudaOptions;
  const HostLayout host;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<CublasLt> cublasLt;
  std::unique_ptr<Context> context;
  std::unique_ptr<Stream> main;
  std::unique_ptr<Event> copied;
  std::vector<Device> devices;
  /// For tensors set and read between runs.
  PinnedMemory transfer;
  Module kernels;
  std::unique_ptr<GemmLibrary> gemms;
  std::unique_ptr<DeviceCollectives> collectives;
  std::unique_ptr<DeviceSet> set;
  std::vector<std::unique_ptr<Program>> programs;
  /// Of matrix products, by device.
  std::vector<DeviceMemory> workspaces;
  std::vector<Batch> batches;
  int nextBatch = 0;
  std::deque<Running> running;
  /// By tensor, then device.
  std::vector<std::vector<Shard>> shards;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_CUDAEXECUTOR_H
