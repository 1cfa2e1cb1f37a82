//===- CudaExecutor.h - Runs a plan on GPUs ---------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_CUDAEXECUTOR_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_CUDAEXECUTOR_H

#include "backends/cuda/LoadedPlan.h"
#include "backends/cuda/TraceRecorder.h"
#include "exec/ParameterState.h"
#include "exec/ShardExchange.h"
#include "shardc-rt/Cuda.h"

#include <chrono>
#include <deque>

namespace shardc::rt::cuda {

/// Runs a plan on the devices of the mesh that this process holds. Members are
/// destroyed from the last to the first: each may use those before it.
class CudaExecutor : public Executor {
public:
  /// `local` are the numbers of this process's devices.
  CudaExecutor(std::shared_ptr<const Plan> plan, ExecutorOptions options,
               CudaOptions cudaOptions, std::vector<int64_t> local)
      : ownPlan(std::move(plan)), spec(ownPlan->spec()), options(options),
        cudaOptions(std::move(cudaOptions)),
        exchange(spec, store() ? store()->ranks().rank : 0,
                 store() ? store()->ranks().size : 1,
                 [this](const std::string &what, const std::string &mine) {
                   return store()->gatherAll(what, mine,
                                             this->cudaOptions.deadline);
                 }),
        parameters(spec),
        loaded(spec, this->options, this->cudaOptions, std::move(local)) {}
  ~CudaExecutor() override;

  /// Opens libraries, allocates, compiles and captures.
  absl::Status load();

  const Plan &plan() const override { return *ownPlan; }
  uint64_t allocatedBytesPerDevice() const override { return spec.arenaBytes; }
  uint64_t allocatedBytes() const override;
  uint64_t scratchBytesPerDevice() const override {
    return loaded.scratchBytesPerDevice();
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
  int maxInFlight() const override { return LoadedPlan::numBatches; }
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
    return loaded.hardware->gpus[0]->context->name();
  }

private:
  using Clock = std::chrono::steady_clock;

  struct Running {
    int batch;
    size_t program;
    Clock::time_point start;
    /// With the rounding of parameters before it.
    std::vector<size_t> order = {};
    int32_t tracedRun = -1; ///< Negative: it is not recorded.
  };

  const std::string &nameOf(size_t program) const {
    return spec.ranks()[0].programs[program].name;
  }
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
  const ShardExchange exchange;
  ParameterState parameters;
  LoadedPlan loaded;
  std::unique_ptr<TraceRecorder> recorder; ///< Null: there is no trace.
  int nextBatch = 0;
  std::deque<Running> running;
  /// The first error, after which nothing can be run.
  absl::Status failure;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_CUDAEXECUTOR_H
