//===- LoadExecutor.cpp - From a plan to graphs on GPUs -------------------===//
//
// Everything that allocates or compiles is here: runs do neither.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaExecutor.h"

#include <algorithm>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::Status CudaExecutor::load() { return fail(loadAll()); }

absl::Status CudaExecutor::loadAll() {
  if (absl::Status s = openLibraries(); !s.ok())
    return s;
  if (absl::Status s = connectDevices(); !s.ok())
    return s;
  if (absl::Status s = allocateDevices(); !s.ok())
    return s;
  if (absl::Status s = fillKernelContexts(); !s.ok())
    return s;
  if (absl::Status s = tuneGemms(); !s.ok())
    return s;
  if (absl::Status s = preparePrograms(); !s.ok())
    return s;
  if (absl::Status s = allocateBatches(); !s.ok())
    return s;
  if (absl::Status s = warmUp(); !s.ok())
    return s;
  return captureBatches();
}

/// Puts what `made` has, if it has something, on the heap.
template <typename T>
static absl::Status keep(absl::StatusOr<T> made, std::unique_ptr<T> &place) {
  if (made.ok())
    place = std::make_unique<T>(*std::move(made));
  return made.status();
}

template <typename T>
static absl::Status keep(absl::StatusOr<T> made, T &place) {
  if (made.ok())
    place = *std::move(made);
  return made.status();
}

absl::Status CudaExecutor::allocateDevices() {
  for (const std::unique_ptr<Gpu> &gpu : gpus) {
    if (absl::Status s = keep(Stream::create(*gpu->context), gpu->main);
        !s.ok())
      return s;
    if (absl::Status s = keep(Event::create(*gpu->context), gpu->copied);
        !s.ok())
      return s;
  }
  for (size_t i = 0; i < local.size(); ++i)
    if (absl::Status s =
            addDevice(local[i], *gpus[std::min(i, gpus.size() - 1)]);
        !s.ok())
      return s;
  uint64_t largest = 0;
  for (const TensorSpec &tensor : spec.tensors) {
    largest = std::max(largest, tensor.bytes);
    std::vector<Shard> &ofTensor = shards.emplace_back();
    for (int64_t device : local)
      ofTensor.push_back(
          shardOf(spec.mesh, tensor.sharding, tensor.shape, device));
  }
  return keep(PinnedMemory::allocate(*gpus[0]->context, largest,
                                     "tensors set and read"),
              transfer);
}

absl::Status CudaExecutor::addDevice(int64_t number, const Gpu &gpu) {
  std::shared_ptr<Stream> communication;
  for (const Device &other : devices)
    if (other.gpu == &gpu)
      communication =
          other.streams[static_cast<size_t>(rt::Stream::Communication)];
  Device &device = devices.emplace_back();
  device.number = number;
  device.gpu = &gpu;
  if (absl::Status s = keep(
          DeviceMemory::allocate(*gpu.context, spec.arenaBytes,
                                 absl::StrCat("the arena of device ", number,
                                              " of ", spec.mesh.numDevices())),
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

absl::Status CudaExecutor::fillKernelContexts() {
  int64_t &runs = kernelContexts;
  for (const ProgramSpec &program : spec.programs)
    for (const Command &command : program.commands)
      if (auto *loop = std::get_if<LoopCommand>(&command.operation))
        runs = std::max(runs, loop->runs);
  const Mesh &mesh = spec.mesh;
  size_t axes = mesh.axes().size(), width = axes + 2;
  uint64_t bytes = runs * width * sizeof(int64_t);
  PinnedMemory staged;
  if (absl::Status s =
          keep(PinnedMemory::allocate(*gpus[0]->context, bytes * devices.size(),
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
    if (absl::Status s = context.check(
            driver->memcpyHtoDAsync(device.kernelContexts.address(), at, bytes,
                                    device.gpu->main->get()),
            "copying the contexts of kernels");
        !s.ok())
      return s;
  }
  for (const std::unique_ptr<Gpu> &gpu : gpus)
    if (absl::Status s = waitForCopies(*gpu, "copying the contexts of kernels");
        !s.ok())
      return s;
  return absl::OkStatus();
}

absl::Status CudaExecutor::preparePrograms() {
  for (const std::unique_ptr<Gpu> &gpu : gpus)
    if (absl::Status s =
            keep(Module::load(
                     *gpu->context, {spec.code, spec.cubin, spec.gpuTarget},
                     spec.kernels, absl::StrCat("the kernels of ", spec.model)),
                 gpu->kernels);
        !s.ok())
      return s;
  set.reset(new DeviceSet{spec, gpus, host, devices, *collectives,
                          cudaOptions.gemmWorkspaceBytes, choices.get(),
                          nvtx.get()});
  uint64_t &workspace = gemmScratchBytes;
  for (size_t number = 0; number < spec.programs.size(); ++number) {
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

absl::Status CudaExecutor::allocateBatches() {
  batches.resize(numBatches);
  for (Batch &batch : batches) {
    if (absl::Status s = keep(
            PinnedMemory::allocate(*gpus[0]->context, host.bytes(), "batches"),
            batch.memory);
        !s.ok())
      return s;
    for (const std::unique_ptr<Gpu> &gpu : gpus) {
      absl::StatusOr<Event> event = Event::create(*gpu->context);
      if (!event.ok())
        return event.status();
      batch.done.push_back(*std::move(event));
    }
  }
  return absl::OkStatus();
}

/// Runs every program on zeros, a command after the other. Drivers and
/// libraries load kernels when they are first used, which they may not while a
/// graph is captured; and a kernel that fails is named. Leaves arenas and
/// batches as they are to be found.
absl::Status CudaExecutor::warmUp() {
  auto fillArenas = [&](unsigned char value) {
    if (spec.arenaBytes > 0)
      for (const Device &device : devices) {
        if (gpus.size() > 1)
          if (absl::Status s = device.gpu->context->makeCurrent(); !s.ok())
            return s;
        if (absl::Status s = device.gpu->context->check(
                driver->memsetD8Async(device.arena.address(), value,
                                      spec.arenaBytes, device.gpu->main->get()),
                "clearing an arena");
            !s.ok())
          return s;
      }
    return absl::OkStatus();
  };
  if (absl::Status s = fillArenas(0); !s.ok())
    return s;
  for (const std::unique_ptr<Program> &program : programs)
    if (absl::Status s = program->runSerialized(batches[0].memory.data(),
                                                cudaOptions.deadline);
        !s.ok())
      return s;
  unsigned char initial = options.poisonPadding ? 0xff : 0;
  if (absl::Status s = fillArenas(initial); !s.ok())
    return s;
  for (const Batch &batch : batches)
    if (host.bytes() > 0)
      std::memset(batch.memory.data(), initial, host.bytes());
  for (const std::unique_ptr<Gpu> &gpu : gpus)
    if (absl::Status s = waitForCopies(*gpu, "clearing the arenas"); !s.ok())
      return s;
  return absl::OkStatus();
}

absl::Status CudaExecutor::captureBatches() {
  if (cudaOptions.serialize)
    return absl::OkStatus();
  for (Batch &batch : batches)
    for (const std::unique_ptr<Program> &program : programs) {
      absl::StatusOr<std::vector<Graph>> graphs =
          program->capture(batch.memory.data());
      if (!graphs.ok())
        return graphs.status();
      batch.graphs.push_back(*std::move(graphs));
    }
  return absl::OkStatus();
}
