//===- LoadedPlan.cpp - A plan on the GPUs of this process ----------------===//

#include "backends/cuda/LoadedPlan.h"

#include "backends/cuda/TuneGemms.h"
#include "base/Parts.h"

#include <algorithm>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

LoadedPlan::LoadedPlan(const PlanSpec &spec, const ExecutorOptions &options,
                       const CudaOptions &cudaOptions,
                       std::vector<int64_t> local)
    : spec(spec), options(options), cudaOptions(cudaOptions), local(local),
      host(spec, std::move(local), copyThreads()) {}

/// Moves the value of `made`, if it has one, to the heap.
template <typename T>
static absl::Status keep(absl::StatusOr<T> made, std::unique_ptr<T> &place) {
  if (!made.ok())
    return made.status();
  place = std::make_unique<T>(*std::move(made));
  return absl::OkStatus();
}

template <typename T>
static absl::Status keep(absl::StatusOr<T> made, T &place) {
  if (!made.ok())
    return made.status();
  place = *std::move(made);
  return absl::OkStatus();
}

absl::Status LoadedPlan::load() {
  if (absl::Status s = keep(LocalGpus::open(spec, cudaOptions), hardware);
      !s.ok())
    return s;
  if (absl::Status s =
          keep(hardware->connect(spec, options.seed, local, cudaOptions),
               collectives);
      !s.ok())
    return s;
  if (absl::Status s = keep(tuneGemms(*hardware, spec, cudaOptions), choices);
      !s.ok())
    return s;
  if (absl::Status s = allocateDevices(); !s.ok())
    return s;
  if (absl::Status s = fillKernelContexts(); !s.ok())
    return s;
  if (absl::Status s = preparePrograms(); !s.ok())
    return s;
  if (absl::Status s = allocateBatches(); !s.ok())
    return s;
  if (absl::Status s = warmUp(); !s.ok())
    return s;
  return captureBatches();
}

absl::Status LoadedPlan::allocateDevices() {
  for (size_t i = 0; i < local.size(); ++i)
    if (absl::Status s = addDevice(
            local[i], *hardware->gpus[std::min(i, hardware->gpus.size() - 1)]);
        !s.ok())
      return s;
  uint64_t largest = 0;
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    largest = std::max(largest, spec.tensors[i].bytes);
    std::vector<LocalShard> &ofTensor = shards.emplace_back();
    for (const Device &device : devices)
      ofTensor.push_back(shardOn(i, device));
  }
  return keep(PinnedMemory::allocate(*hardware->gpus[0]->context, largest,
                                     "tensors set and read"),
              transfer);
}

LocalShard LoadedPlan::shardOn(size_t tensor, const Device &device) const {
  const TensorSpec &global = spec.tensors[tensor];
  LocalShard local{
      shardOf(spec.mesh, global.sharding, global.shape, device.number), {}};
  const PlanSpec &rank = spec.ranks()[device.rank];
  if (int64_t number = rank.numberOf(tensor); number >= 0)
    local.offset = rank.tensors[number].offset;
  return local;
}

absl::Status LoadedPlan::addDevice(int64_t number, const Gpu &gpu) {
  std::shared_ptr<Stream> communication;
  for (const Device &other : devices)
    if (other.gpu == &gpu)
      communication =
          other.streams[static_cast<size_t>(rt::Stream::Communication)];
  Device &device = devices.emplace_back();
  device.number = number;
  device.rank = spec.rankOf(number);
  device.gpu = &gpu;
  if (absl::Status s =
          keep(DeviceMemory::allocate(
                   *gpu.context, spec.ranks()[device.rank].arenaBytes,
                   absl::StrCat("the arena of device ", number, " of ",
                                spec.mesh.numDevices())),
               device.arena);
      !s.ok())
    return s;
  for (rt::Stream which :
       {rt::Stream::Compute, rt::Stream::Communication, rt::Stream::Copies}) {
    std::shared_ptr<Stream> &place = device.streams[static_cast<size_t>(which)];
    if (which == rt::Stream::Communication && communication) {
      place = communication;
      continue;
    }
    absl::StatusOr<Stream> stream = Stream::create(*gpu.context);
    if (!stream.ok())
      return stream.status();
    place = std::make_shared<Stream>(*std::move(stream));
  }
  return absl::OkStatus();
}

absl::Status LoadedPlan::fillKernelContexts() {
  int64_t &runs = kernelContexts;
  if (spec.pipeline)
    runs = spec.pipeline->microbatches;
  for (const ProgramSpec &program : spec.programs)
    for (const Command &command : program.commands)
      if (auto *loop = std::get_if<LoopCommand>(&command.operation))
        runs = std::max(runs, loop->runs);
  const Mesh &mesh = spec.mesh;
  size_t axes = mesh.axes().size(), width = axes + 2;
  uint64_t bytes = runs * width * sizeof(int64_t);
  PinnedMemory staged;
  if (absl::Status s = keep(PinnedMemory::allocate(*hardware->gpus[0]->context,
                                                   bytes * devices.size(),
                                                   "contexts of kernels"),
                            staged);
      !s.ok())
    return s;
  for (size_t i = 0; i < devices.size(); ++i) {
    char *at = staged.data() + i * bytes;
    int64_t *values = reinterpret_cast<int64_t *>(at);
    for (int64_t run = 0; run < runs; ++run) {
      for (size_t axis = 0; axis < axes; ++axis)
        *values++ = mesh.coordinate(devices[i].number, axis);
      *values++ = static_cast<int64_t>(options.seed);
      *values++ = run;
    }
    Device &device = devices[i];
    device.kernelContextBytes = width * sizeof(int64_t);
    const cuda::Context &context = *device.gpu->context;
    if (absl::Status s =
            keep(DeviceMemory::allocate(context, bytes, "contexts of kernels"),
                 device.kernelContexts);
        !s.ok())
      return s;
    if (absl::Status s = context.check(hardware->driver->memcpyHtoDAsync(
                                           device.kernelContexts.address(), at,
                                           bytes, device.gpu->main->get()),
                                       "copying the contexts of kernels");
        !s.ok())
      return s;
  }
  for (const std::unique_ptr<Gpu> &gpu : hardware->gpus)
    if (absl::Status s = hardware->wait(*gpu, cudaOptions.deadline,
                                        "copying the contexts of kernels");
        !s.ok())
      return s;
  return absl::OkStatus();
}

