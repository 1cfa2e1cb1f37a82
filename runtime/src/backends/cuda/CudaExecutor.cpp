//===- CudaExecutor.cpp - Runs a plan on GPUs -----------------------------===//

#include "backends/cuda/CudaExecutor.h"

#include "exec/Arrays.h"
#include "exec/Shards.h"

#include "absl/strings/match.h"
#include "absl/time/clock.h"

#include <set>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

/// What is still running uses memory that goes away. After a failure it may
/// never end.
CudaExecutor::~CudaExecutor() {
  absl::Time end =
      absl::Now() + (failure.ok() ? cudaOptions.deadline : absl::Seconds(2));
  for (const Running &run : running)
    for (const Event &done : batches[run.batch].done)
      (void)done.wait(end - absl::Now(), "ending a run");
}

absl::Status CudaExecutor::fail(const absl::Status &status) {
  if (status.ok() || !failure.ok())
    return status;
  failure = status;
  if (collectives)
    collectives->abort();
  if (!cudaOptions.store)
    return status;
  const Ranks &ranks = cudaOptions.store->ranks();
  // The others learn the reason from where it is.
  if (status.code() != absl::StatusCode::kAborted)
    cudaOptions.store->fail(status.message());
  std::string prefix = absl::StrCat("rank ", ranks.rank, " of ", ranks.size);
  return absl::StartsWith(status.message(), prefix)
             ? status
             : absl::Status(status.code(),
                            absl::StrCat(prefix, ": ", status.message()));
}

absl::Status CudaExecutor::initializeParameters() {
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorSpec &tensor = spec.tensors[i];
    if (tensor.role != Role::Parameter && tensor.role != Role::State)
      continue;
    if (absl::Status s =
            write(i,
                  [&](const Shard &shard, char *local) {
                    return initializeShard(tensor.initializer, options.seed,
                                           tensor.name, tensor.dtype,
                                           tensor.shape, shard.start,
                                           shard.valid, shard.local, local);
                  });
        !s.ok())
      return s;
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
  return write(*index, [&](const Shard &shard, char *local) {
    scatterShard(shard, tensor.dtype, tensor.shape, array.data, local);
    return absl::OkStatus();
  });
}

absl::Status CudaExecutor::write(
    size_t tensor,
    absl::FunctionRef<absl::Status(const Shard &, char *)> fill) {
  const TensorSpec &written = spec.tensors[tensor];
  if (written.bytes == 0)
    return absl::OkStatus();
  copies.noteWrite(written);
  std::vector<bool> isWritten(devices.size());
  for (size_t first = 0; first < devices.size(); ++first) {
    if (isWritten[first])
      continue;
    const Shard &shard = shards[tensor][first];
    std::memset(transfer.data(), options.poisonPadding ? 0xff : 0,
                written.bytes);
    if (absl::Status s = fill(shard, transfer.data()); !s.ok())
      return s;
    for (size_t device = first; device < devices.size(); ++device) {
      if (shards[tensor][device].start != shard.start)
        continue;
      isWritten[device] = true;
      const Gpu &gpu = *devices[device].gpu;
      if (absl::Status s = gpu.context->makeCurrent(); !s.ok())
        return s;
      if (absl::Status s = gpu.context->check(
              driver->memcpyHtoDAsync(
                  devices[device].arena.address() + written.offset,
                  transfer.data(), written.bytes, gpu.main->get()),
              absl::StrCat("setting ", written.name));
          !s.ok())
        return s;
    }
    // The next shard goes through the same memory of the host.
    for (const std::unique_ptr<Gpu> &gpu : gpus)
      if (absl::Status s =
              waitForCopies(*gpu, absl::StrCat("setting ", written.name));
          !s.ok())
        return s;
  }
  return absl::OkStatus();
}

absl::Status CudaExecutor::waitForCopies(const Gpu &gpu,
                                         absl::string_view what) const {
  if (gpus.size() > 1)
    if (absl::Status s = gpu.context->makeCurrent(); !s.ok())
      return s;
  if (absl::Status s = gpu.copied->record(*gpu.main); !s.ok())
    return s;
  return gpu.copied->wait(cudaOptions.deadline, what);
}

