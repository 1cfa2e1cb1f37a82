//===- Program.cpp - A program issued to streams --------------------------===//

#include "backends/cuda/Program.h"

#include "backends/cuda/TimeIssued.h"
#include "exec/DescribeSteps.h"
#include "plan/Accesses.h"

#include <algorithm>
#include <set>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

Program::Program(const DeviceSet &set, size_t number)
    : set(set), number(number), devices(set.plan.ranks().size()) {
  for (const Device &device : set.devices)
    devices[device.rank].push_back(&device);
}

absl::StatusOr<std::unique_ptr<Program>> Program::prepare(const DeviceSet &set,
                                                          size_t number) {
  std::unique_ptr<Program> program(new Program(set, number));
  if (absl::Status s = program->findSteps(); !s.ok())
    return s;
  for (const Step &step : program->steps)
    if (absl::Status s =
            program->annotate(program->prepareStep(step), step.commands[0]);
        !s.ok())
      return s;
  if (absl::Status s = program->prepareEvents(); !s.ok())
    return s;
  return program;
}

/// Also counts the bytes that the devices of all ranks send.
absl::Status Program::findSteps() {
  std::vector<uint64_t> sent(devices.size());
  auto add = [&](Step step) {
    bool isHere = false;
    for (RankCommand at : step.commands) {
      isHere |= !devices[at.rank].empty();
      sent[at.rank] += sentBytes(at);
    }
    if (isHere)
      steps.push_back(std::move(step));
  };
  if (set.plan.pipeline) {
    absl::StatusOr<PipelineOrder> order = orderPipeline(set.plan, number);
    if (!order.ok())
      return order.status();
    for (PipelineStep &commands : order->steps)
      add({std::move(commands)});
  } else {
    const std::vector<Command> &commands = programOf(0).commands;
    for (uint32_t i = 0; i < commands.size(); ++i) {
      auto *loop = std::get_if<LoopCommand>(&commands[i].operation);
      uint32_t last = loop ? i + loop->commands : i;
      for (int64_t run = 0; run < (loop ? loop->runs : 1); ++run)
        for (uint32_t body = loop ? i + 1 : i; body <= last; ++body)
          add({PipelineStep{RankCommand{0, body}}, run});
      i = last;
    }
  }
  wireSize = *std::max_element(sent.begin(), sent.end());
  return absl::OkStatus();
}

/// Without the addresses of its tensors.
CollectiveSpec Program::describeCollective(RankCommand at) const {
  auto &command = operationAt<CollectiveStartCommand>(at);
  const std::vector<BufferSpec> &buffers = programOf(at.rank).buffers;
  CollectiveSpec spec{
      command.kind, command.reduction, command.axes, command.targetAxes, {}};
  spec.sources = command.sources;
  for (const CollectiveItem &item : command.items) {
    CollectiveTensor &tensor = spec.tensors.emplace_back();
    tensor.dtype = buffers[item.in].dtype;
    tensor.inShape = buffers[item.in].shape;
    tensor.outShape = buffers[item.out].shape;
    tensor.dim = item.dim;
    tensor.splitDim = item.splitDim;
  }
  return spec;
}

/// Bytes that a device sends in a run of the command.
uint64_t Program::sentBytes(RankCommand at) const {
  const Command &command = commandAt(at);
  if (std::holds_alternative<CollectiveStartCommand>(command.operation))
    return rt::wireBytes(set.plan.mesh, describeCollective(at));
  uint64_t bytes = 0;
  if (auto *send = std::get_if<SendCommand>(&command.operation))
    for (uint32_t buffer : send->buffers)
      bytes += programOf(at.rank).buffers[buffer].bytes;
  return bytes;
}

/// The devices of this process that take part, once each.
std::vector<const Device *>
Program::devicesOf(const PipelineStep &commands) const {
  std::vector<const Device *> all;
  std::set<int> ranks;
  for (RankCommand at : commands)
    if (ranks.insert(at.rank).second)
      all.insert(all.end(), devices[at.rank].begin(), devices[at.rank].end());
  return all;
}

