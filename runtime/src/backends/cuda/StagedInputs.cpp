//===- StagedInputs.cpp - The inputs of a batch on a GPU ------------------===//

#include "backends/cuda/StagedInputs.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::StatusOr<StagedInputs>
StagedInputs::create(const Gpu &gpu, const HostLayout &host,
                     const std::vector<Device> &devices) {
  StagedInputs staged;
  staged.gpu = &gpu;
  staged.host = &host;
  uint64_t total = 0;
  for (size_t input = 0; input < host.numInputs(); ++input) {
    std::vector<Run> &ofInput = staged.runs.emplace_back();
    const uint64_t bytes = host.inputBytes(input),
                   padded = host.paddedBytes(input);
    for (const Device &device : devices) {
      std::optional<uint64_t> offset = host.offsetOf(input, device.number);
      if (device.gpu != &gpu || !offset ||
          !staged.places.try_emplace(*offset, total).second)
        continue;
      uint64_t behind =
          ofInput.empty() ? 0 : ofInput.back().bytes - bytes + padded;
      if (!ofInput.empty() && *offset == ofInput.back().offset + behind)
        ofInput.back().bytes = behind + bytes;
      else
        ofInput.push_back({*offset, bytes});
      total += padded;
    }
  }
  absl::StatusOr<DeviceMemory> memory =
      DeviceMemory::allocate(*gpu.context, total, "inputs of runs");
  if (!memory.ok())
    return memory.status();
  staged.memory = *std::move(memory);
  absl::StatusOr<Event> event = Event::create(*gpu.context);
  if (!event.ok())
    return event.status();
  staged.copied = std::make_unique<Event>(*std::move(event));
  if (total > 0)
    if (absl::Status s = gpu.context->check(
            gpu.context->driver().memsetD8Async(staged.memory.address(), 0,
                                                total, gpu.main->get()),
            "clearing the inputs of runs");
        !s.ok())
      return s;
  return staged;
}

absl::Status StagedInputs::copy(size_t input, const char *batch) const {
  for (const Run &run : runs[input])
    if (run.bytes > 0)
      if (absl::Status s =
              gpu->context->check(gpu->context->driver().memcpyHtoDAsync(
                                      address(run.offset), batch + run.offset,
                                      run.bytes, gpu->uploads->get()),
                                  "copying the inputs of a run");
          !s.ok())
        return s;
  return absl::OkStatus();
}

absl::Status StagedInputs::join() const {
  if (memory.bytes() == 0)
    return absl::OkStatus();
  if (absl::Status s = copied->record(*gpu->uploads); !s.ok())
    return s;
  return gpu->main->waitFor(*copied);
}