absl::StatusOr<HostArray>
CudaExecutor::getTensor(absl::string_view name) const {
  absl::StatusOr<size_t> index = findTensor(spec, name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = spec.tensors[*index];
  HostArray array(tensor.dtype, tensor.shape);
  if (tensor.bytes == 0)
    return array;
  std::set<std::vector<int64_t>> read;
  for (size_t device = 0; device < devices.size(); ++device) {
    const Shard &shard = shards[*index][device];
    if (!read.insert(shard.start).second)
      continue;
    const Gpu &gpu = *devices[device].gpu;
    if (absl::Status s = gpu.context->makeCurrent(); !s.ok())
      return s;
    std::string what = absl::StrCat("reading ", tensor.name);
    if (absl::Status s = gpu.context->check(
            driver->memcpyDtoHAsync(transfer.data(),
                                    devices[device].arena.address() +
                                        tensor.offset,
                                    tensor.bytes, gpu.main->get()),
            what);
        !s.ok())
      return s;
    if (absl::Status s = waitForCopies(gpu, what); !s.ok())
      return s;
    gatherShard(shard, tensor.dtype, tensor.shape, transfer.data(),
                array.data.data());
  }
  if (absl::Status s = exchange.complete(tensor.name, tensor.sharding, array,
                                         cudaOptions.deadline);
      !s.ok())
    return s;
  return array;
}

absl::Status CudaExecutor::submit(absl::string_view name,
                                  const NamedArrays &inputs) {
  if (inFlight() == maxInFlight())
    return absl::FailedPreconditionError(absl::StrCat(
        "a run of \"", name, "\" while ", inFlight(), " are in flight"));
  absl::StatusOr<size_t> number = findProgram(spec, name);
  if (!number.ok())
    return number.status();
  if (absl::Status s = checkInputs(spec, inputs); !s.ok())
    return s;
  if (!failure.ok())
    return failure;
  Clock::time_point start = Clock::now();
  // Its last run has been awaited: the batch is the host's.
  Batch &batch = batches[nextBatch];
  host.scatter(inputs, batch.memory.data());
  if (absl::Status s = fail(begin(*number, batch)); !s.ok())
    return s;
  running.push_back({nextBatch, *number, start});
  nextBatch = (nextBatch + 1) % numBatches;
  return absl::OkStatus();
}

absl::Status CudaExecutor::begin(size_t number, Batch &batch) {
  NvtxRange range(nvtx.get(), spec.programs[number].name);
  std::vector<size_t> order = {number};
  if (std::optional<size_t> rounding = copies.takeRounding())
    order.insert(order.begin(), *rounding);
  if (absl::Status s = gpus[0]->context->makeCurrent(); !s.ok())
    return s;
  if (cudaOptions.serialize)
    for (size_t program : order)
      if (absl::Status s = programs[program]->runSerialized(
              batch.memory.data(), cudaOptions.deadline);
          !s.ok())
        return s;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (i > 0 || cudaOptions.serialize)
      if (absl::Status s = gpus[i]->context->makeCurrent(); !s.ok())
        return s;
    if (!cudaOptions.serialize)
      for (size_t program : order)
        if (absl::Status s = batch.graphs[program][i].launch(*gpus[i]->main);
            !s.ok())
          return s;
    if (absl::Status s = batch.done[i].record(*gpus[i]->main); !s.ok())
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

absl::StatusOr<RunResult> CudaExecutor::finish(const Running &run) {
  const Batch &batch = batches[run.batch];
  const ProgramSpec &program = spec.programs[run.program];
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (absl::Status s = gpus[i]->context->makeCurrent(); !s.ok())
      return s;
    if (absl::Status s = batch.done[i].wait(
            cudaOptions.deadline,
            absl::StrCat("a run of \"", program.name, "\" on ",
                         gpus[i]->context->name(),
                         " (run it with --serialize to learn where)"),
            [&] { return collectives->check(); });
        !s.ok())
      return s;
  }
  std::vector<HostArray> arrays = host.gather(run.program, batch.memory.data());
  RunResult result;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const ResultSpec &global = program.results[i];
    if (absl::Status s = exchange.complete(global.name, global.sharding,
                                           arrays[i], cudaOptions.deadline);
        !s.ok())
      return s;
    result.add(global.name, std::move(arrays[i]));
  }
  result.wireBytes = programs[run.program]->wireBytes();
  result.communicationSeconds = std::numeric_limits<double>::quiet_NaN();
  result.seconds =
      std::chrono::duration<double>(Clock::now() - run.start).count();
  return result;
}
