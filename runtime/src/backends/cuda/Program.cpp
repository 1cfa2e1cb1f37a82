//===- Program.cpp - A program issued to streams --------------------------===//

#include "backends/cuda/Program.h"

#include "plan/Accesses.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::Status Program::annotate(const absl::Status &status,
                               uint32_t command) const {
  if (status.ok())
    return status;
  const Command &of = spec.commands[command];
  std::string what(nameOf(of));
  if (auto *launch = std::get_if<LaunchCommand>(&of.operation))
    absl::StrAppend(&what, " of ", set.plan.kernels[launch->kernel]);
  if (!of.source.empty())
    absl::StrAppend(&what, ", ", of.source);
  return absl::Status(status.code(),
                      absl::StrCat("program \"", spec.name, "\", command ",
                                   command, " (", what,
                                   "): ", status.message()));
}

CUdeviceptr Program::address(int64_t device, uint32_t buffer,
                             int64_t run) const {
  const BufferSpec &of = spec.buffers[buffer];
  return set.devices[device].arena.address() + of.offset + run * of.stride;
}

absl::StatusOr<Graph>
Program::capture(const Stream &main, char *batch,
                 absl::Span<const DeviceMemory> workspaces) {
  absl::StatusOr<Graph> graph =
      Graph::capture(main, [&] { return issueAll(main, batch, workspaces); });
  if (!graph.ok())
    return absl::Status(graph.status().code(),
                        absl::StrCat("capturing program \"", spec.name,
                                     "\": ", graph.status().message()));
  return graph;
}

absl::Status Program::runSerialized(const Stream &main, char *batch,
                                    absl::Span<const DeviceMemory> workspaces,
                                    absl::Duration deadline) {
  serialized = deadline;
  absl::Status status = issueAll(main, batch, workspaces);
  serialized.reset();
  return status;
}

absl::Status Program::waitForAll(absl::Duration deadline) {
  for (size_t i = 0; i < streams.size(); ++i) {
    if (absl::Status s = ends[i].record(*streams[i]); !s.ok())
      return s;
    if (absl::Status s = ends[i].wait(deadline, "running it"); !s.ok())
      return s;
  }
  return absl::OkStatus();
}

absl::Status Program::issueAll(const Stream &main, char *batch,
                               absl::Span<const DeviceMemory> workspaces) {
  isRecorded.assign(spec.commands.size(), false);
  // A run starts on all streams when `main` is there.
  if (absl::Status s = begin[0].record(main); !s.ok())
    return s;
  for (const Stream *stream : streams)
    if (absl::Status s = stream->waitFor(begin[0]); !s.ok())
      return s;
  for (uint32_t i = 0; i < spec.commands.size(); ++i) {
    auto *loop = std::get_if<LoopCommand>(&spec.commands[i].operation);
    uint32_t last = loop ? i + loop->commands : i;
    for (int64_t run = 0; run < (loop ? loop->runs : 1); ++run)
      for (uint32_t body = loop ? i + 1 : i; body <= last; ++body)
        if (absl::Status s =
                annotate(issueCommand(body, run, batch, workspaces), body);
            !s.ok())
          return s;
    i = last;
  }
  // And ends on `main` when all are there.
  for (size_t i = 0; i < streams.size(); ++i) {
    if (absl::Status s = ends[i].record(*streams[i]); !s.ok())
      return s;
    if (absl::Status s = main.waitFor(ends[i]); !s.ok())
      return s;
  }
  return absl::OkStatus();
}

