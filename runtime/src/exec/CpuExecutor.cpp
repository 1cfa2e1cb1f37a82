//===- CpuExecutor.cpp - Runs a plan on virtual CPU devices ---------------===//

#include "exec/CpuExecutor.h"
#include "exec/DescribeSteps.h"

#include "base/Memory.h"
#include "comm/Transport.h"
#include "exec/Arrays.h"
#include "exec/DescribeSteps.h"
#include "exec/ParameterState.h"
#include "exec/PlanProperties.h"
#include "exec/PreparedProgram.h"
#include "exec/ShardExchange.h"
#include "exec/Shards.h"
#include "init/Initialization.h"
#include "shardc-rt/Processes.h"

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

using namespace shardc::rt;

namespace {

/// The mean durations of the first runs of a program. The very first one also
/// makes memory ready: it does not count once there are others.
class MeanTimes {
public:
  /// Whether the next run is to be measured, which costs some time.
  bool needsMore() const { return runs < 6; }
  /// Adds those of a run.
  void add(const PipelineTimes &times);
  /// Empty before the first run.
  std::optional<PipelineTimes> mean() const;

private:
  int64_t runs = 0; ///< In `sums`, but for the first if there are others.
  PipelineTimes sums;
};

/// Runs a plan on virtual CPU devices.
class CpuExecutor : public Executor {
public:
  CpuExecutor(Context &context, std::shared_ptr<const Plan> plan,
              ExecutorOptions options, Transport *transport,
              std::unique_ptr<Collectives> collectives)
      : context(context), ownPlan(std::move(plan)), spec(ownPlan->spec()),
        options(options), processes(spec, transport),
        local(devicesOfProcess(spec.mesh.numDevices(), rank(), numProcesses())),
        exchange(spec, rank(), numProcesses(),
                 [this](const std::string &what, const std::string &mine) {
                   return gatherAll(what, mine);
                 }),
        collectives(std::move(collectives)), shards(spec.tensors.size()),
        parameters(spec) {}

  /// Whether all processes run the same.
  absl::Status compareProcesses();

  absl::Status allocate();
  absl::Status prepare();

  const Plan &plan() const override { return *ownPlan; }
  uint64_t allocatedBytesPerDevice() const override { return spec.arenaBytes; }
  uint64_t allocatedBytes() const override { return bytesOfAll; }
  absl::Status initializeParameters() override;
  absl::Status setTensor(absl::string_view name, ArrayView array) override;
  absl::StatusOr<HostArray> getTensor(absl::string_view name) const override;
  absl::Status readTensor(absl::string_view name, void *out) const override;
  absl::Status readShards(absl::string_view name,
                          ReadBytes visit) const override;
  absl::Status fillShards(absl::string_view name, FillPlaces fill) override;
  Store *store() const override {
    return options.processes ? &options.processes->store() : nullptr;
  }
  std::vector<RowRange> rowsOf(absl::string_view name) const override;
  absl::Status submit(absl::string_view program,
                      const NamedArrays &inputs) override;
  absl::StatusOr<RunResult> await() override;
  std::string describeRun() const override;
  int inFlight() const override { return result.has_value(); }
  int maxInFlight() const override { return 1; }
  std::optional<PipelineBubble>
  pipelineBubble(absl::string_view program) const override;
  absl::Status setTrace(Trace *trace) override;

private:
  int rank() const { return processes.own(); }
  int numProcesses() const { return processes.size(); }
  void addRank(size_t rank, char *place);
  void giveInputs(size_t program, const NamedArrays &inputs);
  /// What all processes pass, by process; errors say `what` it was for.
  absl::StatusOr<std::vector<std::string>> gatherAll(const std::string &what,
                                                     const std::string &mine);

  /// Allocated in this process.
  uint64_t localBytes() const;
  /// Finds what is allocated in all.
  absl::Status addUpBytes();
  /// Those of a program in all processes, of which this one measured `own`.
  absl::StatusOr<PipelineTimes> timesOfAll(size_t program, PipelineTimes own);
  /// Notes that a run of a program failed midway; returns `error`.
  absl::Status fail(size_t program, const PreparedProgram::Counters &counters,
                    const absl::Status &error);

