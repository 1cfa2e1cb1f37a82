//===- LocalGpus.cpp - The GPUs of this process ---------------------------===//

#include "backends/cuda/LocalGpus.h"

#include "exec/PlanProperties.h"
#include "plan/Accesses.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

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

/// Opens GPU `ordinal` for a plan.
static absl::StatusOr<std::unique_ptr<Gpu>>
openGpu(const LocalGpus &libraries, const PlanSpec &plan, int ordinal) {
  auto gpu = std::make_unique<Gpu>();
  absl::StatusOr<std::unique_ptr<cuda::Context>> context =
      cuda::Context::create(*libraries.driver, ordinal);
  if (!context.ok())
    return context.status();
  gpu->context = *std::move(context);
  if (absl::Status s = checkArchitecture(plan.gpuTarget, *gpu->context);
      !s.ok())
    return s;
  absl::StatusOr<cuda::Stream> main = cuda::Stream::create(*gpu->context);
  if (!main.ok())
    return main.status();
  gpu->main = std::make_unique<cuda::Stream>(*std::move(main));
  absl::StatusOr<cuda::Stream> uploads = cuda::Stream::create(*gpu->context);
  if (!uploads.ok())
    return uploads.status();
  gpu->uploads = std::make_unique<cuda::Stream>(*std::move(uploads));
  absl::StatusOr<Event> done = Event::create(*gpu->context);
  if (!done.ok())
    return done.status();
  gpu->done = std::make_unique<Event>(*std::move(done));
  if (libraries.cublasLt) {
    absl::StatusOr<std::unique_ptr<GemmLibrary>> library =
        GemmLibrary::create(*libraries.cublasLt, *gpu->context);
    if (!library.ok())
      return library.status();
    gpu->gemms = *std::move(library);
  }
  return gpu;
}

static bool hasGemms(const PlanSpec &plan) {
  for (const PlanSpec &rank : plan.ranks())
    for (const ProgramSpec &program : rank.programs)
      for (const Command &command : program.commands)
        if (std::holds_alternative<GemmCommand>(command.operation))
          return true;
  return false;
}

/// Makes the communicators of all programs, in the order of their first use by
/// program and pipeline rank. To make one takes all processes, also those whose
/// devices do not use it.
static absl::Status makeCommunicators(const PlanSpec &plan,
                                      Communicators &communicators) {
  for (size_t number = 0; number < plan.ranks()[0].programs.size(); ++number)
    for (const PlanSpec &rank : plan.ranks())
      for (const Command &command : rank.programs[number].commands) {
        if (!isCommunication(command))
          continue;
        auto *start = std::get_if<CollectiveStartCommand>(&command.operation);
        std::vector<int> axes =
            start ? start->axes : std::vector<int>{plan.pipeline->axis};
        if (absl::Status s = communicators.over(axes).status(); !s.ok())
          return s;
      }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LocalGpus>>
LocalGpus::open(const PlanSpec &plan, const CudaOptions &options) {
  auto opened = std::make_unique<LocalGpus>();
  absl::StatusOr<std::unique_ptr<Driver>> driver =
      Driver::open(options.driverPath);
  if (!driver.ok())
    return driver.status();
  opened->driver = *std::move(driver);
  if (hasGemms(plan)) {
    absl::StatusOr<std::unique_ptr<CublasLt>> library =
        CublasLt::open(options.cublasLtPath);
    if (!library.ok())
      return library.status();
    opened->cublasLt = *std::move(library);
  }
  if (!options.nvtxPath.empty()) {
    absl::StatusOr<std::unique_ptr<Nvtx>> library =
        Nvtx::open(options.nvtxPath);
    if (!library.ok())
      return library.status();
    opened->nvtx = *std::move(library);
  }
  for (int i = 0; i < options.gpus; ++i) {
    absl::StatusOr<std::unique_ptr<Gpu>> gpu =
        openGpu(*opened, plan, options.gpu + i);
    if (!gpu.ok())
      return gpu.status();
    opened->gpus.push_back(*std::move(gpu));
  }
  return opened;
}

absl::StatusOr<std::unique_ptr<DeviceCollectives>>
LocalGpus::connect(const PlanSpec &plan, uint64_t seed,
                   const std::vector<int64_t> &local,
                   const CudaOptions &options) {
  if (!options.store && gpus.size() == 1)
    return createVirtualCollectives(*gpus[0]->context, local.size(),
                                    options.deadline);
  absl::StatusOr<std::unique_ptr<Nccl>> library = Nccl::open(options.ncclPath);
  if (!library.ok())
    return library.status();
  nccl = *std::move(library);
  if (Store *store = options.store) {
    absl::StatusOr<std::vector<std::string>> all = store->gatherAll(
        "comparing plans", formatProperties(propertiesOf(plan, seed)),
        options.deadline);
    if (!all.ok())
      return all.status();
    if (absl::Status s = toStatus(findDifferences(*all)); !s.ok())
      return s;
  }
  std::vector<LocalDevice> ours;
  for (size_t i = 0; i < local.size(); ++i)
    ours.push_back({local[i], gpus[i]->context.get()});
  absl::StatusOr<std::unique_ptr<Communicators>> communicators =
      Communicators::create(*nccl, plan.mesh, std::move(ours), options.store,
                            options.deadline);
  if (!communicators.ok())
    return communicators.status();
  if (absl::Status s = makeCommunicators(plan, **communicators); !s.ok()) {
    (*communicators)->abort();
    return s;
  }
  return createNcclCollectives(*std::move(communicators));
}

absl::Status LocalGpus::wait(const Gpu &gpu, absl::Duration deadline,
                             absl::string_view what) const {
  if (gpus.size() > 1)
    if (absl::Status s = gpu.context->makeCurrent(); !s.ok())
      return s;
  if (absl::Status s = gpu.done->record(*gpu.main); !s.ok())
    return s;
  return gpu.done->wait(deadline, what);
}
