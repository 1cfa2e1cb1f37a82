//===- Program.cpp - A program issued to streams --------------------------===//

#include "backends/cuda/Program.h"

#include "plan/Accesses.h"

#include <algorithm>
#include <chrono>

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

absl::Status Program::prepareCommand(uint32_t number, int64_t runs) {
  const Command &command = spec.commands[number];
  if (std::holds_alternative<CollectiveStartCommand>(command.operation))
    return prepareCollective(number, runs);
  auto *gemm = std::get_if<GemmCommand>(&command.operation);
  if (!gemm)
    return absl::OkStatus();
  if (gemm->m == 0 || gemm->n == 0 || gemm->batch == 0)
    return gemm->columnSums < 0 || spec.buffers[gemm->columnSums].bytes == 0
               ? absl::OkStatus()
               : absl::UnimplementedError("sums of columns by a GEMM "
                                          "without elements on a GPU");
  if (gemm->k == 0)
    return absl::UnimplementedError("a GEMM of empty factors on a GPU");
  std::vector<GemmRequest> requests = gemmRequests(spec);
  auto request =
      std::find_if(requests.begin(), requests.end(),
                   [&](const GemmRequest &of) { return of.number == number; });
  for (const std::unique_ptr<Gpu> &gpu : set.gpus) {
    auto first = std::find_if(
        set.devices.begin(), set.devices.end(),
        [&](const Device &device) { return device.gpu == gpu.get(); });
    absl::StatusOr<std::unique_ptr<Gemm>> prepared = Gemm::prepare(
        *gpu->gemms, *request,
        placesOf(*gemm,
                 [&](uint32_t buffer) { return address(*first, buffer, 0); }),
        set.maxGemmWorkspace, set.choices);
    if (!prepared.ok())
      return prepared.status();
    workspaceSize = std::max(workspaceSize, (*prepared)->workspaceBytes());
    gemms[number].push_back(*std::move(prepared));
  }
  return absl::OkStatus();
}

