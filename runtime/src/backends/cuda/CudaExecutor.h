//===- CudaExecutor.h - Runs a plan on GPUs ---------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_CUDAEXECUTOR_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_CUDAEXECUTOR_H

#include "backends/cuda/LocalGpus.h"
#include "backends/cuda/PinnedMemory.h"
#include "backends/cuda/Program.h"
#include "backends/cuda/TraceRecorder.h"
#include "base/UsableCpus.h"
#include "exec/ParameterState.h"
#include "exec/ShardExchange.h"
#include "shardc-rt/Cuda.h"

#include <chrono>
#include <deque>

namespace shardc::rt::cuda {

/// The devices of the mesh that this process holds: all on one GPU, or one on
/// each of several. Members are destroyed from the last to the first: each may
/// use those before it.
class CudaExecutor : public Executor {
public:
  /// `local` are the numbers of this process's devices.
  CudaExecutor(std::shared_ptr<const Plan> plan, ExecutorOptions options,
               CudaOptions cudaOptions, std::vector<int64_t> local)
      : ownPlan(std::move(plan)), spec(ownPlan->spec()), options(options),
        cudaOptions(std::move(cudaOptions)), local(local),
        host(spec, std::move(local),
             std::min(findUsableCpus().count(), mostCopyThreads)),
        exchange(spec, store() ? store()->ranks().rank : 0,
                 store() ? store()->ranks().size : 1,
                 [this](const std::string &what, const std::string &mine) {
                   return store()->gatherAll(what, mine,
                                             this->cudaOptions.deadline);
                 }),
        parameters(spec) {}
  ~CudaExecutor() override;

  /// Opens libraries, allocates, compiles and captures.
  absl::Status load();

  const Plan &plan() const override { return *ownPlan; }
  uint64_t allocatedBytesPerDevice() const override { return spec.arenaBytes; }
  uint64_t allocatedBytes() const override;
  uint64_t scratchBytesPerDevice() const override {
    return gemmScratchBytes + collectives->scratchBytes() +
           devices[0].kernelContextBytes * kernelContexts + stagedBytes();
  }
  absl::Status initializeParameters() override;
  absl::Status setTensor(absl::string_view name, ArrayView array) override;
  absl::StatusOr<HostArray> getTensor(absl::string_view name) const override;
  absl::Status readShards(absl::string_view name,
                          ReadBytes visit) const override;
  absl::Status fillShards(absl::string_view name, FillPlaces fill) override;
  Store *store() const override { return cudaOptions.store; }
  std::vector<RowRange> rowsOf(absl::string_view name) const override;
  absl::Status submit(absl::string_view program,
                      const NamedArrays &inputs) override;
  absl::StatusOr<RunResult> await() override;
  int inFlight() const override { return running.size(); }
  int maxInFlight() const override { return numBatches; }
  absl::Status setTrace(Trace *trace) override;

  /// Seconds of each command of a program alone (Program::timeAlone); 0 for
  /// those that begin a loop. Nothing may be in flight. Parameters and states
  /// have no value afterwards if the program writes them. Unimplemented: the
  /// plan has a pipeline.
  absl::StatusOr<std::vector<double>> timeCommands(size_t program, int repeats);
  /// Bytes per second that a copy within the first GPU reads and writes.
  absl::StatusOr<double> measureCopies(uint64_t bytes, int repeats);
  /// Of all arenas of this process, as allocated.
  uint64_t allocatedArenaBytes() const;
  /// Memory of the first GPU that is in use, by any process.
  absl::StatusOr<uint64_t> usedGpuBytes() const;
  const std::string &gpuName() const {
    return hardware->gpus[0]->context->name();
  }

private:
  /// A tensor on a device.
  struct LocalShard {
    Shard shard;
    /// In the arena; none: the device's pipeline rank does not have it.
    std::optional<uint64_t> offset;
  };

  static constexpr int numBatches = 2;
  /// Some threads copy as fast as the memory of a host is.
  static constexpr int mostCopyThreads = 8;
  using Clock = std::chrono::steady_clock;

  /// The inputs and results of a run.
  struct Batch {
    BatchMemory memory;
    std::vector<Event> done;                ///< By GPU.
    std::vector<std::vector<Graph>> graphs; ///< By program, then GPU.
  };
  struct Running {
    int batch;
    size_t program;
    Clock::time_point start;
    /// With the rounding of parameters before it.
    std::vector<size_t> order = {};
    int32_t tracedRun = -1; ///< Negative: it is not recorded.
  };

  /// Of inputs on GPUs beside the arenas, of a device; rounded up.
  uint64_t stagedBytes() const;
  absl::Status loadAll();
  absl::Status allocateDevices();
  absl::Status addDevice(int64_t number, const Gpu &gpu);
  LocalShard shardOn(size_t tensor, const Device &device) const;
  const std::string &nameOf(size_t program) const {
    return spec.ranks()[0].programs[program].name;
  }
  absl::Status fillKernelContexts();
  absl::Status preparePrograms();
  absl::Status allocateBatches();
  absl::Status warmUp();
  absl::Status captureBatches();
  absl::Status stage(size_t program, const NamedArrays &inputs, Batch &batch);
  /// Fills in what `run` does not know yet, and launches it.
  absl::Status begin(Running &run);
  absl::Status issue(const Running &run);
  /// Until the run has ended on all GPUs.
  absl::Status waitFor(const Running &run);
  absl::StatusOr<RunResult> finish(const Running &run);
  /// Ends all work after an error, since no peer can continue, and tells the
  /// other processes. Returns `status`, with the rank in front of it.
  absl::Status fail(const absl::Status &status);
  /// Calls `fill` for each different shard of a tensor and copies the result to
  /// all devices that hold the shard.
  absl::Status
  write(size_t tensor,
        absl::FunctionRef<absl::Status(const Shard &, char *)> fill);

  /// The number of a tensor that has a value.
  absl::StatusOr<size_t> findReadable(absl::string_view name) const;
  /// Copies the shard of a tensor on a device of this process, by its number
  /// here, to `transfer`.
  absl::Status fetch(size_t tensor, size_t device) const;

  std::shared_ptr<const Plan> ownPlan;
  const PlanSpec &spec;
  const ExecutorOptions options;
  const CudaOptions cudaOptions;
  const std::vector<int64_t> local;
  const HostLayout host;
  const ShardExchange exchange;
  ParameterState parameters;
  std::unique_ptr<LocalGpus> hardware;
  std::vector<Device> devices;
  /// For tensors set and read between runs.
  PinnedMemory transfer;
  std::unique_ptr<DeviceCollectives> collectives;
  std::unique_ptr<GemmChoices> choices;
  std::unique_ptr<DeviceSet> set;
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<Batch> batches;
  std::unique_ptr<TraceRecorder> recorder; ///< Null: there is no trace.
  int nextBatch = 0;
  uint64_t gemmScratchBytes = 0; ///< Of a device.
  /// Of a device: the runs of the longest loop, or the microbatches.
  int64_t kernelContexts = 1;
  std::deque<Running> running;
  /// The first error, after which nothing can be run.
  absl::Status failure;
  /// By tensor, then device of this process.
  std::vector<std::vector<LocalShard>> shards;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_CUDAEXECUTOR_H
