//===- LoadExecutor.cpp - From a plan to graphs on GPUs -------------------===//
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
    absl::StatusOr<GpuDescription> gpu = describeGpu(**driver, i);
    if (!gpu.ok())
      return gpu.status();
    gpus.push_back({gpu->name, gpu->architecture});
  }
  return gpus;
}

/// The devices of the mesh that this process holds: as many as each other, in
/// the order of ranks.
static absl::StatusOr<std::vector<int64_t>>
devicesOf(const Plan &plan, const CudaOptions &options) {
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
  if (plan->gpuTarget.empty())
    return absl::UnavailableError(
        absl::StrCat("the plan is for CPUs (", plan->cpuTarget,
                     "), and these devices are GPUs: compile the model with "
                     "--target=cuda:sm_90, or what they are"));
  absl::StatusOr<std::vector<int64_t>> local = devicesOf(*plan, cudaOptions);
  if (!local.ok())
    return local.status();
  auto executor = std::make_unique<CudaExecutor>(
      std::move(plan), options, std::move(cudaOptions), *std::move(local));
  if (absl::Status s = executor->load(); !s.ok())
    return s;
  return executor;
}

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
  if (absl::Status s = tuneProducts(); !s.ok())
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
  if (!cudaOptions.nvtxPath.empty()) {
    absl::StatusOr<std::unique_ptr<Nvtx>> opened =
        Nvtx::open(cudaOptions.nvtxPath);
    if (!opened.ok())
      return opened.status();
    nvtx = *std::move(opened);
  }
  for (int gpu = 0; gpu < cudaOptions.gpus; ++gpu)
    if (absl::Status s = openGpu(cudaOptions.gpu + gpu); !s.ok())
      return s;
  return absl::OkStatus();
}

absl::Status CudaExecutor::openGpu(int ordinal) {
  Gpu &gpu = *gpus.emplace_back(std::make_unique<Gpu>());
  absl::StatusOr<std::unique_ptr<cuda::Context>> retained =
      cuda::Context::create(*driver, ordinal);
  if (!retained.ok())
    return retained.status();
  gpu.context = *std::move(retained);
  if (absl::Status s = checkArchitecture(ownPlan->gpuTarget, *gpu.context);
      !s.ok())
    return s;
  if (cublasLt) {
    absl::StatusOr<std::unique_ptr<GemmLibrary>> library =
        GemmLibrary::create(*cublasLt, *gpu.context);
    if (!library.ok())
      return library.status();
    gpu.gemms = *std::move(library);
  }
  return absl::OkStatus();
}

/// Parts of one GPU, or GPUs that meet through NCCL.
absl::Status CudaExecutor::connectDevices() {
  if (!cudaOptions.store && gpus.size() == 1) {
    absl::StatusOr<std::unique_ptr<DeviceCollectives>> created =
        createVirtualCollectives(*gpus[0]->context);
    if (created.ok())
      collectives = *std::move(created);
    return created.status();
  }
  absl::StatusOr<std::unique_ptr<Nccl>> library =
      Nccl::open(cudaOptions.ncclPath);
  if (!library.ok())
    return library.status();
  nccl = *std::move(library);
  if (Store *store = cudaOptions.store) {
    const std::string mine =
        absl::StrCat("plan ", absl::Hex(ownPlan->fingerprint, absl::kZeroPad16),
                     ", seed ", options.seed);
    absl::StatusOr<std::vector<std::string>> all =
        store->gatherAll("comparing plans", mine, cudaOptions.deadline);
    if (!all.ok())
      return all.status();
    for (size_t rank = 0; rank < all->size(); ++rank)
      if ((*all)[rank] != mine)
        return absl::InvalidArgumentError(absl::StrCat(
            "rank ", rank, " has ", (*all)[rank], ", and this one has ", mine));
  }
  std::vector<LocalDevice> ours;
  for (size_t i = 0; i < local.size(); ++i)
    ours.push_back({local[i], gpus[i]->context.get()});
  absl::StatusOr<std::unique_ptr<Communicators>> communicators =
      Communicators::create(*nccl, ownPlan->mesh, std::move(ours),
                            cudaOptions.store, cudaOptions.deadline);
  if (!communicators.ok())
    return communicators.status();
  collectives = createNcclCollectives(*std::move(communicators));
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
  for (const TensorSpec &tensor : ownPlan->tensors) {
    largest = std::max(largest, tensor.bytes);
    std::vector<Shard> &ofTensor = shards.emplace_back();
    for (int64_t device : local)
      ofTensor.push_back(
          shardOf(ownPlan->mesh, tensor.sharding, tensor.shape, device));
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
  if (absl::Status s =
          keep(DeviceMemory::allocate(*gpu.context, ownPlan->arenaBytes,
                                      absl::StrCat("the arena of device ",
                                                   number, " of ",
                                                   ownPlan->mesh.numDevices())),
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
  for (const ProgramSpec &program : ownPlan->programs)
    for (const Command &command : program.commands)
      if (auto *loop = std::get_if<LoopCommand>(&command.operation))
        runs = std::max(runs, loop->runs);
  const Mesh &mesh = ownPlan->mesh;
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
            keep(Module::load(*gpu->context, ownPlan->code, ownPlan->kernels,
                              absl::StrCat("the kernels of ", ownPlan->model)),
                 gpu->kernels);
        !s.ok())
      return s;
  set.reset(new DeviceSet{*ownPlan, gpus, host, devices, *collectives,
                          cudaOptions.gemmWorkspaceBytes, choices.get(),
                          nvtx.get()});
  uint64_t &workspace = gemmScratchBytes;
  for (size_t number = 0; number < ownPlan->programs.size(); ++number) {
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
                     absl::StrCat("matrix products of device ", device.number)),
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
    if (ownPlan->arenaBytes > 0)
      for (const Device &device : devices) {
        if (gpus.size() > 1)
          if (absl::Status s = device.gpu->context->makeCurrent(); !s.ok())
            return s;
        if (absl::Status s = device.gpu->context->check(
                driver->memsetD8Async(device.arena.address(), value,
                                      ownPlan->arenaBytes,
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