  /// A shard and its address.
  struct LocalShard {
    Shard shard;
    char *data;
  };

  /// A result of a program on a rank, and its shards in this process.
  struct LocalResult {
    size_t rank;
    const ResultSpec &spec;
    DType dtype;
    std::vector<LocalShard> shards;
  };

  /// The shards of an array that devices of a rank hold, each once;
  /// `offsetOn(device)` is the offset of a device's.
  template <typename OffsetOn>
  std::vector<LocalShard> shardsOn(size_t rank, const Sharding &sharding,
                                   const std::vector<int64_t> &shape,
                                   OffsetOn offsetOn) const;
  void findResults(size_t program);
  absl::Status readResults(size_t program, RunResult &result) const;

  Context &context;
  Trace *trace = nullptr;
  /// The first error between processes, after which nothing can be run.
  absl::Status failure;
  std::shared_ptr<const Plan> ownPlan;
  const PlanSpec &spec;
  ExecutorOptions options;
  const DeviceProcesses processes;
  /// The devices of this process.
  const DeviceRange local;
  const ShardExchange exchange;
  /// By program, if there is a pipeline.
  std::vector<PipelineOrder> orders;
  /// By pipeline rank, one if there is none: its layout, and its devices.
  std::vector<ArenaLayout> layouts;
  std::vector<DeviceSet> ranks;
  uint64_t bytesOfAll = 0; ///< Allocated in all processes.
  Memory memory;
  /// For packed factors of GEMMs; programs run one after the other.
  Memory packed;
  std::unique_ptr<KernelLibrary> kernels;
  std::unique_ptr<Collectives> collectives;
  std::vector<std::unique_ptr<PreparedProgram>> programs;
  /// By program, if there is a pipeline.
  std::vector<MeanTimes> times;
  /// By tensor, every copy of every shard.
  std::vector<std::vector<LocalShard>> shards;
  /// By program.
  std::vector<std::vector<LocalResult>> results;
  ParameterState parameters;
  /// The program that runs; null: none.
  std::atomic<const PreparedProgram *> running{nullptr};
  /// Of the run that has been submitted and not awaited.
  std::optional<RunResult> result;
};

} // namespace

/// Applies `change` to each time of `times` and the same one of `other`.
template <typename Change>
static void changeAll(PipelineTimes &times, const PipelineTimes &other,
                      Change change) {
  auto changeEach = [&](std::vector<double> &own,
                        const std::vector<double> &others) {
    for (size_t i = 0; i < own.size(); ++i)
      change(own[i], others[i]);
  };
  for (size_t rank = 0; rank < times.tasks.size(); ++rank)
    changeEach(times.tasks[rank], other.tasks[rank]);
  changeEach(times.messages, other.messages);
}

void MeanTimes::add(const PipelineTimes &times) {
  if (++runs <= 2)
    sums = times;
  else
    changeAll(sums, times, [](double &sum, double time) { sum += time; });
}

std::optional<PipelineTimes> MeanTimes::mean() const {
  if (runs == 0)
    return std::nullopt;
  PipelineTimes mean = sums;
  double count = std::max<int64_t>(1, runs - 1);
  changeAll(mean, sums, [&](double &time, double) { time /= count; });
  return mean;
}

uint64_t CpuExecutor::localBytes() const {
  uint64_t bytes = 0;
  for (const ArenaLayout &layout : layouts)
    bytes += layout.bytes();
  return bytes;
}

absl::StatusOr<std::vector<std::string>>
CpuExecutor::gatherAll(const std::string &what, const std::string &mine) {
  absl::StatusOr<std::vector<std::string>> all =
      processes.transport()->gatherAll(mine);
  if (all.ok())
    return all;
  return absl::Status(all.status().code(), absl::StrCat(all.status().message(),
                                                        " (while ", what, ")"));
}

absl::Status CpuExecutor::addUpBytes() {
  bytesOfAll = localBytes();
  if (numProcesses() == 1)
    return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> all =
      processes.transport()->gatherAll(absl::StrCat(bytesOfAll));
  if (!all.ok())
    return all.status();
  bytesOfAll = 0;
  for (const std::string &bytes : *all)
    bytesOfAll += std::strtoull(bytes.c_str(), nullptr, 10);
  return absl::OkStatus();
}