absl::Status Program::prepareCollective(uint32_t number, int64_t runs) {
  auto &command =
      std::get<CollectiveStartCommand>(spec.commands[number].operation);
  bool moves = false;
  for (const CollectiveItem &item : command.items)
    moves |=
        spec.buffers[item.in].stride > 0 || spec.buffers[item.out].stride > 0;
  auto pointer = [&](const Device &device, uint32_t buffer, int64_t run) {
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
      for (const Device &device : set.devices) {
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
  auto add = [&](const Gpu &gpu, std::vector<Event> &list) {
    absl::StatusOr<Event> event = Event::create(*gpu.context);
    if (!event.ok())
      return event.status();
    list.push_back(*std::move(event));
    return absl::OkStatus();
  };
  for (const Command &command : spec.commands)
    for (uint32_t other : command.after)
      for (std::vector<Event> &list = events[other];
           list.size() < set.devices.size();)
        if (absl::Status s = add(*set.devices[list.size()].gpu, list); !s.ok())
          return s;
  for (const std::unique_ptr<Gpu> &gpu : set.gpus) {
    Ends &of = ends.emplace_back();
    for (const Device &device : set.devices)
      for (const std::shared_ptr<Stream> &stream : device.streams) {
        if (device.gpu != gpu.get() ||
            std::find(of.streams.begin(), of.streams.end(), stream.get()) !=
                of.streams.end())
          continue;
        of.streams.push_back(stream.get());
        if (absl::Status s = add(*gpu, of.ends); !s.ok())
          return s;
      }
    if (absl::Status s = add(*gpu, of.begin); !s.ok())
      return s;
  }
  return absl::OkStatus();
}

std::string Program::describe(uint32_t command) const {
  const Command &of = spec.commands[command];
  std::string what(nameOf(of));
  if (auto *launch = std::get_if<LaunchCommand>(&of.operation))
    absl::StrAppend(&what, " of ", set.plan.kernels[launch->kernel]);
  if (!of.source.empty())
    absl::StrAppend(&what, ", ", of.source);
  return what;
}

absl::Status Program::annotate(const absl::Status &status,
                               uint32_t command) const {
  if (status.ok())
    return status;
  return absl::Status(status.code(),
                      absl::StrCat("program \"", spec.name, "\", command ",
                                   command, " (", describe(command),
                                   "): ", status.message()));
}

CUdeviceptr Program::address(const Device &device, uint32_t buffer,
                             int64_t run) const {
  const BufferSpec &of = spec.buffers[buffer];
  return device.arena.address() + of.offset + run * of.stride;
}

/// One GPU is current all the time.
absl::Status Program::enter(const Gpu &gpu) const {
  return set.gpus.size() > 1 ? gpu.context->makeCurrent() : absl::OkStatus();
}

absl::StatusOr<std::vector<Graph>> Program::capture(char *batch) {
  std::vector<const Stream *> mains;
  for (const std::unique_ptr<Gpu> &gpu : set.gpus)
    mains.push_back(gpu->main.get());
  absl::StatusOr<std::vector<Graph>> graphs =
      Graph::capture(mains, [&] { return issueAll(batch); });
  if (!graphs.ok())
    return absl::Status(graphs.status().code(),
                        absl::StrCat("capturing program \"", spec.name,
                                     "\": ", graphs.status().message()));
  return graphs;
}

absl::Status Program::runSerialized(char *batch, absl::Duration deadline) {
  serialized = deadline;
  absl::Status status = issueAll(batch);
  serialized.reset();
  return status;
}

absl::StatusOr<double> Program::timeAlone(uint32_t command, int repeats,
                                          char *batch,
                                          absl::Duration deadline) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start;
  // The first one is not counted.
  for (int i = -1; i < repeats; ++i) {
    isRecorded.assign(spec.commands.size(), false);
    if (absl::Status s = annotate(issueCommand(command, 0, batch), command);
        !s.ok())
      return s;
    if (i >= 0)
      continue;
    if (absl::Status s = annotate(waitForAll(deadline), command); !s.ok())
      return s;
    start = Clock::now();
  }
  if (absl::Status s = annotate(waitForAll(deadline), command); !s.ok())
    return s;
  return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}

absl::Status Program::waitForAll(absl::Duration deadline) {
  for (size_t gpu = 0; gpu < ends.size(); ++gpu) {
    if (absl::Status s = enter(*set.gpus[gpu]); !s.ok())
      return s;
    Ends &of = ends[gpu];
    for (size_t i = 0; i < of.streams.size(); ++i) {
      if (absl::Status s = of.ends[i].record(*of.streams[i]); !s.ok())
        return s;
      if (absl::Status s = of.ends[i].wait(
              deadline, "running it", [&] { return set.collectives.check(); });
          !s.ok())
        return s;
    }
  }
  return absl::OkStatus();
}

absl::Status Program::issueAll(char *batch) {
  isRecorded.assign(spec.commands.size(), false);
  // A run starts on all streams of a GPU when its main one is there.
  for (size_t gpu = 0; gpu < ends.size(); ++gpu) {
    if (absl::Status s = enter(*set.gpus[gpu]); !s.ok())
      return s;
    Event &begin = ends[gpu].begin[0];
    if (absl::Status s = begin.record(*set.gpus[gpu]->main); !s.ok())
      return s;
    for (const Stream *stream : ends[gpu].streams)
      if (absl::Status s = stream->waitFor(begin); !s.ok())
        return s;
  }
  for (uint32_t i = 0; i < spec.commands.size(); ++i) {
    auto *loop = std::get_if<LoopCommand>(&spec.commands[i].operation);
    uint32_t last = loop ? i + loop->commands : i;
    for (int64_t run = 0; run < (loop ? loop->runs : 1); ++run)
      for (uint32_t body = loop ? i + 1 : i; body <= last; ++body)
        if (absl::Status s = annotate(issueCommand(body, run, batch), body);
            !s.ok())
          return s;
    i = last;
  }
  // And ends there when all are there.
  for (size_t gpu = 0; gpu < ends.size(); ++gpu) {
    if (absl::Status s = enter(*set.gpus[gpu]); !s.ok())
      return s;
    Ends &of = ends[gpu];
    for (size_t i = 0; i < of.streams.size(); ++i) {
      if (absl::Status s = of.ends[i].record(*of.streams[i]); !s.ok())
        return s;
      if (absl::Status s = set.gpus[gpu]->main->waitFor(of.ends[i]); !s.ok())
        return s;
    }
  }
  return absl::OkStatus();
}

absl::Status Program::issueCommand(uint32_t number, int64_t run, char *batch) {
  NvtxRange range(set.nvtx, set.nvtx ? describe(number) : std::string());
  const Command &command = spec.commands[number];
  bool isCollective =
      std::holds_alternative<CollectiveStartCommand>(command.operation);
  std::vector<const Stream *> streams;
  for (const Device &device : set.devices)
    streams.push_back(&device.stream(command.stream));
  for (uint32_t other : command.after) {
    // In the first run of a loop there is nothing of the run before.
    if (!isRecorded[other])
      continue;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (absl::Status s = enter(*set.devices[i].gpu); !s.ok())
        return s;
      if (absl::Status s = streams[i]->waitFor(events[other][i]); !s.ok())
        return s;
    }
  }
  if (isCollective) {
    const auto &ofRuns = collectives[number];
    if (absl::Status s = ofRuns[ofRuns.size() > 1 ? run : 0]->issue(streams);
        !s.ok())
      return s;
  } else {
    for (const Device &device : set.devices) {
      if (absl::Status s = enter(*device.gpu); !s.ok())
        return s;
      if (absl::Status s = issueOn(device, number, run, batch); !s.ok())
        return s;
    }
  }
  if (serialized)
    if (absl::Status s = waitForAll(*serialized); !s.ok())
      return s;
  auto own = events.find(number);
  if (own == events.end())
    return absl::OkStatus();
  isRecorded[number] = true;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (absl::Status s = enter(*set.devices[i].gpu); !s.ok())
      return s;
    if (absl::Status s = own->second[i].record(*streams[i]); !s.ok())
      return s;
  }
  return absl::OkStatus();
}

