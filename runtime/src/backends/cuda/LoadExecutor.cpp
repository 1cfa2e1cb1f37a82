//===- LoadExecutor.cpp - From a plan to graphs on a GPU ------------------===//
//
// Everything that allocates or compiles is here: runs do neither.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaExecutor.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

#include <algorithm>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::StatusOr<std::vector<GpuInfo>>
shardc::rt::listGpus(const CudaOptions &options) {
  absl::StatusOr<std::unique_ptr<Driver>> driver =
      Driver::open(options.driverPath);
  if (!driver.ok())
    return driver.status();
  absl::StatusOr<int> count = countGpus(**driver);
  if (!count.ok())
    return count.status();
  std::vector<GpuInfo> gpus;
  for (int i = 0; i < *count; ++i) {
    absl::StatusOr<std::unique_ptr<cuda::Context>> context =
        cuda::Context::create(**driver, i);
    if (!context.ok())
      return context.status();
    gpus.push_back({(*context)->name(), (*context)->architecture()});
  }
  return gpus;
}

absl::StatusOr<std::unique_ptr<Executor>>
shardc::rt::createCudaExecutor(std::shared_ptr<const Plan> plan,
                               ExecutorOptions options,
                               CudaOptions cudaOptions) {
  if (plan->gpuTarget.empty())
    return absl::UnavailableError(
        absl::StrCat("the plan is for CPUs (", plan->cpuTarget,
                     "), and these devices are GPUs: compile the model with "
                     "--target=cuda:sm_90, or what they are"));
  auto executor = std::make_unique<CudaExecutor>(std::move(plan), options,
                                                 std::move(cudaOptions));
  if (absl::Status s = executor->load(); !s.ok())
    return s;
  return executor;
}