absl::Status LoadedPlan::preparePrograms() {
  for (const std::unique_ptr<Gpu> &gpu : hardware->gpus)
    if (absl::Status s =
            keep(Module::load(
                     *gpu->context, {spec.code, spec.cubin, spec.gpuTarget},
                     spec.kernels, absl::StrCat("the kernels of ", spec.model)),
                 gpu->kernels);
        !s.ok())
      return s;
  set.reset(new DeviceSet{spec, hardware->gpus, host, devices, *collectives,
                          cudaOptions.gemmWorkspaceBytes, choices.get(),
                          hardware->nvtx.get()});
  uint64_t &workspace = gemmScratchBytes;
  for (size_t number = 0; number < spec.ranks()[0].programs.size(); ++number) {
    absl::StatusOr<std::unique_ptr<Program>> program =
        Program::prepare(*set, number);
    if (!program.ok())
      return program.status();
    workspace = std::max(workspace, (*program)->workspaceBytes());
    programs.push_back(*std::move(program));
  }
  for (Device &device : devices)
    if (absl::Status s =
            keep(DeviceMemory::allocate(
                     *device.gpu->context, workspace,
                     absl::StrCat("GEMMs of device ", device.number)),
                 device.workspace);
        !s.ok())
      return s;
  return absl::OkStatus();
}

absl::Status LoadedPlan::allocateBatches() {
  batches.resize(numBatches);
  for (Batch &batch : batches) {
    if (absl::Status s =
            keep(PinnedMemory::allocate(*hardware->gpus[0]->context,
                                        host.bytes(), "batches"),
                 batch.memory.host);
        !s.ok())
      return s;
    for (const std::unique_ptr<Gpu> &gpu : hardware->gpus) {
      absl::StatusOr<StagedInputs> staged =
          StagedInputs::create(*gpu, host, devices);
      if (!staged.ok())
        return staged.status();
      batch.memory.staged.push_back(*std::move(staged));
      absl::StatusOr<Event> event = Event::create(*gpu->context);
      if (!event.ok())
        return event.status();
      batch.done.push_back(*std::move(event));
    }
  }
  return absl::OkStatus();
}

/// Runs every program on zeros, one command after the other. Drivers and
/// libraries load kernels on first use, which is not allowed while a graph is
/// captured; and an error names the kernel that fails. Leaves arenas and
/// batches as runs expect them.
absl::Status LoadedPlan::warmUp() {
  auto fillArenas = [&](unsigned char value) {
    for (const Device &device : devices) {
      if (device.arena.bytes() == 0)
        continue;
      if (hardware->gpus.size() > 1)
        if (absl::Status s = device.gpu->context->makeCurrent(); !s.ok())
          return s;
      if (absl::Status s = device.gpu->context->check(
              hardware->driver->memsetD8Async(device.arena.address(), value,
                                              device.arena.bytes(),
                                              device.gpu->main->get()),
              "clearing an arena");
          !s.ok())
        return s;
    }
    return absl::OkStatus();
  };
  if (absl::Status s = fillArenas(0); !s.ok())
    return s;
  for (const std::unique_ptr<Program> &program : programs)
    if (absl::Status s =
            program->runSerialized(batches[0].memory, cudaOptions.deadline);
        !s.ok())
      return s;
  unsigned char initial = options.poisonPadding ? 0xff : 0;
  if (absl::Status s = fillArenas(initial); !s.ok())
    return s;
  for (const Batch &batch : batches)
    if (host.bytes() > 0)
      std::memset(batch.memory.host.data(), initial, host.bytes());
  for (const std::unique_ptr<Gpu> &gpu : hardware->gpus)
    if (absl::Status s =
            hardware->wait(*gpu, cudaOptions.deadline, "clearing the arenas");
        !s.ok())
      return s;
  return absl::OkStatus();
}

absl::Status LoadedPlan::captureBatches() {
  if (cudaOptions.serialize)
    return absl::OkStatus();
  for (Batch &batch : batches)
    for (const std::unique_ptr<Program> &program : programs) {
      absl::StatusOr<std::vector<Graph>> graphs =
          program->capture(batch.memory);
      if (!graphs.ok())
        return graphs.status();
      batch.graphs.push_back(*std::move(graphs));
    }
  return absl::OkStatus();
}

uint64_t LoadedPlan::stagedBytes() const {
  uint64_t bytes = 0;
  for (const Batch &batch : batches)
    for (const StagedInputs &staged : batch.memory.staged)
      bytes += staged.bytes();
  return (bytes + devices.size() - 1) / devices.size();
}