absl::Status CpuExecutor::compareProcesses() {
  if (numProcesses() == 1)
    return absl::OkStatus();
  // Each finds this by itself: one that waited for the others could learn it as
  // the failure of one of them, and would say that, too.
  if (spec.mesh.numDevices() < numProcesses())
    return absl::InvalidArgumentError(absl::StrCat(
        "the mesh ", spec.mesh.toString(), " has ", spec.mesh.numDevices(),
        " devices, fewer than the ", numProcesses(),
        " processes: start no more processes than devices"));
  std::vector<RankProperty> properties = propertiesOf(spec, options.seed);
  if (!options.shareReplicas)
    properties.push_back({"unshared replicas", "unshared replicas"});
  if (options.poisonPadding)
    properties.push_back({"poisoned padding", "poisoned padding"});
  absl::StatusOr<std::vector<std::string>> all =
      processes.transport()->gatherAll(formatProperties(properties));
  if (!all.ok())
    return all.status();
  if (absl::Status status = toStatus(findDifferences(*all)); !status.ok())
    return status;
  return absl::OkStatus();
}

absl::Status CpuExecutor::allocate() {
  for (size_t program = 0;
       spec.pipeline && program < spec.ranks()[0].programs.size(); ++program) {
    absl::StatusOr<PipelineOrder> order = orderPipeline(spec, program);
    if (!order.ok())
      return order.status();
    orders.push_back(*std::move(order));
  }
  absl::StatusOr<std::vector<ArenaLayout>> made = ArenaLayout::create(
      spec,
      {options.shareReplicas, options.orderedSums, rank(), numProcesses()},
      orders);
  if (!made.ok())
    return made.status();
  layouts = *std::move(made);
  // Processes of one host read each other's operands in place, unless the user
  // wants messages.
  const char *messages = std::getenv("SHARDC_MESSAGES");
  const bool isSeen = processes.transport() &&
                      processes.transport()->isOnOneHost() &&
                      !(messages && std::strcmp(messages, "1") == 0);
  // Layouts are made of aligned copies, so that each ends aligned.
  if (!(isSeen ? memory.allocateVisible(localBytes())
               : memory.allocate(localBytes())))
    return absl::ResourceExhaustedError(absl::StrCat(
        "out of memory: cannot allocate ", localBytes(), " bytes for ",
        local.size(), " devices of ", spec.arenaBytes, " bytes each"));
  if (options.poisonPadding)
    std::memset(memory.get(), 0xff, localBytes());
  return addUpBytes();
}

absl::Status CpuExecutor::prepare() {
  absl::StatusOr<std::unique_ptr<KernelLibrary>> loaded =
      KernelLibrary::load(spec, options.cpuTarget);
  if (!loaded.ok())
    return loaded.status();
  kernels = *std::move(loaded);

  collectives->useMemory(memory);
  char *place = memory.get();
  for (size_t rank = 0; rank < layouts.size(); ++rank) {
    addRank(rank, place);
    place += layouts[rank].bytes();
  }
  for (size_t program = 0; program < spec.ranks()[0].programs.size();
       ++program) {
    absl::StatusOr<std::unique_ptr<PreparedProgram>> prepared =
        PreparedProgram::prepare(
            spec, ranks, program, spec.pipeline ? &orders[program] : nullptr,
            *collectives, processes, MicroKernels::upTo(options.cpuTarget),
            context.numThreads());
    if (!prepared.ok())
      return prepared.status();
    programs.push_back(*std::move(prepared));
    findResults(program);
  }
  uint64_t packedBytes = 0;
  for (const std::unique_ptr<PreparedProgram> &program : programs)
    packedBytes = std::max(packedBytes, program->packedBytes());
  if (!packed.allocate(packedBytes))
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory: cannot allocate ", packedBytes,
                     " bytes for packed factors of GEMMs"));
  for (const std::unique_ptr<PreparedProgram> &program : programs)
    program->bindPacked(packed.get());
  times.resize(orders.size());
  return absl::OkStatus();
}

