//===- TuneGemms.cpp - The fastest algorithms of GEMMs --------------------===//
//
// Before programs are prepared, every GEMM is timed with the first
// algorithms of the library's heuristics, on the arena of the first device,
// which holds nothing yet. Ranks do not time on their own: where several
// compute the same values, they have to compute the same bits.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaExecutor.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::Status CudaExecutor::tuneGemms() {
  if (cudaOptions.gemmCachePath.empty() || !cublasLt)
    return absl::OkStatus();
  const Gpu &gpu = *gpus[0];
  int version = 0;
  if (absl::Status s = gpu.context->check(driver->driverGetVersion(&version),
                                          "cuDriverGetVersion");
      !s.ok())
    return s;
  choices = std::make_unique<GemmChoices>(
      absl::StrCat(gpu.context->name(), "; driver ", version, "; cuBLASLt ",
                   cublasLt->getVersion()));
  Store *store = cudaOptions.store;
  if (!store || store->ranks().rank == 0) {
    choices->readFile(cudaOptions.gemmCachePath);
    if (absl::Status s = timeGemms(gpu); !s.ok())
      return s;
    if (absl::Status s = choices->writeFile(cudaOptions.gemmCachePath); !s.ok())
      return s;
  }
  if (!store)
    return absl::OkStatus();
  absl::StatusOr<std::string> text =
      store->broadcast("timing GEMMs", choices->text(), cudaOptions.deadline);
  if (text.ok())
    choices->read(*text);
  return text.status();
}

absl::Status CudaExecutor::timeGemms(const Gpu &gpu) {
  absl::StatusOr<DeviceMemory> workspace =
      DeviceMemory::allocate(*gpu.context, cudaOptions.gemmWorkspaceBytes,
                             "the scratch memory of GEMMs to be timed");
  if (!workspace.ok())
    return workspace.status();
  CUdeviceptr arena = devices[0].arena.address();
  for (const ProgramSpec &program : spec.programs)
    for (const GemmRequest &request : gemmRequests(program)) {
      if (choices->find(request.name()))
        continue;
      GemmOperands operands = placesOf(*request.command, [&](uint32_t buffer) {
        return arena + program.buffers[buffer].offset;
      });
      absl::StatusOr<std::unique_ptr<Gemm>> gemm =
          Gemm::prepare(*gpu.gemms, request, operands,
                        cudaOptions.gemmWorkspaceBytes, nullptr);
      if (!gemm.ok())
        return gemm.status();
      absl::StatusOr<GemmChoices::Choice> best = (*gemm)->fastest(
          operands, workspace->address(), cudaOptions.gemmWorkspaceBytes,
          *gpu.main, [&] { return waitForCopies(gpu, "timing a GEMM"); });
      if (!best.ok())
        return best.status();
      choices->add(request.name(), *best);
    }
  return absl::OkStatus();
}