static std::vector<int64_t>
numbersOf(const std::vector<const Device *> &devices) {
  std::vector<int64_t> numbers;
  for (const Device *device : devices)
    numbers.push_back(device->number);
  return numbers;
}

absl::Status Program::prepareStep(const Step &step) {
  RankCommand first = step.commands[0];
  const Command &command = commandAt(first);
  if (std::holds_alternative<CollectiveStartCommand>(command.operation))
    return prepareCollective(step);
  if (std::holds_alternative<SendCommand>(command.operation))
    return prepareTransfers(step.commands);
  if (std::holds_alternative<GemmCommand>(command.operation) && step.run == 0)
    return prepareGemm(first);
  return absl::OkStatus();
}

absl::Status Program::prepareGemm(RankCommand at) {
  auto &gemm = operationAt<GemmCommand>(at);
  const ProgramSpec &spec = programOf(at.rank);
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0)
    return gemm.columnSums < 0 || spec.buffers[gemm.columnSums].bytes == 0
               ? absl::OkStatus()
               : absl::UnimplementedError("sums of columns by a GEMM "
                                          "without elements on a GPU");
  if (gemm.k == 0)
    return absl::UnimplementedError("a GEMM of empty factors on a GPU");
  const GemmRequest request = gemmRequest(spec, at.command);
  for (const Device *device : devices[at.rank]) {
    std::unique_ptr<Gemm> &place = gemms[keyOf(at)][device->gpu];
    if (place)
      continue;
    absl::StatusOr<std::unique_ptr<Gemm>> prepared = Gemm::prepare(
        *device->gpu->gemms, request,
        placesOf(gemm,
                 [&](uint32_t buffer) { return address(*device, buffer, 0); }),
        set.maxGemmWorkspace, set.choices);
    if (!prepared.ok())
      return prepared.status();
    workspaceSize = std::max(workspaceSize, (*prepared)->workspaceBytes());
    place = *std::move(prepared);
  }
  return absl::OkStatus();
}

absl::Status Program::prepareCollective(const Step &step) {
  RankCommand first = step.commands[0];
  bool moves = false;
  for (const CollectiveItem &item :
       operationAt<CollectiveStartCommand>(first).items)
    for (uint32_t buffer : {item.in, item.out})
      moves |= programOf(first.rank).buffers[buffer].stride > 0;
  if (step.run > 0 && !moves)
    return absl::OkStatus();
  CollectiveSpec bound = describeCollective(first);
  for (RankCommand at : step.commands) {
    auto &items = operationAt<CollectiveStartCommand>(at).items;
    for (const Device *device : devices[at.rank])
      for (size_t i = 0; i < items.size(); ++i) {
        auto pointer = [&](uint32_t buffer) {
          return reinterpret_cast<void *>(
              static_cast<uintptr_t>(address(*device, buffer, step.run)));
        };
        bound.tensors[i].in.push_back(pointer(items[i].in));
        bound.tensors[i].out.push_back(pointer(items[i].out));
      }
  }
  // The ranks of a pipeline have tensors in other places, and all processes
  // have to join the same.
  if (step.commands.size() == 1)
    joinNeighbours(bound, set.plan.alignment);
  absl::StatusOr<std::unique_ptr<DeviceCollective>> prepared =
      set.collectives.prepare(set.plan.mesh,
                              numbersOf(devicesOf(step.commands)), bound);
  if (!prepared.ok())
    return prepared.status();
  collectives[keyOf(first)].push_back(*std::move(prepared));
  return absl::OkStatus();
}