/// How long a message between processes is in flight nobody can tell, since its
/// receiver may have waited for the sender: it takes as long as estimated.
absl::StatusOr<PipelineTimes> CpuExecutor::timesOfAll(size_t program,
                                                      PipelineTimes own) {
  if (numProcesses() == 1)
    return own;
  std::string mine;
  auto append = [&](const std::vector<double> &seconds) {
    mine.append(reinterpret_cast<const char *>(seconds.data()),
                seconds.size() * sizeof(double));
  };
  absl::c_for_each(own.tasks, append);
  append(own.messages);
  absl::StatusOr<std::vector<std::string>> all =
      gatherAll("comparing times", mine);
  if (!all.ok())
    return all.status();
  for (const std::string &bytes : *all) {
    size_t at = 0;
    auto takeMax = [&](std::vector<double> &seconds) {
      for (double &of : seconds) {
        double other;
        std::memcpy(&other, bytes.data() + at, sizeof(other));
        of = std::max(of, other);
        at += sizeof(other);
      }
    };
    absl::c_for_each(own.tasks, takeMax);
    takeMax(own.messages);
  }
  PipelineTimes estimated = estimatedTimes(spec, program);
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (const Command &command : spec.ranks()[rank].programs[program].commands)
      if (auto *send = std::get_if<SendCommand>(&command.operation);
          send && processes.cross(rank, send->peer))
        own.messages[send->message] = estimated.messages[send->message];
  return own;
}

std::optional<PipelineBubble>
CpuExecutor::pipelineBubble(absl::string_view name) const {
  absl::StatusOr<size_t> number = findProgram(spec, name);
  if (!number.ok() || times.empty())
    return std::nullopt;
  std::optional<PipelineTimes> measured = times[*number].mean();
  if (!measured)
    return std::nullopt;
  absl::StatusOr<PipelineOrder> replayed =
      orderPipeline(spec, *number, *measured);
  if (!replayed.ok())
    return std::nullopt;
  return PipelineBubble{orders[*number].bubble, orders[*number].seconds,
                        replayed->bubble, replayed->seconds};
}

/// The devices of a rank, whose arenas are at `place`, and their shards.
void CpuExecutor::addRank(size_t rank, char *place) {
  const PlanSpec &own = spec.ranks()[rank];
  int axes = spec.mesh.axes().size();
  DeviceSet &devices = ranks.emplace_back(
      DeviceSet{own, *kernels, layouts[rank], place, {}, axes + 2});
  for (int64_t device = 0; device < own.mesh.numDevices(); ++device) {
    for (int axis = 0; axis < axes; ++axis)
      devices.contexts.push_back(
          spec.mesh.coordinate(spec.deviceOf(rank, device), axis));
    devices.contexts.push_back(static_cast<int64_t>(options.seed));
    devices.contexts.push_back(0);
  }
  // The tensors of a rank are in the order of the plan's.
  size_t global = 0;
  for (size_t i = 0; i < own.tensors.size(); ++i) {
    const TensorSpec &tensor = own.tensors[i];
    while (spec.tensors[global].name != tensor.name)
      ++global;
    for (int64_t device : layouts[rank].holdersOfTensor(i))
      shards[global].push_back(
          {shardOf(own.mesh, tensor.sharding, tensor.shape, device),
           place + layouts[rank].offsetOfTensor(i, device)});
  }
}

absl::StatusOr<std::unique_ptr<Executor>> shardc::rt::createCpuExecutor(
    Context &context, std::shared_ptr<const Plan> plan, ExecutorOptions options,
    Transport *transport, std::unique_ptr<Collectives> collectives) {
  if (!plan)
    return absl::InvalidArgumentError("no plan: the pointer is null");
  auto executor = std::make_unique<CpuExecutor>(
      context, std::move(plan), options, transport, std::move(collectives));
  if (absl::Status status = executor->compareProcesses(); !status.ok())
    return status;
  if (absl::Status status = executor->allocate(); !status.ok())
    return status;
  if (absl::Status status = executor->prepare(); !status.ok())
    return status;
  return executor;
}

