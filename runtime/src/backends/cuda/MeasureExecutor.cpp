//===- MeasureExecutor.cpp - How long commands and copies take ------------===//

#include "backends/cuda/CudaExecutor.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::StatusOr<std::vector<double>> CudaExecutor::timeCommands(size_t program,
                                                               int repeats) {
  if (!failure.ok())
    return failure;
  if (inFlight() > 0)
    return absl::FailedPreconditionError("runs are in flight");
  std::vector<double> seconds;
  for (size_t i = 0; i < spec.programs[program].commands.size(); ++i) {
    const Command &command = spec.programs[program].commands[i];
    if (std::holds_alternative<LoopCommand>(command.operation)) {
      seconds.push_back(0);
      continue;
    }
    absl::StatusOr<double> alone = programs[program]->timeAlone(
        i, repeats, batches[0].memory.data(), cudaOptions.deadline);
    if (!alone.ok())
      return fail(alone.status());
    seconds.push_back(*alone);
  }
  return seconds;
}

absl::StatusOr<double> CudaExecutor::measureCopies(uint64_t bytes,
                                                   int repeats) {
  const Gpu &gpu = *gpus[0];
  absl::StatusOr<DeviceMemory> from =
      DeviceMemory::allocate(*gpu.context, bytes, "a copy");
  if (!from.ok())
    return from.status();
  absl::StatusOr<DeviceMemory> to =
      DeviceMemory::allocate(*gpu.context, bytes, "a copy");
  if (!to.ok())
    return to.status();
  Clock::time_point start;
  for (int i = -1; i < repeats; ++i) {
    if (absl::Status s = gpu.context->check(
            driver->memcpyDtoDAsync(to->address(), from->address(), bytes,
                                    gpu.main->get()),
            "cuMemcpyDtoDAsync");
        !s.ok())
      return s;
    if (i >= 0)
      continue;
    if (absl::Status s = waitForCopies(gpu, "copying"); !s.ok())
      return s;
    start = Clock::now();
  }
  if (absl::Status s = waitForCopies(gpu, "copying"); !s.ok())
    return s;
  double seconds =
      std::chrono::duration<double>(Clock::now() - start).count() / repeats;
  return 2 * static_cast<double>(bytes) / seconds;
}

uint64_t CudaExecutor::allocatedArenaBytes() const {
  uint64_t bytes = 0;
  for (const Device &device : devices)
    bytes += device.arena.bytes();
  return bytes;
}

absl::StatusOr<uint64_t> CudaExecutor::usedGpuBytes() const {
  const cuda::Context &context = *gpus[0]->context;
  if (absl::Status s = context.makeCurrent(); !s.ok())
    return s;
  size_t available = 0, total = 0;
  if (absl::Status s =
          context.check(driver->memGetInfo(&available, &total), "cuMemGetInfo");
      !s.ok())
    return s;
  return total - available;
}
