//===- Executor.cpp - Runs a plan on virtual devices
//-----------------------===//

#include "shardc-rt/Executor.h"

#include "exec/Arrays.h"
#include "exec/PreparedProgram.h"
#include "exec/Shards.h"

#include "absl/strings/str_cat.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

using namespace shardc::rt;

namespace {

struct FreeArena {
  void operator()(char *arena) const { std::free(arena); }
};

/// Runs a plan on virtual CPU devices.
class CpuExecutor : public Executor {
public:
  CpuExecutor(Context &context, std::shared_ptr<const Plan> plan,
              ExecutorOptions options)
      : context(context), ownPlan(std::move(plan)), options(options) {}

  absl::Status allocate();
  absl::Status prepare();

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
  int inFlight() const override { return result.has_value(); }
  int maxInFlight() const override { return 1; }

private:
  void scatter(const TensorSpec &tensor, size_t index, ArrayView array,
               int64_t device);
  HostArray gather(DType dtype, const Sharding &sharding,
                   const std::vector<int64_t> &shape, uint64_t offset) const;

  Context &context;
  std::shared_ptr<const Plan> ownPlan;
  ExecutorOptions options;
  std::vector<std::unique_ptr<char, FreeArena>> arenas;
  std::unique_ptr<KernelLibrary> kernels;
  std::unique_ptr<Collectives> collectives = createInProcessCollectives();
  std::unique_ptr<DeviceSet> devices;
  std::vector<std::unique_ptr<PreparedProgram>> programs;
  /// By tensor, then device.
  std::vector<std::vector<Shard>> shards;
  /// Of the run that has been submitted and not awaited.
  std::optional<RunResult> result;
};

} // namespace

absl::Status CpuExecutor::allocate() {
  uint64_t alignment = ownPlan->alignment;
  // aligned_alloc wants a multiple of the alignment, which the compiler
  // already made the arena.
  uint64_t bytes =
      (ownPlan->arenaBytes + alignment - 1) / alignment * alignment;
  for (int64_t device = 0; device < ownPlan->mesh.numDevices(); ++device) {
    char *arena = static_cast<char *>(
        std::aligned_alloc(std::max<uint64_t>(alignment, sizeof(void *)),
                           std::max(bytes, alignment)));
    if (!arena)
      return absl::ResourceExhaustedError(absl::StrCat(
          "out of memory: cannot allocate ", ownPlan->arenaBytes,
          " bytes for device ", device, " of ", ownPlan->mesh.numDevices()));
    arenas.emplace_back(arena);
    std::memset(arena, options.poisonPadding ? 0xff : 0, bytes);
  }
  return absl::OkStatus();
}