/// One message or two: a send, then its receive.
absl::Status Program::prepareTransfers(const PipelineStep &commands) {
  std::vector<DeviceTransfer> transfers;
  for (size_t i = 0; i < commands.size(); i += 2) {
    RankCommand from = commands[i], to = commands[i + 1];
    auto &sent = operationAt<SendCommand>(from).buffers;
    auto &received = operationAt<ReceiveCommand>(to).buffers;
    auto addressOn = [&](int rank, int64_t number, uint32_t buffer) {
      for (const Device *device : devices[rank])
        if (device->number == number)
          return address(*device, buffer, 0);
      return CUdeviceptr(0);
    };
    int64_t count = set.plan.ranks()[from.rank].mesh.numDevices();
    for (int64_t device = 0; device < count; ++device)
      for (size_t part = 0; part < sent.size(); ++part) {
        DeviceTransfer one;
        one.from = set.plan.deviceOf(from.rank, device);
        one.to = set.plan.deviceOf(to.rank, device);
        one.in = addressOn(from.rank, one.from, sent[part]);
        one.out = addressOn(to.rank, one.to, received[part]);
        one.bytes = programOf(from.rank).buffers[sent[part]].bytes;
        if (one.bytes > 0)
          transfers.push_back(one);
      }
  }
  absl::StatusOr<std::unique_ptr<DeviceCollective>> prepared =
      set.collectives.prepareTransfers(set.plan.mesh,
                                       numbersOf(devicesOf(commands)),
                                       set.plan.pipeline->axis, transfers);
  if (!prepared.ok())
    return prepared.status();
  collectives[keyOf(commands[0])].push_back(*std::move(prepared));
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
  for (int rank = 0; rank < static_cast<int>(devices.size()); ++rank) {
    isRecorded.emplace_back(programOf(rank).commands.size());
    for (const Command &command : programOf(rank).commands)
      for (uint32_t other : command.after)
        for (std::vector<Event> &list = events[{rank, other}];
             list.size() < devices[rank].size();)
          if (absl::Status s = add(*devices[rank][list.size()]->gpu, list);
              !s.ok())
            return s;
  }
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

std::string Program::describe(RankCommand at) const {
  const Command &of = commandAt(at);
  std::string what(nameOf(of));
  if (auto *launch = std::get_if<LaunchCommand>(&of.operation))
    absl::StrAppend(&what, " of ", set.plan.kernels[launch->kernel]);
  if (!of.source.empty())
    absl::StrAppend(&what, ", ", of.source);
  return what;
}

absl::Status Program::annotate(const absl::Status &status,
                               RankCommand at) const {
  if (status.ok())
    return status;
  std::string rank =
      set.plan.pipeline ? absl::StrCat(" of pipeline rank ", at.rank) : "";
  return absl::Status(status.code(),
                      absl::StrCat("program \"", programOf(at.rank).name,
                                   "\", command ", at.command, rank, " (",
                                   describe(at), "): ", status.message()));
}

CUdeviceptr Program::address(const Device &device, uint32_t buffer,
                             int64_t run) const {
  const BufferSpec &of = programOf(device.rank).buffers[buffer];
  return device.arena.address() + of.offset + run * of.stride;
}

/// One GPU is current all the time.
absl::Status Program::enter(const Gpu &gpu) const {
  return set.gpus.size() > 1 ? gpu.context->makeCurrent() : absl::OkStatus();
}

absl::StatusOr<std::vector<Graph>> Program::capture(const BatchMemory &batch,
                                                    CommandTimes *times) {
  std::vector<const Stream *> mains;
  for (const std::unique_ptr<Gpu> &gpu : set.gpus)
    mains.push_back(gpu->main.get());
  absl::StatusOr<std::vector<Graph>> graphs =
      Graph::capture(mains, [&] { return issueAll(batch, times); });
  if (!graphs.ok())
    return absl::Status(graphs.status().code(),
                        absl::StrCat("capturing program \"", programOf(0).name,
                                     "\": ", graphs.status().message()));
  return graphs;
}

absl::Status Program::runSerialized(const BatchMemory &batch,
                                    absl::Duration deadline,
                                    CommandTimes *times) {
  serialized = deadline;
  absl::Status status = issueAll(batch, times);
  serialized.reset();
  return status;
}

absl::StatusOr<double> Program::timeAlone(uint32_t command, int repeats,
                                          const BatchMemory &batch,
                                          absl::Duration deadline) {
  const RankCommand at{0, command};
  return timeIssued(
      repeats,
      [&] {
        isRecorded[0].assign(programOf(0).commands.size(), false);
        return annotate(issueStep({PipelineStep{at}}, batch, nullptr), at);
      },
      [&] { return annotate(waitForAll(deadline), at); });
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

absl::Status Program::issueAll(const BatchMemory &batch, CommandTimes *times) {
  for (std::vector<bool> &ofRank : isRecorded)
    ofRank.assign(ofRank.size(), false);
  // A run starts on all streams of a GPU when its main one is there.
  for (size_t gpu = 0; gpu < ends.size(); ++gpu) {
    if (absl::Status s = enter(*set.gpus[gpu]); !s.ok())
      return s;
    if (times)
      if (absl::Status s = times->beginRun(gpu); !s.ok())
        return s;
    Event &begin = ends[gpu].begin[0];
    if (absl::Status s = begin.record(*set.gpus[gpu]->main); !s.ok())
      return s;
    for (const Stream *stream : ends[gpu].streams)
      if (absl::Status s = stream->waitFor(begin); !s.ok())
        return s;
  }
  for (const Step &step : steps)
    if (absl::Status s =
            annotate(issueStep(step, batch, times), step.commands[0]);
        !s.ok())
      return s;
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
    if (times)
      if (absl::Status s = times->endRun(gpu); !s.ok())
        return s;
  }
  return absl::OkStatus();
}

absl::Status Program::issueStep(const Step &step, const BatchMemory &batch,
                                CommandTimes *times) {
  RankCommand first = step.commands[0];
  NvtxRange range(set.nvtx, set.nvtx ? describe(first) : std::string());
  auto streamOf = [&](RankCommand at, size_t i) -> const Stream & {
    return devices[at.rank][i]->stream(commandAt(at).stream);
  };
  bool waits = false;
  for (RankCommand at : step.commands)
    for (uint32_t other : commandAt(at).after) {
      // In the first run of a loop there is nothing of the run before.
      if (!isRecorded[at.rank][other])
        continue;
      waits = true;
      for (size_t i = 0; i < devices[at.rank].size(); ++i) {
        if (absl::Status s = enter(*devices[at.rank][i]->gpu); !s.ok())
          return s;
        if (absl::Status s =
                streamOf(at, i).waitFor(events[{at.rank, other}][i]);
            !s.ok())
          return s;
      }
    }
  std::vector<const Stream *> streams;
  for (const Device *device : devicesOf(step.commands))
    streams.push_back(&device->stream(commandAt(first).stream));
  // Once for each: devices of a GPU share the one of communication.
  auto onStreams = [&](auto call) {
    int32_t position = 0;
    for (size_t i = 0; times && i < streams.size(); ++i) {
      if (i > 0 && streams[i] == streams[i - 1])
        continue;
      if (set.gpus.size() > 1)
        if (absl::Status s = streams[i]->context().makeCurrent(); !s.ok())
          return s;
      if (absl::Status s = call(*streams[i], position++); !s.ok())
        return s;
    }
    return absl::OkStatus();
  };
  if (absl::Status s = onStreams([&](const Stream &stream, int32_t) {
        return times->begin(stream, waits);
      });
      !s.ok())
    return s;
  if (isCommunication(commandAt(first))) {
    const auto &ofRuns = collectives[keyOf(first)];
    if (absl::Status s =
            ofRuns[ofRuns.size() > 1 ? step.run : 0]->issue(streams);
        !s.ok())
      return s;
  } else {
    for (const Device *device : devices[first.rank]) {
      if (absl::Status s = enter(*device->gpu); !s.ok())
        return s;
      if (absl::Status s = issueOn(*device, first.command, step.run, batch);
          !s.ok())
        return s;
    }
  }
  if (serialized)
    if (absl::Status s = waitForAll(*serialized); !s.ok())
      return s;
  for (RankCommand at : step.commands) {
    auto own = events.find(keyOf(at));
    if (own == events.end())
      continue;
    isRecorded[at.rank][at.command] = true;
    for (size_t i = 0; i < devices[at.rank].size(); ++i) {
      if (absl::Status s = enter(*devices[at.rank][i]->gpu); !s.ok())
        return s;
      if (absl::Status s = own->second[i].record(streamOf(at, i)); !s.ok())
        return s;
    }
  }
  // Others do not wait for this.
  return onStreams([&](const Stream &stream, int32_t position) {
    return times->end(stream, numberOf(step), step.run, position);
  });
}

absl::Status Program::reserve(CommandTimes &times) const {
  for (size_t gpu = 0; gpu < set.gpus.size(); ++gpu) {
    size_t commands = 0;
    for (const Step &step : steps)
      for (const Device *device : devicesOf(step.commands))
        commands += device->gpu == set.gpus[gpu].get();
    if (absl::Status s = times.reserve(gpu, commands); !s.ok())
      return s;
  }
  return absl::OkStatus();
}

TracedStep
Program::describeStep(const Step &step,
                      absl::Span<const std::vector<uint64_t>> use) const {
  // With a pipeline, one of a rank of this process.
  RankCommand shown = step.commands[0];
  for (RankCommand at : step.commands)
    if (devices[shown.rank].empty())
      shown = at;
  const Command &command = commandAt(shown);
  TracedStep traced = rt::describeCommand(set.plan.ranks()[shown.rank],
                                          programOf(shown.rank), command);
  // Messages are named by their receivers.
  if (std::holds_alternative<SendCommand>(
          commandAt(step.commands[0]).operation))
    for (size_t i = 0; i < step.commands.size(); i += 2)
      traced.name = absl::StrCat(
          i == 0 ? "" : absl::StrCat(traced.name, ", "), "send to stage rank ",
          operationAt<SendCommand>(step.commands[i]).peer);
  const std::vector<const Device *> members = devicesOf(step.commands);
  // Those that share a stream have one span.
  const Stream *last = nullptr;
  for (const Device *device : members) {
    const Stream *stream = &device->stream(command.stream);
    if (stream != last)
      traced.devices.emplace_back();
    traced.devices.back().push_back(device->number);
    last = stream;
  }
  for (RankCommand at : step.commands) {
    const PlanSpec &rank = set.plan.ranks()[at.rank];
    for (const Access &access :
         accessesOf(rank, programOf(at.rank), commandAt(at), /*runs=*/1))
      traced.bytes +=
          (access.bytes.end - access.bytes.begin) * devices[at.rank].size();
    traced.wireBytes = std::max(traced.wireBytes, sentBytes(at));
  }
  if (auto *gemm = std::get_if<GemmCommand>(&command.operation))
    traced.flops =
        2.0 * gemm->batch * gemm->m * gemm->n * gemm->k * members.size();
  if (auto *launch = std::get_if<LaunchCommand>(&command.operation))
    traced.flops = double(launch->matmulFlops) * members.size();
  traced.rank = set.plan.pipeline ? shown.rank : -1;
  traced.arenaBytes = use[shown.rank][shown.command];
  return traced;
}

TracedProgram Program::describeSteps() const {
  TracedProgram traced;
  traced.name = programOf(0).name;
  std::vector<std::vector<uint64_t>> use;
  for (size_t rank = 0; rank < devices.size(); ++rank)
    use.push_back(arenaUse(set.plan.ranks()[rank], programOf(rank)));
  // The latest step that a command was in.
  std::map<Key, std::pair<uint32_t, int32_t>> issued;
  for (const Step &step : steps) {
    TracedStep &one = traced.steps.emplace_back(describeStep(step, use));
    const uint32_t number = numberOf(step);
    if (one.kind == TracedStep::Kind::Communication)
      one.startedAt = one.waitedAt = number;
    for (RankCommand at : step.commands)
      for (uint32_t other : commandAt(at).after)
        if (auto found = issued.find({at.rank, other}); found != issued.end())
          one.after.push_back(found->second);
    for (RankCommand at : step.commands)
      issued[keyOf(at)] = {number, static_cast<int32_t>(step.run)};
  }
  traced.spansPerRun = steps.size();
  return traced;
}

const StagedInputs &Program::stagedOn(const Gpu &gpu,
                                      const BatchMemory &batch) const {
  size_t index = 0;
  while (set.gpus[index].get() != &gpu)
    ++index;
  return batch.staged[index];
}

/// `context` is the number of the kernel context.
absl::Status Program::launch(const LaunchCommand &launch, const Device &device,
                             int64_t context, int64_t run,
                             const Stream &stream) const {
  std::vector<CUdeviceptr> values;
  for (uint32_t buffer : launch.buffers)
    values.push_back(address(device, buffer, run));
  values.push_back(device.kernelContexts.address() +
                   context * device.kernelContextBytes);
  std::vector<void *> pointers;
  for (CUdeviceptr &value : values)
    pointers.push_back(&value);
  const cuda::Context &gpu = *device.gpu->context;
  return gpu.check(
      gpu.driver().launchKernel(device.gpu->kernels.kernel(launch.kernel),
                                launch.extent, 1, 1, launch.threads, 1, 1, 0,
                                stream.get(), pointers.data(), nullptr),
      "cuLaunchKernel");
}

absl::Status Program::issueOn(const Device &device, uint32_t number,
                              int64_t run, const BatchMemory &batch) {
  const ProgramSpec &spec = programOf(device.rank);
  const Command &command = spec.commands[number];
  const Stream &stream = device.stream(command.stream);
  const cuda::Context &context = *device.gpu->context;
  const Driver &driver = context.driver();
  auto at = [&](uint32_t buffer) { return address(device, buffer, run); };
  if (auto *launched = std::get_if<LaunchCommand>(&command.operation))
    return launch(*launched, device,
                  command.task >= 0 ? spec.tasks[command.task].microbatch : run,
                  run, stream);
  if (auto *gemm = std::get_if<GemmCommand>(&command.operation)) {
    auto prepared = gemms.find({device.rank, number});
    if (prepared == gemms.end())
      return absl::OkStatus();
    return prepared->second.at(device.gpu)
        ->issue(placesOf(*gemm, at), device.workspace.address(), stream);
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
    const TensorSpec &tensor =
        set.plan.ranks()[device.rank].tensors[upload->tensor];
    if (tensor.bytes == 0)
      return absl::OkStatus();
    const uint64_t staged = set.host.inputOffset(upload->tensor, device.number);
    return context.check(
        driver.memcpyDtoDAsync(device.arena.address() + tensor.offset,
                               stagedOn(*device.gpu, batch).address(staged),
                               tensor.bytes, stream.get()),
        "cuMemcpyDtoDAsync");
  }
  if (auto *download = std::get_if<DownloadCommand>(&command.operation))
    for (const HostShard &shard :
         set.host.resultShards(this->number, download->result)) {
      const BufferSpec &from =
          spec.buffers[spec.results[download->result].buffer];
      if (shard.device == device.number && from.bytes > 0)
        return context.check(
            driver.memcpyDtoHAsync(batch.host.data() + shard.offset,
                                   at(spec.results[download->result].buffer),
                                   from.bytes, stream.get()),
            "cuMemcpyDtoHAsync");
    }
  return absl::OkStatus();
}
