//===- CudaExecutor.cpp - Runs a plan on GPUs -----------------------------===//

#include "backends/cuda/CudaExecutor.h"

#include "backends/cuda/MeasureGpu.h"
#include "base/UsableCpus.h"
#include "exec/Arrays.h"
#include "exec/DescribeSteps.h"
#include "exec/Shards.h"
#include "exec/WorkerPool.h"
#include "init/Initialization.h"

#include "absl/strings/match.h"
#include "absl/time/clock.h"

#include <algorithm>
#include <set>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

/// Running work uses memory that is freed here. After a failure it may never
/// end.
CudaExecutor::~CudaExecutor() {
  absl::Time end =
      absl::Now() + (failure.ok() ? cudaOptions.deadline : absl::Seconds(2));
  for (const Running &run : running)
    for (const Event &done : loaded.batches[run.batch].done)
      (void)done.wait(end - absl::Now(), "ending a run");
}

absl::Status CudaExecutor::fail(const absl::Status &status) {
  if (status.ok() || !failure.ok())
    return status;
  failure = status;
  for (const Running &run : running)
    if (recorder && run.tracedRun >= 0)
      recorder->fail(run.tracedRun, &run == &running.front());
  if (loaded.collectives)
    loaded.collectives->abort();
  if (!cudaOptions.store)
    return status;
  const Ranks &ranks = cudaOptions.store->ranks();
  // The other processes learn the reason from the one that failed.
  cudaOptions.store->fail(status);
  std::string prefix = absl::StrCat("rank ", ranks.rank, " of ", ranks.size);
  return absl::StartsWith(status.message(), prefix)
             ? status
             : absl::Status(status.code(),
                            absl::StrCat(prefix, ": ", status.message()));
}

absl::Status CudaExecutor::load() { return fail(loaded.load()); }

/// The devices of the mesh that this process holds: each process has the same
/// number, in the order of ranks.
static absl::StatusOr<std::vector<int64_t>>
devicesOf(const PlanSpec &plan, const CudaOptions &options) {
  int64_t all = plan.mesh.numDevices();
  int64_t ranks = options.store ? options.store->ranks().size : 1;
  int64_t rank = options.store ? options.store->ranks().rank : 0;
  if (all % ranks != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("the mesh ", plan.mesh.toString(), " has ", all,
                     all == 1 ? " device" : " devices", ", of which ", ranks,
                     " processes cannot hold as many each"));
  int64_t held = all / ranks;
  bool isVirtual = !options.store && options.gpus == 1;
  if (options.gpus != held && !isVirtual)
    return absl::InvalidArgumentError(absl::StrCat(
        "this process holds ", held, " of the ", all, " devices of the mesh ",
        plan.mesh.toString(), ", and ", options.gpus, " GPUs: one each",
        options.store ? "" : ", or one for all,", " expected"));
  std::vector<int64_t> devices;
  for (int64_t device = rank * held; device < (rank + 1) * held; ++device)
    devices.push_back(device);
  return devices;
}

absl::StatusOr<std::unique_ptr<Executor>>
shardc::rt::createCudaExecutor(std::shared_ptr<const Plan> plan,
                               ExecutorOptions options,
                               CudaOptions cudaOptions) {
  if (!plan)
    return absl::InvalidArgumentError("no plan: the pointer is null");
  if (!plan->isForGpu())
    return absl::UnavailableError(
        absl::StrCat("the plan is for CPUs (", plan->target(),
                     "), and these devices are GPUs: compile the model with "
                     "--target=cuda:sm_90, or what they are"));
  absl::StatusOr<std::vector<int64_t>> local =
      devicesOf(plan->spec(), cudaOptions);
  if (!local.ok())
    return local.status();
  auto executor = std::make_unique<CudaExecutor>(
      std::move(plan), options, std::move(cudaOptions), *std::move(local));
  if (absl::Status s = executor->load(); !s.ok())
    return s;
  return executor;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

absl::Status CudaExecutor::initializeParameters() {
  if (!failure.ok())
    return failure;
  // Several processes may share the CPUs, one for each GPU.
  constexpr int most = 16;
  WorkerPool workers(std::min<int>(findUsableCpus().count(), most));
  Initialization initialization(
      spec, options, [&](int64_t tasks, absl::FunctionRef<void(int64_t)> task) {
        workers.forEach(tasks, /*atOnce=*/1, task);
      });
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorSpec &tensor = spec.tensors[i];
    if (tensor.role != Role::Parameter && tensor.role != Role::State)
      continue;
    if (absl::Status s = write(i,
                               [&](const Shard &shard, char *local) {
                                 return initialization.fill(tensor, shard.start,
                                                            shard.valid,
                                                            shard.local, local);
                               });
        !s.ok())
      return fail(s);
  }
  return absl::OkStatus();
}

