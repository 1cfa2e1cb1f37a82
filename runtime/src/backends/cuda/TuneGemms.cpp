//===- TuneGemms.cpp - The fastest algorithms of GEMMs --------------------===//

#include "backends/cuda/TuneGemms.h"

#include "backends/cuda/DeviceMemory.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

/// Times the GEMMs of `plan` that `choices` lacks, and adds the fastest
/// algorithm of each.
static absl::Status timeGemms(const LocalGpus &local, const PlanSpec &plan,
                              const CudaOptions &options,
                              GemmChoices &choices) {
  const Gpu &gpu = *local.gpus[0];
  absl::StatusOr<DeviceMemory> arena = DeviceMemory::allocate(
      *gpu.context, plan.arenaBytes, "the operands of GEMMs to be timed");
  if (!arena.ok())
    return arena.status();
  absl::StatusOr<DeviceMemory> workspace =
      DeviceMemory::allocate(*gpu.context, options.gemmWorkspaceBytes,
                             "the scratch memory of GEMMs to be timed");
  if (!workspace.ok())
    return workspace.status();
  for (const PlanSpec &rank : plan.ranks())
    for (const ProgramSpec &program : rank.programs)
      for (const GemmRequest &request : gemmRequests(program)) {
        if (choices.find(request.name()))
          continue;
        cuda::GemmOperands operands =
            placesOf(*request.command, [&](uint32_t buffer) {
              return arena->address() + program.buffers[buffer].offset;
            });
        absl::StatusOr<std::unique_ptr<Gemm>> gemm = Gemm::prepare(
            *gpu.gemms, request, operands, options.gemmWorkspaceBytes, nullptr);
        if (!gemm.ok())
          return gemm.status();
        absl::StatusOr<GemmChoices::Choice> best = (*gemm)->fastest(
            operands, workspace->address(), options.gemmWorkspaceBytes,
            *gpu.main,
            [&] { return local.wait(gpu, options.deadline, "timing a GEMM"); });
        if (!best.ok())
          return best.status();
        choices.add(request.name(), *best);
      }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<GemmChoices>>
shardc::rt::cuda::tuneGemms(const LocalGpus &local, const PlanSpec &plan,
                            const CudaOptions &options) {
  if (options.gemmCachePath.empty() || !local.cublasLt)
    return nullptr;
  const cuda::Context &context = *local.gpus[0]->context;
  int version = 0;
  if (absl::Status s = context.check(local.driver->driverGetVersion(&version),
                                     "cuDriverGetVersion");
      !s.ok())
    return s;
  auto choices = std::make_unique<GemmChoices>(
      absl::StrCat(context.name(), "; driver ", version, "; cuBLASLt ",
                   local.cublasLt->getVersion()));
  Store *store = options.store;
  if (!store || store->ranks().rank == 0) {
    choices->readFile(options.gemmCachePath);
    if (absl::Status s = timeGemms(local, plan, options, *choices); !s.ok())
      return s;
    if (absl::Status s = choices->writeFile(options.gemmCachePath); !s.ok())
      return s;
  }
  if (!store)
    return choices;
  absl::StatusOr<std::string> text =
      store->broadcast("timing GEMMs", choices->text(), options.deadline);
  if (!text.ok())
    return text.status();
  choices->read(*text);
  return choices;
}