absl::Status CpuExecutor::initializeParameters() {
  Initialization initialization(
      spec, options, [&](int64_t tasks, absl::FunctionRef<void(int64_t)> task) {
        context.workers().forEach(tasks, /*atOnce=*/1, task);
      });
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorSpec &tensor = spec.tensors[i];
    if (tensor.role != Role::Parameter && tensor.role != Role::State)
      continue;
    std::map<std::vector<int64_t>, const char *> done; // by start
    for (const LocalShard &local : shards[i]) {
      // Devices that hold the same shard copy the first one's.
      auto [same, isNew] = done.emplace(local.shard.start, local.data);
      if (!isNew) {
        std::memcpy(local.data, same->second, tensor.bytes);
        continue;
      }
      if (options.poisonPadding)
        std::memset(local.data, 0xff, tensor.bytes);
      if (absl::Status status =
              initialization.fill(tensor, local.shard.start, local.shard.valid,
                                  local.shard.local, local.data);
          !status.ok())
        return status;
    }
    parameters.noteWrite(i);
  }
  return absl::OkStatus();
}

absl::Status CpuExecutor::setTensor(absl::string_view name, ArrayView array) {
  absl::StatusOr<size_t> index = findTensor(spec, name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = spec.tensors[*index];
  if (absl::Status status = checkArray(tensor, array); !status.ok())
    return status;
  for (const LocalShard &local : shards[*index])
    scatterShard(local.shard, tensor.dtype, tensor.shape, array.data,
                 local.data);
  parameters.noteWrite(*index);
  return absl::OkStatus();
}

template <typename OffsetOn>
std::vector<CpuExecutor::LocalShard>
CpuExecutor::shardsOn(size_t rank, const Sharding &sharding,
                      const std::vector<int64_t> &shape,
                      OffsetOn offsetOn) const {
  const Mesh &mesh = ranks[rank].plan.mesh;
  std::vector<LocalShard> found;
  for (int64_t device : holdersOf(mesh, sharding, layouts[rank].devices()))
    found.push_back({shardOf(mesh, sharding, shape, device),
                     ranks[rank].memory + offsetOn(device)});
  return found;
}

void CpuExecutor::findResults(size_t program) {
  std::vector<LocalResult> &found = results.emplace_back();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const ProgramSpec &own = ranks[rank].plan.programs[program];
    for (const ResultSpec &result : own.results)
      found.push_back(
          {rank, result, own.buffers[result.buffer].dtype,
           shardsOn(rank, result.sharding, result.shape, [&](int64_t device) {
             return layouts[rank].offsetOf(program, result.buffer, device);
           })});
  }
}

/// Adds the results that a run has left in the arenas.
absl::Status CpuExecutor::readResults(size_t program, RunResult &result) const {
  for (const LocalResult &local : results[program]) {
    const ResultSpec &global = local.spec;
    HostArray array(local.dtype, global.shape);
    for (const LocalShard &shard : local.shards)
      gatherShard(shard.shard, local.dtype, global.shape, shard.data,
                  array.data.data());
    if (absl::Status status =
            exchange.complete(global.name, local.rank, global.sharding, array);
        !status.ok())
      return status;
    result.add(global.name, std::move(array));
  }
  return absl::OkStatus();
}

absl::Status CpuExecutor::readTensor(absl::string_view name, void *out) const {
  absl::StatusOr<size_t> index = findTensor(spec, name);
  if (!index.ok())
    return index.status();
  if (absl::Status status = checkRoom(name, out); !status.ok())
    return status;
  if (absl::Status status = parameters.check(*index); !status.ok())
    return status;
  // Ranks that hold a tensor hold the same.
  for (size_t rank = 0;; ++rank)
    if (const TensorSpec *tensor = ranks[rank].plan.findTensor(name)) {
      size_t own = tensor - ranks[rank].plan.tensors.data();
      for (const LocalShard &local :
           shardsOn(rank, tensor->sharding, tensor->shape, [&](int64_t device) {
             return layouts[rank].offsetOfTensor(own, device);
           }))
        gatherShard(local.shard, tensor->dtype, tensor->shape, local.data, out);
      return exchange.complete(tensor->name, rank, tensor->sharding,
                               tensor->dtype, tensor->shape, out);
    }
}

