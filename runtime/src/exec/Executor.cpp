//===- Executor.cpp - Runs a plan on virtual devices
//-----------------------===//

#include "shardc-rt/Executor.h"

#include "exec/PreparedProgram.h"
#include "exec/Shards.h"
#include "shardc-rt/Convert.h"

#include "absl/strings/str_cat.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>

using namespace shardc::rt;

const HostArray *RunResult::find(absl::string_view name) const {
  for (const auto &[key, array] : results)
    if (key == name)
      return &array;
  return nullptr;
}

namespace {
struct FreeArena {
  void operator()(char *arena) const { std::free(arena); }
};
} // namespace

struct Executor::Implementation {
  Implementation(Context &context, std::shared_ptr<const Plan> plan,
                 ExecutorOptions options)
      : context(context), plan(std::move(plan)), options(options) {}

  absl::Status allocate();
  absl::Status prepare();
  absl::Status checkInputs(const NamedArrays &inputs) const;
  void scatter(const TensorSpec &tensor, size_t index, ArrayView array,
               int64_t device);
  absl::StatusOr<HostArray> gather(DType dtype, const Sharding &sharding,
                                   const std::vector<int64_t> &shape,
                                   uint64_t offset) const;
  absl::StatusOr<size_t> findTensor(absl::string_view name) const;

  Context &context;
  std::shared_ptr<const Plan> plan;
  ExecutorOptions options;
  std::vector<std::unique_ptr<char, FreeArena>> arenas;
  std::unique_ptr<KernelLibrary> kernels;
  std::unique_ptr<Collectives> collectives = createInProcessCollectives();
  std::unique_ptr<DeviceSet> devices;
  std::vector<std::unique_ptr<PreparedProgram>> programs;
  /// By tensor, then device.
  std::vector<std::vector<Shard>> shards;
};

absl::Status Executor::Implementation::allocate() {
  uint64_t alignment = plan->alignment;
  // aligned_alloc wants a multiple of the alignment, which the compiler
  // already made the arena.
  uint64_t bytes = (plan->arenaBytes + alignment - 1) / alignment * alignment;
  for (int64_t device = 0; device < plan->mesh.numDevices(); ++device) {
    char *arena = static_cast<char *>(
        std::aligned_alloc(std::max<uint64_t>(alignment, sizeof(void *)),
                           std::max(bytes, alignment)));
    if (!arena)
      return absl::ResourceExhaustedError(absl::StrCat(
          "out of memory: cannot allocate ", plan->arenaBytes,
          " bytes for device ", device, " of ", plan->mesh.numDevices()));
    arenas.emplace_back(arena);
    std::memset(arena, options.poisonPadding ? 0xff : 0, bytes);
  }
  return absl::OkStatus();
}

