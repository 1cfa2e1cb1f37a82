//===- CudaExecutor.cpp - Runs a plan on a GPU ----------------------------===//

#include "backends/cuda/CudaExecutor.h"

#include "exec/Arrays.h"
#include "exec/Shards.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

/// What is still running uses memory that goes away.
CudaExecutor::~CudaExecutor() {
  while (!running.empty()) {
    (void)batches[running.front().batch].done->wait(cudaOptions.deadline,
                                                    "ending a run");
    running.pop_front();
  }
}

absl::Status CudaExecutor::initializeParameters() {
  for (size_t i = 0; i < ownPlan->tensors.size(); ++i) {
    const TensorSpec &tensor = ownPlan->tensors[i];
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
  absl::StatusOr<size_t> index = findTensor(*ownPlan, name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = ownPlan->tensors[*index];
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
  const TensorSpec &spec = ownPlan->tensors[tensor];
  if (spec.bytes == 0)
    return absl::OkStatus();
  if (absl::Status s = context->makeCurrent(); !s.ok())
    return s;
  std::vector<bool> isWritten(devices.size());
  for (size_t first = 0; first < devices.size(); ++first) {
    if (isWritten[first])
      continue;
    const Shard &shard = shards[tensor][first];
    std::memset(transfer.data(), options.poisonPadding ? 0xff : 0, spec.bytes);
    if (absl::Status s = fill(shard, transfer.data()); !s.ok())
      return s;
    for (size_t device = first; device < devices.size(); ++device) {
      if (shards[tensor][device].start != shard.start)
        continue;
      isWritten[device] = true;
      if (absl::Status s =
              context->check(driver->memcpyHtoDAsync(
                                 devices[device].arena.address() + spec.offset,
                                 transfer.data(), spec.bytes, main->get()),
                             absl::StrCat("setting ", spec.name));
          !s.ok())
        return s;
    }
    // The next shard goes through the same memory of the host.
    if (absl::Status s = waitForCopies(absl::StrCat("setting ", spec.name));
        !s.ok())
      return s;
  }
  return absl::OkStatus();
}

absl::Status CudaExecutor::waitForCopies(absl::string_view what) const {
  if (absl::Status s = copied->record(*main); !s.ok())
    return s;
  return copied->wait(cudaOptions.deadline, what);
}

absl::StatusOr<HostArray>
CudaExecutor::getTensor(absl::string_view name) const {
  absl::StatusOr<size_t> index = findTensor(*ownPlan, name);
  if (!index.ok())
    return index.status();
  const TensorSpec &tensor = ownPlan->tensors[*index];
  HostArray array(tensor.dtype, tensor.shape);
  if (tensor.bytes == 0)
    return array;
  if (absl::Status s = context->makeCurrent(); !s.ok())
    return s;
  for (int64_t device : holdersOf(ownPlan->mesh, tensor.sharding)) {
    std::string what = absl::StrCat("reading ", tensor.name);
    if (absl::Status s =
            context->check(driver->memcpyDtoHAsync(
                               transfer.data(),
                               devices[device].arena.address() + tensor.offset,
                               tensor.bytes, main->get()),
                           what);
        !s.ok())
      return s;
    if (absl::Status s = waitForCopies(what); !s.ok())
      return s;
    gatherShard(shards[*index][device], tensor.dtype, tensor.shape,
                transfer.data(), array.data.data());
  }
  return array;
}

absl::Status CudaExecutor::submit(absl::string_view name,
                                  const NamedArrays &inputs) {
  if (inFlight() == maxInFlight())
    return absl::FailedPreconditionError(absl::StrCat(
        "a run of \"", name, "\" while ", inFlight(), " are in flight"));
  size_t number = 0;
  while (number < programs.size() && ownPlan->programs[number].name != name)
    ++number;
  if (number == programs.size())
    return absl::NotFoundError(
        absl::StrCat("the plan has no program \"", name, "\""));
  if (absl::Status s = checkInputs(*ownPlan, inputs); !s.ok())
    return s;
  Clock::time_point start = Clock::now();
  // Its last run has been awaited: the batch is the host's.
  Batch &batch = batches[nextBatch];
  host.scatter(inputs, batch.memory.data());
  if (absl::Status s = context->makeCurrent(); !s.ok())
    return s;
  absl::Status begun =
      cudaOptions.serialize
          ? programs[number]->runSerialized(*main, batch.memory.data(),
                                            workspaces, cudaOptions.deadline)
          : batch.graphs[number].launch(*main);
  if (!begun.ok())
    return begun;
  if (absl::Status s = batch.done->record(*main); !s.ok())
    return s;
  running.push_back({nextBatch, number, start});
  nextBatch = (nextBatch + 1) % numBatches;
  return absl::OkStatus();
}

absl::StatusOr<RunResult> CudaExecutor::await() {
  if (running.empty())
    return absl::FailedPreconditionError("no run has been submitted");
  Running run = running.front();
  running.pop_front();
  const Batch &batch = batches[run.batch];
  if (absl::Status s = context->makeCurrent(); !s.ok())
    return s;
  if (absl::Status s = batch.done->wait(
          cudaOptions.deadline,
          absl::StrCat("a run of \"", ownPlan->programs[run.program].name,
                       "\" on ", context->name(),
                       " (run it with --serialize to learn where)"));
      !s.ok())
    return s;
  RunResult result;
  host.gather(run.program, batch.memory.data(), result);
  result.wireBytes = programs[run.program]->wireBytes();
  result.communicationSeconds = std::numeric_limits<double>::quiet_NaN();
  result.seconds =
      std::chrono::duration<double>(Clock::now() - run.start).count();
  return result;
}