absl::Status CpuExecutor::readShards(absl::string_view name,
                                     ReadBytes visit) const {
  absl::StatusOr<size_t> index = findTensor(spec, name);
  if (!index.ok())
    return index.status();
  if (absl::Status status = parameters.check(*index); !status.ok())
    return status;
  const int rank = spec.firstRankWith(*index);
  const PlanSpec &own = spec.ranks()[rank];
  const int64_t number = own.numberOf(*index);
  const TensorSpec &tensor = own.tensors[number];
  for (int64_t device : holdersOf(own.mesh, tensor.sharding)) {
    if (!local.contains(spec.deviceOf(rank, device)))
      continue;
    const char *data =
        ranks[rank].memory + layouts[rank].offsetOfTensor(number, device);
    forEachRun(shardOf(own.mesh, tensor.sharding, tensor.shape, device),
               tensor.dtype, tensor.shape,
               [&](int64_t from, int64_t to, int64_t bytes) {
                 visit(from, data + to, bytes);
               });
  }
  return absl::OkStatus();
}

absl::Status CpuExecutor::fillShards(absl::string_view name, FillPlaces fill) {
  absl::StatusOr<size_t> index = findPersistent(spec, name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = spec.tensors[*index];
  std::map<std::vector<int64_t>, const char *> first; // by start
  std::vector<ShardPlace> places;
  for (const LocalShard &local : shards[*index])
    if (first.emplace(local.shard.start, local.data).second)
      places.push_back({local.shard, local.data});
  absl::Status status = fill(places);
  if (!status.ok()) {
    parameters.noteLoss(*index);
    return status;
  }
  // Devices that hold the same shard copy the first one's.
  for (const LocalShard &local : shards[*index])
    if (const char *filled = first.at(local.shard.start); filled != local.data)
      std::memcpy(local.data, filled, tensor.bytes);
  parameters.noteWrite(*index);
  return status;
}

std::vector<RowRange> CpuExecutor::rowsOf(absl::string_view name) const {
  absl::StatusOr<size_t> index = findTensor(spec, name);
  if (!index.ok())
    return Executor::rowsOf(name);
  return rowsOfShards([&](absl::FunctionRef<void(const Shard &)> visit) {
    for (const LocalShard &local : shards[*index])
      visit(local.shard);
  });
}

absl::StatusOr<HostArray> CpuExecutor::getTensor(absl::string_view name) const {
  absl::StatusOr<size_t> index = findTensor(spec, name);
  if (!index.ok())
    return index.status();
  HostArray array(spec.tensors[*index].dtype, spec.tensors[*index].shape);
  absl::Status status = readTensor(name, array.data.data());
  return status.ok() ? absl::StatusOr<HostArray>(std::move(array)) : status;
}

absl::Status CpuExecutor::setTrace(Trace *trace) {
  if (trace) {
    Trace::State &state = trace->internals();
    state.plan = describePlan(spec);
    std::vector<TracedProgram> described;
    for (const std::unique_ptr<PreparedProgram> &program : programs)
      described.push_back(program->describe(spec));
    std::vector<TracedWorker> workers;
    for (int worker = 0; worker < context.numThreads(); ++worker)
      workers.push_back({absl::StrCat("worker ", worker)});
    if (absl::Status status =
            state.open(std::move(described), std::move(workers), spec.mesh);
        !status.ok())
      return status;
  }
  this->trace = trace;
  return absl::OkStatus();
}

absl::StatusOr<RunResult> CpuExecutor::await() {
  if (!result)
    return absl::FailedPreconditionError("no run has been submitted");
  RunResult oldest = *std::move(result);
  result.reset();
  return oldest;
}

absl::Status CpuExecutor::fail(size_t program,
                               const PreparedProgram::Counters &counters,
                               const absl::Status &error) {
  if (counters.trace)
    counters.trace->endRun(counters.tracedRun, /*failed=*/true);
  parameters.noteFailure(program,
                         absl::StrCat("failed midway (", error.message(), ")"));
  // Nobody knows any more which messages others wait for.
  if (processes.transport()) {
    failure = error;
    if (store())
      store()->fail(error);
  }
  return error;
}

std::string CpuExecutor::describeRun() const {
  const PreparedProgram *program = running;
  return program ? program->describeProgress(spec, context.workers()) : "";
}

/// Each array as it is, or its shards to the devices.
void CpuExecutor::giveInputs(size_t program, const NamedArrays &inputs) {
  absl::InlinedVector<std::pair<size_t, const void *>, 4> copied;
  uint64_t bytes = 0;
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorSpec &tensor = spec.tensors[i];
    if (!spec.takes(program, i))
      continue;
    const void *array = inputs.find(tensor.name)->second.data;
    const int64_t width = byteSize(tensor.dtype);
    if (programs[program]->readInPlace(i, array, width))
      continue;
    copied.push_back({i, array});
    bytes += numElements(tensor.shape) * width;
  }
  if (copied.empty())
    return;
  // Neighbouring devices together, as in the steps; a few of them at once, if
  // they get little.
  const int64_t atOnce =
      std::max<int64_t>(1, local.size() * (uint64_t(1) << 16) / (bytes + 1));
  context.workers().forEach(local.size(), atOnce, [&](int64_t device) {
    for (auto [i, array] : copied) {
      const TensorSpec &tensor = spec.tensors[i];
      TaskRange range(shards[i].size(), device, local.size());
      for (int64_t one = range.begin; one < range.end; ++one)
        scatterShard(shards[i][one].shard, tensor.dtype, tensor.shape, array,
                     shards[i][one].data);
    }
  });
}

