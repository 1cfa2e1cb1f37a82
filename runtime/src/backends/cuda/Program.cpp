//===- Program.cpp - A program issued to streams --------------------------===//

#include "backends/cuda/Program.h"

#include "plan/Accesses.h"
#include "shardc-rt/HostArray.h"

#include <algorithm>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

/// Calls `visit` with each command that is no loop and the runs of the loop it
/// is in, which is 1 outside of loops.
template <typename Visit>
static absl::Status forEachCommand(const ProgramSpec &program, Visit visit) {
  int64_t runs = 1;
  uint32_t left = 0;
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    if (auto *loop = std::get_if<LoopCommand>(&program.commands[i].operation)) {
      runs = loop->runs;
      left = loop->commands;
      continue;
    }
    if (absl::Status s = visit(i, runs); !s.ok())
      return s;
    if (left > 0 && --left == 0)
      runs = 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Program>> Program::prepare(const DeviceSet &set,
                                                          size_t number) {
  std::unique_ptr<Program> program(new Program(set, number));
  if (absl::Status s =
          forEachCommand(program->spec,
                         [&](uint32_t command, int64_t runs) {
                           return program->annotate(
                               program->prepareCommand(command, runs), command);
                         });
      !s.ok())
    return s;
  if (absl::Status s = program->prepareEvents(); !s.ok())
    return s;
  return program;
}

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

/// The largest power of two, 256 at most, that divides all of `addresses`.
static uint32_t alignmentOf(absl::Span<const uint64_t> addresses) {
  uint64_t bits = 256;
  for (uint64_t address : addresses)
    bits |= address;
  return static_cast<uint32_t>(bits & -bits);
}

absl::Status Program::prepareCommand(uint32_t number, int64_t runs) {
  const Command &command = spec.commands[number];
  if (std::holds_alternative<CollectiveStartCommand>(command.operation))
    return prepareCollective(number, runs);
  auto *gemm = std::get_if<GemmCommand>(&command.operation);
  if (!gemm || gemm->m == 0 || gemm->n == 0 || gemm->batch == 0)
    return absl::OkStatus();
  if (gemm->k == 0)
    return absl::UnimplementedError("a product of empty factors on a GPU");
  std::vector<uint64_t> addresses;
  for (int64_t buffer : {int64_t(gemm->a), int64_t(gemm->b), int64_t(gemm->c),
                         int64_t(gemm->bias)})
    if (buffer >= 0) {
      addresses.push_back(spec.buffers[buffer].offset);
      if (runs > 1)
        addresses.push_back(spec.buffers[buffer].stride);
    }
  absl::StatusOr<std::unique_ptr<Gemm>> prepared =
      Gemm::prepare(*set.gemms, *gemm, spec.buffers[gemm->a].dtype,
                    alignmentOf(addresses), set.maxGemmWorkspace);
  if (!prepared.ok())
    return prepared.status();
  workspaceSize = std::max(workspaceSize, (*prepared)->workspaceBytes());
  gemms[number] = *std::move(prepared);
  return absl::OkStatus();
}

absl::Status Program::prepareCollective(uint32_t number, int64_t runs) {
  auto &command =
      std::get<CollectiveStartCommand>(spec.commands[number].operation);
  // Others are not shared by the devices of a GPU.
  if (spec.commands[number].stream != rt::Stream::Communication)
    return absl::DataLossError(absl::StrCat(
        "a collective on stream ", toString(spec.commands[number].stream)));
  bool moves = false;
  for (const CollectiveItem &item : command.items)
    moves |=
        spec.buffers[item.in].stride > 0 || spec.buffers[item.out].stride > 0;
  auto pointer = [&](int64_t device, uint32_t buffer, int64_t run) {
    return reinterpret_cast<void *>(
        static_cast<uintptr_t>(address(device, buffer, run)));
  };
  for (int64_t run = 0; run < (moves ? runs : 1); ++run) {
    CollectiveSpec bound{
        command.kind, command.reduction, command.axes, command.targetAxes, {}};
    for (const CollectiveItem &item : command.items) {
      CollectiveTensor &tensor = bound.tensors.emplace_back();
      tensor.dtype = spec.buffers[item.in].dtype;
      tensor.inShape = spec.buffers[item.in].shape;
      tensor.outShape = spec.buffers[item.out].shape;
      tensor.dim = item.dim;
      tensor.splitDim = item.splitDim;
      for (size_t device = 0; device < set.devices.size(); ++device) {
        tensor.in.push_back(pointer(device, item.in, run));
        tensor.out.push_back(pointer(device, item.out, run));
      }
    }
    if (run == 0)
      wireSize += rt::wireBytes(set.plan.mesh, bound) * runs;
    joinNeighbours(bound, set.plan.alignment);
    absl::StatusOr<std::unique_ptr<DeviceCollective>> prepared =
        set.collectives.prepare(set.plan.mesh, bound);
    if (!prepared.ok())
      return prepared.status();
    collectives[number].push_back(*std::move(prepared));
  }
  return absl::OkStatus();
}

absl::Status Program::prepareEvents() {
  auto add = [&](std::vector<Event> &list) {
    absl::StatusOr<Event> event = Event::create(set.context);
    if (event.ok())
      list.push_back(*std::move(event));
    return event.status();
  };
  for (const Command &command : spec.commands)
    for (uint32_t other : command.after)
      for (std::vector<Event> &list = events[other];
           list.size() < set.devices.size();)
        if (absl::Status s = add(list); !s.ok())
          return s;
  for (const Device &device : set.devices)
    for (const std::shared_ptr<Stream> &stream : device.streams)
      if (std::find(streams.begin(), streams.end(), stream.get()) ==
          streams.end()) {
        streams.push_back(stream.get());
        if (absl::Status s = add(ends); !s.ok())
          return s;
      }
  return add(begin);
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