absl::Status CudaExecutor::setTensor(absl::string_view name, ArrayView array) {
  absl::StatusOr<size_t> index = findTensor(spec, name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = spec.tensors[*index];
  if (absl::Status s = checkArray(tensor, array); !s.ok())
    return s;
  if (!failure.ok())
    return failure;
  return fail(write(*index, [&](const Shard &shard, char *local) {
    scatterShard(shard, tensor.dtype, tensor.shape, array.data, local);
    return absl::OkStatus();
  }));
}

absl::Status CudaExecutor::write(
    size_t tensor,
    absl::FunctionRef<absl::Status(const Shard &, char *)> fill) {
  const TensorSpec &written = spec.tensors[tensor];
  parameters.noteWrite(tensor);
  if (written.bytes == 0)
    return absl::OkStatus();
  std::vector<bool> isWritten(loaded.devices.size());
  for (size_t first = 0; first < loaded.devices.size(); ++first) {
    if (isWritten[first] || !loaded.shards[tensor][first].offset)
      continue;
    const Shard &shard = loaded.shards[tensor][first].shard;
    std::memset(loaded.transfer.data(), options.poisonPadding ? 0xff : 0,
                written.bytes);
    if (absl::Status s = fill(shard, loaded.transfer.data()); !s.ok())
      return s;
    for (size_t device = first; device < loaded.devices.size(); ++device) {
      const LocalShard &other = loaded.shards[tensor][device];
      if (!other.offset || other.shard.start != shard.start)
        continue;
      isWritten[device] = true;
      const Gpu &gpu = *loaded.devices[device].gpu;
      if (absl::Status s = gpu.context->makeCurrent(); !s.ok())
        return s;
      if (absl::Status s = gpu.context->check(
              loaded.hardware->driver->memcpyHtoDAsync(
                  loaded.devices[device].arena.address() + *other.offset,
                  loaded.transfer.data(), written.bytes, gpu.main->get()),
              absl::StrCat("setting ", written.name));
          !s.ok())
        return s;
    }
    // The next shard uses the same host memory.
    for (const std::unique_ptr<Gpu> &gpu : loaded.hardware->gpus)
      if (absl::Status s =
              loaded.hardware->wait(*gpu, cudaOptions.deadline,
                                    absl::StrCat("setting ", written.name));
          !s.ok())
        return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t>
CudaExecutor::findReadable(absl::string_view name) const {
  absl::StatusOr<size_t> index = findTensor(spec, name);
  if (!index.ok())
    return index.status();
  if (!failure.ok())
    return failure;
  if (absl::Status s = parameters.check(*index); !s.ok())
    return s;
  return index;
}

absl::Status CudaExecutor::fetch(size_t tensor, size_t device) const {
  const TensorSpec &read = spec.tensors[tensor];
  const Gpu &gpu = *loaded.devices[device].gpu;
  if (absl::Status s = gpu.context->makeCurrent(); !s.ok())
    return s;
  std::string what = absl::StrCat("reading ", read.name);
  if (absl::Status s =
          gpu.context->check(loaded.hardware->driver->memcpyDtoHAsync(
                                 loaded.transfer.data(),
                                 loaded.devices[device].arena.address() +
                                     *loaded.shards[tensor][device].offset,
                                 read.bytes, gpu.main->get()),
                             what);
      !s.ok())
    return s;
  return loaded.hardware->wait(gpu, cudaOptions.deadline, what);
}

absl::StatusOr<HostArray>
CudaExecutor::getTensor(absl::string_view name) const {
  absl::StatusOr<size_t> index = findReadable(name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = spec.tensors[*index];
  HostArray array(tensor.dtype, tensor.shape);
  if (tensor.bytes == 0)
    return array;
  const int rank = spec.firstRankWith(*index);
  std::set<std::vector<int64_t>> read;
  for (size_t device = 0; device < loaded.devices.size(); ++device) {
    const Shard &shard = loaded.shards[*index][device].shard;
    if (loaded.devices[device].rank != rank || !read.insert(shard.start).second)
      continue;
    if (absl::Status s = fetch(*index, device); !s.ok())
      return s;
    gatherShard(shard, tensor.dtype, tensor.shape, loaded.transfer.data(),
                array.data.data());
  }
  if (absl::Status s =
          exchange.complete(tensor.name, rank, tensor.sharding, array);
      !s.ok())
    return s;
  return array;
}

absl::Status CudaExecutor::readShards(absl::string_view name,
                                      ReadBytes visit) const {
  absl::StatusOr<size_t> index = findReadable(name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = spec.tensors[*index];
  if (tensor.bytes == 0)
    return absl::OkStatus();
  const int rank = spec.firstRankWith(*index);
  std::set<int64_t> holders;
  for (int64_t device : holdersOf(spec.ranks()[rank].mesh, tensor.sharding))
    holders.insert(spec.deviceOf(rank, device));
  for (size_t device = 0; device < loaded.devices.size(); ++device) {
    if (holders.count(loaded.local[device]) == 0)
      continue;
    if (absl::Status s = fetch(*index, device); !s.ok())
      return s;
    forEachRun(loaded.shards[*index][device].shard, tensor.dtype, tensor.shape,
               [&](int64_t from, int64_t to, int64_t bytes) {
                 visit(from, loaded.transfer.data() + to, bytes);
               });
  }
  return absl::OkStatus();
}

absl::Status CudaExecutor::fillShards(absl::string_view name, FillPlaces fill) {
  absl::StatusOr<size_t> index = findPersistent(spec, name);
  if (!index.ok())
    return index.status();
  if (!failure.ok())
    return failure;
  absl::Status filled;
  absl::Status written = write(*index, [&](const Shard &shard, char *local) {
    filled = fill({ShardPlace{shard, local}});
    return filled;
  });
  if (filled.ok())
    return fail(written);
  // No fault of the GPU.
  parameters.noteLoss(*index);
  return filled;
}

std::vector<RowRange> CudaExecutor::rowsOf(absl::string_view name) const {
  absl::StatusOr<size_t> index = findTensor(spec, name);
  if (!index.ok())
    return Executor::rowsOf(name);
  return rowsOfShards([&](absl::FunctionRef<void(const Shard &)> visit) {
    for (const LocalShard &local : loaded.shards[*index])
      if (local.offset)
        visit(local.shard);
  });
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

absl::Status CudaExecutor::submit(absl::string_view name,
                                  const NamedArrays &inputs) {
  if (inFlight() == maxInFlight())
    return absl::FailedPreconditionError(absl::StrCat(
        "a run of \"", name, "\" while ", inFlight(), " are in flight"));
  absl::StatusOr<size_t> number = findProgram(spec, name);
  if (!number.ok())
    return number.status();
  if (absl::Status s = checkInputs(spec, *number, inputs); !s.ok())
    return s;
  if (!failure.ok())
    return failure;
  if (absl::Status s = parameters.checkAll(); !s.ok())
    return s;
  Clock::time_point start = Clock::now();
  // Its last run has been awaited, so the host may write the batch.
  if (absl::Status s = fail(stage(*number, inputs, loaded.batches[nextBatch]));
      !s.ok())
    return s;
  if (recorder)
    recorder->trace().add("inputs and results", "inputs to devices", start,
                          Clock::now());
  Running run{nextBatch, *number, start};
  if (absl::Status s = fail(begin(run)); !s.ok())
    return s;
  running.push_back(std::move(run));
  nextBatch = (nextBatch + 1) % LoadedPlan::numBatches;
  return absl::OkStatus();
}

/// Copies inputs to pinned memory and from there to the GPUs, one beside the
/// other.
absl::Status CudaExecutor::stage(size_t number, const NamedArrays &inputs,
                                 Batch &batch) {
  auto onGpus = [&](absl::FunctionRef<absl::Status(const StagedInputs &)> run) {
    for (size_t i = 0; i < loaded.hardware->gpus.size(); ++i) {
      if (loaded.hardware->gpus.size() > 1)
        if (absl::Status s = loaded.hardware->gpus[i]->context->makeCurrent();
            !s.ok())
          return s;
      if (absl::Status s = run(batch.memory.staged[i]); !s.ok())
        return s;
    }
    return absl::OkStatus();
  };
  if (absl::Status s = loaded.hardware->gpus[0]->context->makeCurrent();
      !s.ok())
    return s;
  bool isAny = false;
  for (size_t input = 0; input < loaded.host.numInputs(); ++input) {
    if (!loaded.host.takes(number, input))
      continue;
    isAny = true;
    char *batchOnHost = batch.memory.host.data();
    loaded.host.scatter(input, inputs, batchOnHost);
    if (absl::Status s = onGpus([&](const StagedInputs &staged) {
          return staged.copy(input, batchOnHost);
        });
        !s.ok())
      return s;
  }
  return isAny
             ? onGpus([](const StagedInputs &staged) { return staged.join(); })
             : absl::OkStatus();
}

absl::Status CudaExecutor::begin(Running &run) {
  NvtxRange range(loaded.hardware->nvtx.get(), nameOf(run.program));
  if (std::optional<size_t> rounding = parameters.takeRounding())
    run.order.push_back(*rounding);
  run.order.push_back(run.program);
  if (!recorder || !recorder->trace().isRecording())
    return issue(run);
  // Where recording begins, or nothing is in flight anyway.
  const bool mayWait = running.empty() || running.back().tracedRun < 0;
  if (mayWait && recorder->needsClocks()) {
    for (const Running &before : running)
      if (absl::Status s = waitFor(before); !s.ok())
        return s;
    if (absl::Status s = recorder->readClocks(cudaOptions.deadline); !s.ok())
      return s;
  }
  run.tracedRun = recorder->begin(run.order);
  absl::Status status = issue(run);
  if (!status.ok())
    recorder->fail(run.tracedRun, running.empty());
  return status;
}

absl::Status CudaExecutor::issue(const Running &run) {
  Batch &batch = loaded.batches[run.batch];
  const bool isTraced = run.tracedRun >= 0;
  if (absl::Status s = loaded.hardware->gpus[0]->context->makeCurrent();
      !s.ok())
    return s;
  if (cudaOptions.serialize)
    for (size_t program : run.order)
      if (absl::Status s = loaded.programs[program]->runSerialized(
              batch.memory, cudaOptions.deadline,
              isTraced ? &recorder->times(run.batch, program) : nullptr);
          !s.ok())
        return s;
  for (size_t i = 0; i < loaded.hardware->gpus.size(); ++i) {
    if (i > 0 || cudaOptions.serialize)
      if (absl::Status s = loaded.hardware->gpus[i]->context->makeCurrent();
          !s.ok())
        return s;
    if (!cudaOptions.serialize)
      for (size_t program : run.order) {
        const std::vector<Graph> &graphs =
            isTraced ? recorder->graphs(run.batch, program)
                     : batch.graphs[program];
        if (absl::Status s = graphs[i].launch(*loaded.hardware->gpus[i]->main);
            !s.ok())
          return s;
      }
    if (absl::Status s = batch.done[i].record(*loaded.hardware->gpus[i]->main);
        !s.ok())
      return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> CudaExecutor::await() {
  if (running.empty())
    return absl::FailedPreconditionError("no run has been submitted");
  if (!failure.ok())
    return failure;
  absl::StatusOr<RunResult> result = finish(running.front());
  if (!result.ok())
    return fail(result.status());
  running.pop_front();
  return result;
}

absl::Status CudaExecutor::waitFor(const Running &run) {
  for (size_t i = 0; i < loaded.hardware->gpus.size(); ++i) {
    if (absl::Status s = loaded.hardware->gpus[i]->context->makeCurrent();
        !s.ok())
      return s;
    if (absl::Status s = loaded.batches[run.batch].done[i].wait(
            cudaOptions.deadline,
            absl::StrCat("a run of \"", nameOf(run.program), "\" on ",
                         loaded.hardware->gpus[i]->context->name(),
                         " (run it with --serialize to learn where)"),
            [&] { return loaded.collectives->check(); });
        !s.ok())
      return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> CudaExecutor::finish(const Running &run) {
  const Batch &batch = loaded.batches[run.batch];
  int rank = spec.rankOfResults(run.program);
  const ProgramSpec &program = spec.ranks()[rank].programs[run.program];
  if (absl::Status s = waitFor(run); !s.ok())
    return s;
  if (run.tracedRun >= 0)
    if (absl::Status s = recorder->end(run.batch, run.order, run.tracedRun);
        !s.ok())
      return s;
  const Clock::time_point gathering = Clock::now();
  std::vector<HostArray> arrays =
      loaded.host.gather(run.program, batch.memory.host.data());
  RunResult result;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const ResultSpec &global = program.results[i];
    if (absl::Status s =
            exchange.complete(global.name, rank, global.sharding, arrays[i]);
        !s.ok())
      return s;
    result.add(global.name, std::move(arrays[i]));
  }
  result.wireBytes = loaded.programs[run.program]->wireBytes();
  result.communicationSeconds = std::numeric_limits<double>::quiet_NaN();
  const Clock::time_point end = Clock::now();
  result.seconds = std::chrono::duration<double>(end - run.start).count();
  if (recorder)
    recorder->trace().add("inputs and results", "results from devices",
                          gathering, end);
  return result;
}

absl::Status CudaExecutor::setTrace(Trace *trace) {
  // After a failure graphs may run that are freed here; nothing is recorded.
  if (!failure.ok())
    return trace ? failure : absl::OkStatus();
  if (inFlight() > 0)
    return absl::FailedPreconditionError("runs are in flight");
  if (trace && !trace->internals().workers.empty())
    return absl::FailedPreconditionError("a trace is of one executor");
  recorder.reset();
  if (!trace)
    return absl::OkStatus();
  std::vector<const BatchMemory *> memories;
  for (const Batch &batch : loaded.batches)
    memories.push_back(&batch.memory);
  absl::StatusOr<std::unique_ptr<TraceRecorder>> created =
      TraceRecorder::create(*loaded.set, loaded.programs, std::move(memories),
                            !cudaOptions.serialize, describePlan(spec), *trace);
  if (!created.ok())
    return fail(created.status());
  recorder = *std::move(created);
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Measurements
//===----------------------------------------------------------------------===//

absl::StatusOr<std::vector<double>> CudaExecutor::timeCommands(size_t program,
                                                               int repeats) {
  if (!failure.ok())
    return failure;
  if (inFlight() > 0)
    return absl::FailedPreconditionError("runs are in flight");
  if (spec.pipeline)
    return absl::UnimplementedError("times of the commands of a pipeline");
  parameters.noteFailure(program, "has been timed command by command");
  std::vector<double> seconds;
  for (size_t i = 0; i < spec.programs[program].commands.size(); ++i) {
    const Command &command = spec.programs[program].commands[i];
    if (std::holds_alternative<LoopCommand>(command.operation)) {
      seconds.push_back(0);
      continue;
    }
    absl::StatusOr<double> alone = loaded.programs[program]->timeAlone(
        i, repeats, loaded.batches[0].memory, cudaOptions.deadline);
    if (!alone.ok())
      return fail(alone.status());
    seconds.push_back(*alone);
  }
  return seconds;
}

absl::StatusOr<double> CudaExecutor::measureCopies(uint64_t bytes,
                                                   int repeats) {
  return cuda::measureCopies(*loaded.hardware->gpus[0]->main, bytes, repeats,
                             cudaOptions.deadline);
}

uint64_t CudaExecutor::allocatedBytes() const {
  uint64_t bytes = 0;
  for (const PlanSpec &rank : spec.ranks())
    bytes += rank.arenaBytes * rank.mesh.numDevices();
  return bytes;
}

uint64_t CudaExecutor::allocatedArenaBytes() const {
  uint64_t bytes = 0;
  for (const Device &device : loaded.devices)
    bytes += device.arena.bytes();
  return bytes;
}

absl::StatusOr<uint64_t> CudaExecutor::usedGpuBytes() const {
  const cuda::Context &context = *loaded.hardware->gpus[0]->context;
  if (absl::Status s = context.makeCurrent(); !s.ok())
    return s;
  size_t available = 0, total = 0;
  if (absl::Status s =
          context.check(loaded.hardware->driver->memGetInfo(&available, &total),
                        "cuMemGetInfo");
      !s.ok())
    return s;
  return total - available;
}