absl::Status Program::launch(const LaunchCommand &launch, const Device &device,
                             int64_t run, const Stream &stream) const {
  std::vector<CUdeviceptr> values;
  for (uint32_t buffer : launch.buffers)
    values.push_back(address(device, buffer, run));
  values.push_back(device.kernelContexts.address() +
                   run * device.kernelContextBytes);
  std::vector<void *> pointers;
  for (CUdeviceptr &value : values)
    pointers.push_back(&value);
  const cuda::Context &context = *device.gpu->context;
  return context.check(
      context.driver().launchKernel(device.gpu->kernels.kernel(launch.kernel),
                                    launch.extent, 1, 1, launch.threads, 1, 1,
                                    0, stream.get(), pointers.data(), nullptr),
      "cuLaunchKernel");
}

absl::Status Program::issueOn(const Device &device, uint32_t number,
                              int64_t run, char *batch) {
  const Command &command = spec.commands[number];
  const Stream &stream = device.stream(command.stream);
  const cuda::Context &context = *device.gpu->context;
  const Driver &driver = context.driver();
  auto at = [&](uint32_t buffer) { return address(device, buffer, run); };
  if (auto *launched = std::get_if<LaunchCommand>(&command.operation))
    return launch(*launched, device, run, stream);
  if (auto *gemm = std::get_if<GemmCommand>(&command.operation)) {
    auto prepared = gemms.find(number);
    if (prepared == gemms.end())
      return absl::OkStatus();
    size_t gpu = 0;
    while (set.gpus[gpu].get() != device.gpu)
      ++gpu;
    return prepared->second[gpu]->issue(placesOf(*gemm, at),
                                        device.workspace.address(), stream);
  }
  if (auto *copy = std::get_if<CopyCommand>(&command.operation)) {
    uint64_t bytes = spec.buffers[copy->in].bytes;
    if (bytes == 0)
      return absl::OkStatus();
    return context.check(driver.memcpyDtoDAsync(at(copy->out), at(copy->in),
                                                bytes, stream.get()),
                         "cuMemcpyDtoDAsync");
  }
  if (auto *clear = std::get_if<ClearCommand>(&command.operation)) {
    uint64_t bytes = spec.buffers[clear->buffer].bytes;
    if (bytes == 0)
      return absl::OkStatus();
    return context.check(
        driver.memsetD8Async(at(clear->buffer), 0, bytes, stream.get()),
        "cuMemsetD8Async");
  }
  if (auto *upload = std::get_if<UploadCommand>(&command.operation)) {
    const TensorSpec &tensor = set.plan.tensors[upload->tensor];
    if (tensor.bytes == 0)
      return absl::OkStatus();
    return context.check(
        driver.memcpyHtoDAsync(
            device.arena.address() + tensor.offset,
            batch + set.host.inputOffset(upload->tensor, device.number),
            tensor.bytes, stream.get()),
        "cuMemcpyHtoDAsync");
  }
  if (auto *download = std::get_if<DownloadCommand>(&command.operation))
    for (const HostShard &shard :
         set.host.resultShards(this->number, download->result)) {
      const BufferSpec &from =
          spec.buffers[spec.results[download->result].buffer];
      if (shard.device == device.number && from.bytes > 0)
        return context.check(
            driver.memcpyDtoHAsync(batch + shard.offset,
                                   at(spec.results[download->result].buffer),
                                   from.bytes, stream.get()),
            "cuMemcpyDtoHAsync");
    }
  return absl::OkStatus();
}