absl::Status Executor::Implementation::prepare() {
  absl::StatusOr<std::unique_ptr<KernelLibrary>> loaded =
      KernelLibrary::load(*plan);
  if (!loaded.ok())
    return loaded.status();
  kernels = *std::move(loaded);

  const Mesh &mesh = plan->mesh;
  int axes = mesh.axes().size();
  devices.reset(new DeviceSet{*plan, *kernels, {}, {}, axes + 2});
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    devices->arenas.push_back(arenas[device].get());
    for (int axis = 0; axis < axes; ++axis)
      devices->contexts.push_back(mesh.coordinate(device, axis));
    devices->contexts.push_back(static_cast<int64_t>(options.seed));
    devices->contexts.push_back(0);
  }
  for (const ProgramSpec &spec : plan->programs) {
    absl::StatusOr<std::unique_ptr<PreparedProgram>> prepared =
        PreparedProgram::prepare(*devices, spec, *collectives,
                                 context.numThreads());
    if (!prepared.ok())
      return prepared.status();
    programs.push_back(*std::move(prepared));
  }
  for (const TensorSpec &tensor : plan->tensors) {
    std::vector<Shard> &ofTensor = shards.emplace_back();
    for (int64_t device = 0; device < mesh.numDevices(); ++device)
      ofTensor.push_back(shardOf(mesh, tensor.sharding, tensor.shape, device));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Executor>>
Executor::create(Context &context, std::shared_ptr<const Plan> plan,
                 ExecutorOptions options) {
  auto implementation =
      std::make_unique<Implementation>(context, std::move(plan), options);
  if (absl::Status status = implementation->allocate(); !status.ok())
    return status;
  if (absl::Status status = implementation->prepare(); !status.ok())
    return status;
  return std::unique_ptr<Executor>(new Executor(std::move(implementation)));
}

Executor::Executor(std::unique_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}

Executor::~Executor() = default;

const Plan &Executor::plan() const { return *implementation->plan; }

uint64_t Executor::allocatedBytesPerDevice() const {
  return implementation->plan->arenaBytes;
}

absl::StatusOr<size_t>
Executor::Implementation::findTensor(absl::string_view name) const {
  for (size_t i = 0; i < plan->tensors.size(); ++i)
    if (plan->tensors[i].name == name)
      return i;
  return absl::NotFoundError(
      absl::StrCat("the plan has no tensor \"", name, "\""));
}

void Executor::Implementation::scatter(const TensorSpec &tensor, size_t index,
                                       ArrayView array, int64_t device) {
  scatterShard(shards[index][device], tensor.dtype, tensor.shape, array.data,
               arenas[device].get() + tensor.offset);
}

/// Checks an array against the tensor it is for.
static absl::Status checkArray(const TensorSpec &tensor, ArrayView array) {
  if (array.dtype != tensor.dtype ||
      array.shape != absl::MakeSpan(tensor.shape))
    return absl::InvalidArgumentError(
        absl::StrCat(toString(tensor.role), " \"", tensor.name, "\" is ",
                     describe(tensor.dtype, tensor.shape), ", got ",
                     describe(array.dtype, array.shape)));
  return absl::OkStatus();
}

absl::Status Executor::initializeParameters() {
  Implementation &self = *implementation;
  for (size_t i = 0; i < self.plan->tensors.size(); ++i) {
    const TensorSpec &tensor = self.plan->tensors[i];
    if (tensor.role != Role::Parameter && tensor.role != Role::State)
      continue;
    for (size_t device = 0; device < self.arenas.size(); ++device) {
      char *local = self.arenas[device].get() + tensor.offset;
      const Shard &shard = self.shards[i][device];
      // Devices that hold the same shard copy the first one's.
      size_t same = 0;
      while (self.shards[i][same].start != shard.start)
        ++same;
      if (same < device) {
        std::memcpy(local, self.arenas[same].get() + tensor.offset,
                    tensor.bytes);
        continue;
      }
      if (self.options.poisonPadding)
        std::memset(local, 0xff, tensor.bytes);
      if (absl::Status status = initializeShard(
              tensor.initializer, self.options.seed, tensor.name, tensor.dtype,
              tensor.shape, shard.start, shard.valid, shard.local, local);
          !status.ok())
        return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::setTensor(absl::string_view name, ArrayView array) {
  absl::StatusOr<size_t> index = implementation->findTensor(name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = implementation->plan->tensors[*index];
  if (absl::Status status = checkArray(tensor, array); !status.ok())
    return status;
  for (size_t device = 0; device < implementation->arenas.size(); ++device)
    implementation->scatter(tensor, *index, array, device);
  return absl::OkStatus();
}

absl::StatusOr<HostArray>
Executor::Implementation::gather(DType dtype, const Sharding &sharding,
                                 const std::vector<int64_t> &shape,
                                 uint64_t offset) const {
  HostArray array(dtype, shape);
  const Mesh &mesh = plan->mesh;
  std::vector<bool> shardsOver(mesh.axes().size());
  for (const std::vector<int> &axes : sharding.dims)
    for (int axis : axes)
      shardsOver[axis] = true;
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    // Of devices that hold the same shard the first is enough.
    bool first = true;
    for (size_t axis = 0; axis < shardsOver.size(); ++axis)
      first &= shardsOver[axis] || mesh.coordinate(device, axis) == 0;
    if (first)
      gatherShard(shardOf(mesh, sharding, shape, device), dtype, shape,
                  arenas[device].get() + offset, array.data.data());
  }
  return array;
}

absl::StatusOr<HostArray> Executor::getTensor(absl::string_view name) const {
  absl::StatusOr<size_t> index = implementation->findTensor(name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = implementation->plan->tensors[*index];
  return implementation->gather(tensor.dtype, tensor.sharding, tensor.shape,
                                tensor.offset);
}

absl::Status
Executor::Implementation::checkInputs(const NamedArrays &inputs) const {
  size_t used = 0;
  for (const TensorSpec &tensor : plan->tensors) {
    if (tensor.role != Role::Input && tensor.role != Role::Label)
      continue;
    auto found = inputs.find(tensor.name);
    if (found == inputs.end())
      return absl::InvalidArgumentError(
          absl::StrCat(toString(tensor.role), " \"", tensor.name,
                       "\" is missing: ", describe(tensor.dtype, tensor.shape),
                       " expected"));
    if (absl::Status status = checkArray(tensor, found->second); !status.ok())
      return status;
    ++used;
  }
  if (used != inputs.size())
    for (const auto &[name, array] : inputs) {
      const TensorSpec *tensor = plan->findTensor(name);
      if (!tensor ||
          (tensor->role != Role::Input && tensor->role != Role::Label))
        return absl::InvalidArgumentError(
            absl::StrCat("the plan has no input \"", name, "\""));
    }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> Executor::run(absl::string_view name,
                                        const NamedArrays &inputs) {
  using Clock = std::chrono::steady_clock;
  Implementation &self = *implementation;
  PreparedProgram *program = nullptr;
  for (const std::unique_ptr<PreparedProgram> &candidate : self.programs)
    if (candidate->spec().name == name)
      program = candidate.get();
  if (!program)
    return absl::NotFoundError(
        absl::StrCat("the plan has no program \"", name, "\""));
  if (absl::Status status = self.checkInputs(inputs); !status.ok())
    return status;

  Clock::time_point start = Clock::now();
  PreparedProgram::Counters counters;
  WorkerPool &pool = self.context.workers();
  int64_t count = self.arenas.size();
  pool.run([&](int worker) {
    int64_t first = count * worker / pool.size();
    int64_t last = count * (worker + 1) / pool.size();
    for (size_t i = 0; i < self.plan->tensors.size(); ++i) {
      const TensorSpec &tensor = self.plan->tensors[i];
      if (tensor.role != Role::Input && tensor.role != Role::Label)
        continue;
      const ArrayView &array = inputs.find(tensor.name)->second;
      for (int64_t device = first; device < last; ++device)
        self.scatter(tensor, i, array, device);
    }
    pool.barrier();
    program->run(worker, pool, counters);
  });
  if (absl::Status status = program->takeError(); !status.ok())
    return status;

  RunResult result;
  result.loss = std::numeric_limits<double>::quiet_NaN();
  result.wireBytes = counters.wireBytes;
  result.communicationSeconds = counters.communicationSeconds;
  for (const ResultSpec &spec : program->spec().results) {
    const BufferSpec &buffer = program->spec().buffers[spec.buffer];
    absl::StatusOr<HostArray> array =
        self.gather(buffer.dtype, spec.sharding, spec.shape, buffer.offset);
    if (!array.ok())
      return array.status();
    if (spec.name == "loss" && spec.shape.empty()) {
      if (absl::StatusOr<HostArray> loss = convert(*array, DType::F64);
          loss.ok())
        result.loss = loss->values<double>()[0];
    }
    result.results.emplace_back(spec.name, *std::move(array));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}
