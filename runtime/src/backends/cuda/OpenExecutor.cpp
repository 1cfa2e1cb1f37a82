//===- OpenExecutor.cpp - Libraries, GPUs and the way between them --------===//

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
  for (const ProgramSpec &program : spec.programs)
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
  if (absl::Status s = checkArchitecture(spec.gpuTarget, *gpu.context); !s.ok())
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
        absl::StrCat("plan ", absl::Hex(spec.fingerprint, absl::kZeroPad16),
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
      Communicators::create(*nccl, spec.mesh, std::move(ours),
                            cudaOptions.store, cudaOptions.deadline);
  if (!communicators.ok())
    return communicators.status();
  collectives = createNcclCollectives(*std::move(communicators));
  return absl::OkStatus();
}