absl::Status Program::issueCommand(uint32_t number, int64_t run, char *batch,
                                   absl::Span<const DeviceMemory> workspaces) {
  const Command &command = spec.commands[number];
  int64_t devices = set.devices.size();
  auto streamOf = [&](int64_t device) -> const Stream & {
    return set.devices[device].stream(command.stream);
  };
  for (uint32_t other : command.after) {
    // In the first run of a loop there is nothing of the run before.
    if (!isRecorded[other])
      continue;
    for (int64_t device = 0; device < devices; ++device)
      if (absl::Status s = streamOf(device).waitFor(events[other][device]);
          !s.ok())
        return s;
  }
  if (std::holds_alternative<CollectiveStartCommand>(command.operation)) {
    std::vector<const Stream *> communication;
    for (int64_t device = 0; device < devices; ++device)
      communication.push_back(&streamOf(device));
    const auto &ofRuns = collectives[number];
    if (absl::Status s =
            ofRuns[ofRuns.size() > 1 ? run : 0]->issue(communication);
        !s.ok())
      return s;
  } else {
    for (int64_t device = 0; device < devices; ++device)
      if (absl::Status s =
              issueOn(device, number, run, batch, workspaces[device].address());
          !s.ok())
        return s;
  }
  if (serialized)
    if (absl::Status s = waitForAll(*serialized); !s.ok())
      return s;
  auto own = events.find(number);
  if (own == events.end())
    return absl::OkStatus();
  isRecorded[number] = true;
  for (int64_t device = 0; device < devices; ++device)
    if (absl::Status s = own->second[device].record(streamOf(device)); !s.ok())
      return s;
  return absl::OkStatus();
}

absl::Status Program::launch(const LaunchCommand &launch, int64_t device,
                             int64_t run, const Stream &stream) const {
  std::vector<CUdeviceptr> values;
  for (uint32_t buffer : launch.buffers)
    values.push_back(address(device, buffer, run));
  values.push_back(set.devices[device].kernelContexts.address() +
                   run * set.devices[device].kernelContextBytes);
  std::vector<void *> pointers;
  for (CUdeviceptr &value : values)
    pointers.push_back(&value);
  return set.context.check(set.context.driver().launchKernel(
                               set.kernels.kernel(launch.kernel), launch.extent,
                               1, 1, launch.threads, 1, 1, 0, stream.get(),
                               pointers.data(), nullptr),
                           "cuLaunchKernel");
}

absl::Status Program::issueOn(int64_t device, uint32_t number, int64_t run,
                              char *batch, CUdeviceptr workspace) {
  const Command &command = spec.commands[number];
  const Stream &stream = set.devices[device].stream(command.stream);
  const Driver &driver = set.context.driver();
  auto at = [&](uint32_t buffer) { return address(device, buffer, run); };
  if (auto *launched = std::get_if<LaunchCommand>(&command.operation))
    return launch(*launched, device, run, stream);
  if (auto *gemm = std::get_if<GemmCommand>(&command.operation)) {
    auto prepared = gemms.find(number);
    if (prepared == gemms.end())
      return absl::OkStatus();
    return prepared->second->issue({at(gemm->a), at(gemm->b), at(gemm->c),
                                    gemm->bias >= 0 ? at(gemm->bias) : 0},
                                   workspace, stream);
  }
  if (auto *copy = std::get_if<CopyCommand>(&command.operation)) {
    uint64_t bytes = spec.buffers[copy->in].bytes;
    if (bytes == 0)
      return absl::OkStatus();
    return set.context.check(driver.memcpyDtoDAsync(at(copy->out), at(copy->in),
                                                    bytes, stream.get()),
                             "cuMemcpyDtoDAsync");
  }
  if (auto *clear = std::get_if<ClearCommand>(&command.operation)) {
    uint64_t bytes = spec.buffers[clear->buffer].bytes;
    if (bytes == 0)
      return absl::OkStatus();
    return set.context.check(
        driver.memsetD8Async(at(clear->buffer), 0, bytes, stream.get()),
        "cuMemsetD8Async");
  }
  if (auto *upload = std::get_if<UploadCommand>(&command.operation)) {
    const TensorSpec &tensor = set.plan.tensors[upload->tensor];
    if (tensor.bytes == 0)
      return absl::OkStatus();
    return set.context.check(
        driver.memcpyHtoDAsync(
            set.devices[device].arena.address() + tensor.offset,
            batch + set.host.inputOffset(upload->tensor, device), tensor.bytes,
            stream.get()),
        "cuMemcpyHtoDAsync");
  }
  if (auto *download = std::get_if<DownloadCommand>(&command.operation))
    for (const HostShard &shard :
         set.host.resultShards(this->number, download->result)) {
      const BufferSpec &from =
          spec.buffers[spec.results[download->result].buffer];
      if (shard.device == device && from.bytes > 0)
        return set.context.check(
            driver.memcpyDtoHAsync(batch + shard.offset,
                                   at(spec.results[download->result].buffer),
                                   from.bytes, stream.get()),
            "cuMemcpyDtoHAsync");
    }
  return absl::OkStatus();
}