absl::Status CpuExecutor::prepare() {
  absl::StatusOr<std::unique_ptr<KernelLibrary>> loaded =
      KernelLibrary::load(*ownPlan);
  if (!loaded.ok())
    return loaded.status();
  kernels = *std::move(loaded);

  const Mesh &mesh = ownPlan->mesh;
  int axes = mesh.axes().size();
  devices.reset(new DeviceSet{*ownPlan, *kernels, {}, {}, axes + 2});
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    devices->arenas.push_back(arenas[device].get());
    for (int axis = 0; axis < axes; ++axis)
      devices->contexts.push_back(mesh.coordinate(device, axis));
    devices->contexts.push_back(static_cast<int64_t>(options.seed));
    devices->contexts.push_back(0);
  }
  for (const ProgramSpec &spec : ownPlan->programs) {
    absl::StatusOr<std::unique_ptr<PreparedProgram>> prepared =
        PreparedProgram::prepare(*devices, spec, *collectives,
                                 context.numThreads());
    if (!prepared.ok())
      return prepared.status();
    programs.push_back(*std::move(prepared));
  }
  for (const TensorSpec &tensor : ownPlan->tensors) {
    std::vector<Shard> &ofTensor = shards.emplace_back();
    for (int64_t device = 0; device < mesh.numDevices(); ++device)
      ofTensor.push_back(shardOf(mesh, tensor.sharding, tensor.shape, device));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Executor>>
Executor::create(Context &context, std::shared_ptr<const Plan> plan,
                 ExecutorOptions options) {
  auto executor =
      std::make_unique<CpuExecutor>(context, std::move(plan), options);
  if (absl::Status status = executor->allocate(); !status.ok())
    return status;
  if (absl::Status status = executor->prepare(); !status.ok())
    return status;
  return executor;
}

void CpuExecutor::scatter(const TensorSpec &tensor, size_t index,
                          ArrayView array, int64_t device) {
  scatterShard(shards[index][device], tensor.dtype, tensor.shape, array.data,
               arenas[device].get() + tensor.offset);
}

absl::Status CpuExecutor::initializeParameters() {
  for (size_t i = 0; i < ownPlan->tensors.size(); ++i) {
    const TensorSpec &tensor = ownPlan->tensors[i];
    if (tensor.role != Role::Parameter && tensor.role != Role::State)
      continue;
    for (size_t device = 0; device < arenas.size(); ++device) {
      char *local = arenas[device].get() + tensor.offset;
      const Shard &shard = shards[i][device];
      // Devices that hold the same shard copy the first one's.
      size_t same = 0;
      while (shards[i][same].start != shard.start)
        ++same;
      if (same < device) {
        std::memcpy(local, arenas[same].get() + tensor.offset, tensor.bytes);
        continue;
      }
      if (options.poisonPadding)
        std::memset(local, 0xff, tensor.bytes);
      if (absl::Status status = initializeShard(
              tensor.initializer, options.seed, tensor.name, tensor.dtype,
              tensor.shape, shard.start, shard.valid, shard.local, local);
          !status.ok())
        return status;
    }
  }
  return absl::OkStatus();
}

absl::Status CpuExecutor::setTensor(absl::string_view name, ArrayView array) {
  absl::StatusOr<size_t> index = findTensor(*ownPlan, name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = ownPlan->tensors[*index];
  if (absl::Status status = checkArray(tensor, array); !status.ok())
    return status;
  for (size_t device = 0; device < arenas.size(); ++device)
    scatter(tensor, *index, array, device);
  return absl::OkStatus();
}

HostArray CpuExecutor::gather(DType dtype, const Sharding &sharding,
                              const std::vector<int64_t> &shape,
                              uint64_t offset) const {
  HostArray array(dtype, shape);
  const Mesh &mesh = ownPlan->mesh;
  for (int64_t device : holdersOf(mesh, sharding))
    gatherShard(shardOf(mesh, sharding, shape, device), dtype, shape,
                arenas[device].get() + offset, array.data.data());
  return array;
}

absl::StatusOr<HostArray> CpuExecutor::getTensor(absl::string_view name) const {
  absl::StatusOr<size_t> index = findTensor(*ownPlan, name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = ownPlan->tensors[*index];
  return gather(tensor.dtype, tensor.sharding, tensor.shape, tensor.offset);
}

absl::StatusOr<RunResult> Executor::run(absl::string_view program,
                                        const NamedArrays &inputs) {
  if (inFlight() > 0)
    return absl::FailedPreconditionError(
        absl::StrCat("a run of \"", program, "\" while another is in flight"));
  if (absl::Status status = submit(program, inputs); !status.ok())
    return status;
  return await();
}

absl::StatusOr<RunResult> CpuExecutor::await() {
  if (!result)
    return absl::FailedPreconditionError("no run has been submitted");
  RunResult oldest = *std::move(result);
  result.reset();
  return oldest;
}

absl::Status CpuExecutor::submit(absl::string_view name,
                                 const NamedArrays &inputs) {
  using Clock = std::chrono::steady_clock;
  if (result)
    return absl::FailedPreconditionError("the run before was not awaited");
  PreparedProgram *program = nullptr;
  for (const std::unique_ptr<PreparedProgram> &candidate : programs)
    if (candidate->spec().name == name)
      program = candidate.get();
  if (!program)
    return absl::NotFoundError(
        absl::StrCat("the plan has no program \"", name, "\""));
  if (absl::Status status = checkInputs(*ownPlan, inputs); !status.ok())
    return status;

  Clock::time_point start = Clock::now();
  PreparedProgram::Counters counters;
  WorkerPool &pool = context.workers();
  int64_t count = arenas.size();
  pool.run([&](int worker) {
    int64_t first = count * worker / pool.size();
    int64_t last = count * (worker + 1) / pool.size();
    for (size_t i = 0; i < ownPlan->tensors.size(); ++i) {
      const TensorSpec &tensor = ownPlan->tensors[i];
      if (tensor.role != Role::Input && tensor.role != Role::Label)
        continue;
      const ArrayView &array = inputs.find(tensor.name)->second;
      for (int64_t device = first; device < last; ++device)
        scatter(tensor, i, array, device);
    }
    pool.barrier();
    program->run(worker, pool, counters);
  });
  if (absl::Status status = program->takeError(); !status.ok())
    return status;

  RunResult &result = this->result.emplace();
  result.wireBytes = counters.wireBytes;
  result.communicationSeconds = counters.communicationSeconds;
  for (const ResultSpec &spec : program->spec().results) {
    const BufferSpec &buffer = program->spec().buffers[spec.buffer];
    result.add(spec.name,
               gather(buffer.dtype, spec.sharding, spec.shape, buffer.offset));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return absl::OkStatus();
}