absl::Status CpuExecutor::submit(absl::string_view name,
                                 const NamedArrays &inputs) {
  using Clock = std::chrono::steady_clock;
  if (!failure.ok())
    return failure;
  if (result)
    return absl::FailedPreconditionError("the run before was not awaited");
  absl::StatusOr<size_t> number = findProgram(spec, name);
  if (!number.ok())
    return number.status();
  PreparedProgram &program = *programs[*number];
  if (absl::Status status = checkInputs(spec, *number, inputs); !status.ok())
    return status;
  if (absl::Status status = parameters.checkAll(); !status.ok())
    return status;

  Clock::time_point start = Clock::now();
  PreparedProgram::Counters counters(spec);
  counters.measures = !times.empty() && times[*number].needsMore();
  if (trace && trace->isRecording()) {
    counters.trace = &trace->internals();
    counters.tracedRun = counters.trace->beginRun(*number);
  }
  WorkerPool &pool = context.workers();
  std::optional<size_t> rounding = parameters.takeRounding();
  Clock::time_point scattering, scattered;
  running = &program;
  if (rounding) {
    programs[*rounding]->run(pool, counters);
    if (absl::Status error = programs[*rounding]->takeError(); !error.ok()) {
      running = nullptr;
      return fail(*number, counters, error);
    }
  }
  scattering = Clock::now();
  giveInputs(*number, inputs);
  scattered = Clock::now();
  program.run(pool, counters);
  running = nullptr;
  Clock::time_point gathering = Clock::now();
  if (absl::Status error = program.takeError(); !error.ok())
    return fail(*number, counters, error);

  if (counters.measures) {
    absl::StatusOr<PipelineTimes> measured =
        timesOfAll(*number, program.timesOf(counters));
    if (!measured.ok())
      return fail(*number, counters, measured.status());
    times[*number].add(*measured);
  }
  RunResult &result = this->result.emplace();
  result.wireBytes = *absl::c_max_element(counters.wireBytes);
  result.communicationSeconds = counters.communicationSeconds;
  if (absl::Status status = readResults(*number, result); !status.ok()) {
    this->result.reset();
    return fail(*number, counters, status);
  }
  Clock::time_point end = Clock::now();
  result.seconds = std::chrono::duration<double>(end - start).count();
  if (counters.trace) {
    counters.trace->endRun(counters.tracedRun, /*failed=*/false);
    trace->add("inputs and results", "inputs to devices", scattering,
               scattered);
    trace->add("inputs and results", "results from devices", gathering, end);
  }
  return absl::OkStatus();
}