absl::Status CudaExecutor::load() {
  if (absl::Status s = openLibraries(); !s.ok())
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

/// Whether code for `target` runs on a GPU of `architecture`.
static absl::Status checkArchitecture(const std::string &target,
                                      const cuda::Context &context) {
  int needed = 0;
  if (!absl::SimpleAtoi(absl::StripPrefix(target, "sm_"), &needed))
    return absl::UnavailableError(
        absl::StrCat("the plan is for ", target, ", which is no GPU we know"));
  if (needed > context.architecture())
    return absl::UnavailableError(absl::StrCat(
        "the plan is for ", target, " and later, and ", context.name(),
        " is sm_", context.architecture(), ": compile the model for it"));
  return absl::OkStatus();
}

absl::Status CudaExecutor::openLibraries() {
  absl::StatusOr<std::unique_ptr<Driver>> opened =
      Driver::open(cudaOptions.driverPath);
  if (!opened.ok())
    return opened.status();
  driver = *std::move(opened);
  bool hasGemms = false;
  for (const ProgramSpec &program : ownPlan->programs)
    for (const Command &command : program.commands)
      hasGemms |= std::holds_alternative<GemmCommand>(command.operation);
  if (hasGemms) {
    absl::StatusOr<std::unique_ptr<CublasLt>> library =
        CublasLt::open(cudaOptions.cublasLtPath);
    if (!library.ok())
      return library.status();
    cublasLt = *std::move(library);
  }
  absl::StatusOr<std::unique_ptr<cuda::Context>> retained =
      cuda::Context::create(*driver, cudaOptions.gpu);
  if (!retained.ok())
    return retained.status();
  context = *std::move(retained);
  if (absl::Status s = checkArchitecture(ownPlan->gpuTarget, *context); !s.ok())
    return s;
  if (cublasLt) {
    absl::StatusOr<std::unique_ptr<GemmLibrary>> library =
        GemmLibrary::create(*cublasLt, *context);
    if (!library.ok())
      return library.status();
    gemms = *std::move(library);
  }
  return absl::OkStatus();
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
  if (absl::Status s = keep(Stream::create(*context), main); !s.ok())
    return s;
  if (absl::Status s = keep(Event::create(*context), copied); !s.ok())
    return s;
  std::shared_ptr<Stream> communication;
  for (int64_t i = 0; i < ownPlan->mesh.numDevices(); ++i) {
    Device &device = devices.emplace_back();
    if (absl::Status s =
            keep(DeviceMemory::allocate(
                     *context, ownPlan->arenaBytes,
                     absl::StrCat("the arena of device ", i, " of ",
                                  ownPlan->mesh.numDevices())),
                 device.arena);
        !s.ok())
      return s;
    for (rt::Stream which :
         {rt::Stream::Compute, rt::Stream::Communication, rt::Stream::Copies}) {
      std::shared_ptr<Stream> &place =
          device.streams[static_cast<size_t>(which)];
      if (which == rt::Stream::Communication && communication) {
        place = communication;
        continue;
      }
      absl::StatusOr<Stream> stream = Stream::create(*context);
      if (!stream.ok())
        return stream.status();
      place = std::make_shared<Stream>(*std::move(stream));
      if (which == rt::Stream::Communication)
        communication = place;
    }
  }
  uint64_t largest = 0;
  for (const TensorSpec &tensor : ownPlan->tensors) {
    largest = std::max(largest, tensor.bytes);
    std::vector<Shard> &ofTensor = shards.emplace_back();
    for (size_t device = 0; device < devices.size(); ++device)
      ofTensor.push_back(
          shardOf(ownPlan->mesh, tensor.sharding, tensor.shape, device));
  }
  return keep(PinnedMemory::allocate(*context, largest, "tensors set and read"),
              transfer);
}

absl::Status CudaExecutor::fillKernelContexts() {
  int64_t runs = 1;
  for (const ProgramSpec &program : ownPlan->programs)
    for (const Command &command : program.commands)
      if (auto *loop = std::get_if<LoopCommand>(&command.operation))
        runs = std::max(runs, loop->runs);
  const Mesh &mesh = ownPlan->mesh;
  size_t axes = mesh.axes().size(), width = axes + 2;
  uint64_t bytes = runs * width * sizeof(int64_t);
  PinnedMemory staged;
  if (absl::Status s =
          keep(PinnedMemory::allocate(*context, bytes * devices.size(),
                                      "contexts of kernels"),
               staged);
      !s.ok())
    return s;
  for (size_t i = 0; i < devices.size(); ++i) {
    char *at = staged.data() + i * bytes;
    int64_t *values = reinterpret_cast<int64_t *>(at);
    for (int64_t run = 0; run < runs; ++run) {
      for (size_t axis = 0; axis < axes; ++axis)
        *values++ = mesh.coordinate(i, axis);
      *values++ = static_cast<int64_t>(options.seed);
      *values++ = run;
    }
    Device &device = devices[i];
    device.kernelContextBytes = width * sizeof(int64_t);
    if (absl::Status s =
            keep(DeviceMemory::allocate(*context, bytes, "contexts of kernels"),
                 device.kernelContexts);
        !s.ok())
      return s;
    if (absl::Status s = context->check(
            driver->memcpyHtoDAsync(device.kernelContexts.address(), at, bytes,
                                    main->get()),
            "copying the contexts of kernels");
        !s.ok())
      return s;
  }
  return waitForCopies("copying the contexts of kernels");
}

absl::Status CudaExecutor::preparePrograms() {
  if (absl::Status s =
          keep(Module::load(*context, ownPlan->code, ownPlan->kernels,
                            absl::StrCat("the kernels of ", ownPlan->model)),
               kernels);
      !s.ok())
    return s;
  absl::StatusOr<std::unique_ptr<DeviceCollectives>> created =
      createVirtualCollectives(*context);
  if (!created.ok())
    return created.status();
  collectives = *std::move(created);
  set.reset(new DeviceSet{*ownPlan, *context, kernels, host, devices,
                          *collectives, gemms.get(),
                          cudaOptions.gemmWorkspaceBytes});
  uint64_t workspaceBytes = 0;
  for (size_t i = 0; i < ownPlan->programs.size(); ++i) {
    absl::StatusOr<std::unique_ptr<Program>> program =
        Program::prepare(*set, i);
    if (!program.ok())
      return program.status();
    workspaceBytes = std::max(workspaceBytes, (*program)->workspaceBytes());
    programs.push_back(*std::move(program));
  }
  for (size_t i = 0; i < devices.size(); ++i)
    if (absl::Status s =
            keep(DeviceMemory::allocate(*context, workspaceBytes,
                                        "scratch memory of matrix products"),
                 workspaces.emplace_back());
        !s.ok())
      return s;
  return absl::OkStatus();
}

absl::Status CudaExecutor::allocateBatches() {
  for (int i = 0; i < numBatches; ++i) {
    Batch &batch = batches.emplace_back();
    if (absl::Status s =
            keep(PinnedMemory::allocate(*context, host.bytes(), "batches"),
                 batch.memory);
        !s.ok())
      return s;
    if (absl::Status s = keep(Event::create(*context), batch.done); !s.ok())
      return s;
  }
  return absl::OkStatus();
}

/// Runs every program on zeros, a command after the other. Drivers and
/// libraries load kernels when they are first used, which they may not while a
/// graph is captured; and a kernel that fails is named. Leaves arenas and
/// batches as they are to be found.
absl::Status CudaExecutor::warmUp() {
  auto fillArenas = [&](unsigned char value) {
    if (ownPlan->arenaBytes > 0)
      for (const Device &device : devices)
        if (absl::Status s = context->check(
                driver->memsetD8Async(device.arena.address(), value,
                                      ownPlan->arenaBytes, main->get()),
                "clearing an arena");
            !s.ok())
          return s;
    return absl::OkStatus();
  };
  if (absl::Status s = fillArenas(0); !s.ok())
    return s;
  for (const std::unique_ptr<Program> &program : programs)
    if (absl::Status s = program->runSerialized(
            *main, batches[0].memory.data(), workspaces, cudaOptions.deadline);
        !s.ok())
      return s;
  unsigned char initial = options.poisonPadding ? 0xff : 0;
  if (absl::Status s = fillArenas(initial); !s.ok())
    return s;
  for (const Batch &batch : batches)
    if (host.bytes() > 0)
      std::memset(batch.memory.data(), initial, host.bytes());
  return waitForCopies("clearing the arenas");
}

absl::Status CudaExecutor::captureBatches() {
  if (cudaOptions.serialize)
    return absl::OkStatus();
  for (Batch &batch : batches)
    for (const std::unique_ptr<Program> &program : programs) {
      absl::StatusOr<Graph> graph =
          program->capture(*main, batch.memory.data(), workspaces);
      if (!graph.ok())
        return graph.status();
      batch.graphs.push_back(*std::move(graph));
    }
  return absl::OkStatus();
}
