//===- PreparedSteps.cpp - From the commands of a program to steps --------===//
//
// Every command becomes one step or several: calls for the devices that compute
// copies of its results, with the addresses of their buffers.
//
//===----------------------------------------------------------------------===//

#include "exec/PreparedSteps.h"

#include "exec/CommunicationNames.h"
#include "exec/GemmSteps.h"
#include "exec/InputsInPlace.h"
#include "exec/ProgramBuffers.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace shardc::rt;

namespace {

class StepBuilder : private ProgramBuffers {
public:
  /// All must outlive the builder.
  StepBuilder(const PlanSpec &plan, absl::Span<const DeviceSet> ranks,
              size_t number, Collectives &backend,
              const DeviceProcesses &processes, const MicroKernels &kernels)
      : ProgramBuffers(ranks, number), plan(plan), backend(backend),
        processes(processes),
        gemms(*this, gathered, scattered, kernels, prepared) {}

  /// In the order of the list.
  absl::Status addSteps();
  /// With a pipeline.
  absl::Status addSteps(const PipelineOrder &order);

  PreparedSteps take() { return std::move(prepared); }

private:
  absl::Status addSteps(const PipelineStep &together);
  /// Notes the command that the steps from `first` on are of.
  void setCommand(size_t first, RankCommand place);
  void sortSteps(absl::Span<const std::pair<int64_t, size_t>> places);
  absl::Status addStep(uint32_t command, int64_t runs);
  void setMicrobatch(Step &step, int64_t microbatch) const;
  void addTransfer(RankCommand from, RankCommand to);
  void startMessages(RankCommand place);
  void finishMessages(RankCommand place, uint32_t start);
  void addMessages(Step::Kind kind, int rank, RemoteMessages &messages);
  absl::Status prepareCollectives(absl::Span<const PipelineStep> together,
                                  int64_t runs);
  void startCollective(const PipelineStep &starts);
  void finishCollective(const PipelineStep &starts);
  void addRounds(const PipelineStep &starts,
                 std::vector<PreparedCollective *> now);
  absl::Status named(const absl::Status &status, uint32_t command) const;
  void addLaunch(uint32_t command, const LaunchCommand &launch);
  std::vector<std::vector<int64_t>>
  findGroups(const Step &step, uint32_t command,
             const LaunchCommand &launch) const;
  void bindGroups(Step &step, const LaunchCommand &launch,
                  const std::vector<std::vector<int64_t>> &groups) const;
  CollectiveSpec
  describeCollective(const CollectiveStartCommand &command) const;
  CollectiveSpec bindCollective(const PipelineStep &starts, int64_t run) const;
  const Mesh &meshOf(const PipelineStep &starts) const;
  const PlanSpec &plan;
  Collectives &backend;
  const DeviceProcesses &processes;
  PreparedSteps prepared;
  GatheredFactors gathered;
  ScatteredSums scattered;
  GemmSteps gemms;
  /// The number of the next step when a collective starts, by rank and command.
  std::map<std::pair<int, uint32_t>, size_t> startedAt;
  /// Without a pipeline, the starts of collectives that have no step at their
  /// wait.
  absl::flat_hash_set<uint32_t> finishedAtStart;
};

} // namespace

static Step::Part describePart(const LaunchCommand &launch,
                               const LaunchPart &part) {
  Step::Part described{part.extent, {}};
  described.bytesPerIteration.resize(launch.buffers.size());
  for (size_t i = 0; i < part.buffers.size(); ++i)
    described.bytesPerIteration[part.buffers[i]] =
        part.bytesPerIteration.empty() ? 0 : part.bytesPerIteration[i];
  return described;
}

Step::Bytes Step::bytesOf(int64_t operand, int64_t beginTile,
                          int64_t endTile) const {
  const uint64_t all = accesses[operand].bytes;
  if (parts.empty())
    return {0, all};
  Bytes touched{all, 0};
  const int64_t begin = first + beginTile * grain,
                end = std::min(last, first + endTile * grain);
  int64_t partBegin = first;
  for (const Part &part : parts) {
    // Those of the part's iterations that are among the tiles'.
    const int64_t low = std::max<int64_t>(begin - partBegin, 0),
                  high = std::min(end - partBegin, part.extent);
    partBegin += part.extent;
    const std::optional<uint64_t> each = part.bytesPerIteration[operand];
    if (low >= high || !each)
      continue;
    touched.begin = std::min(touched.begin, *each * low);
    touched.end = std::max(touched.end, *each ? *each * high : all);
  }
  touched.end = std::min(touched.end, all);
  touched.begin = std::min(touched.begin, touched.end);
  return touched;
}

/// The devices of each call of the launch's kernel for groups, if that takes
/// the place of the other one: all of a group over which a sum is computed, or
/// those that have one shared buffer. Else none.
std::vector<std::vector<int64_t>>
StepBuilder::findGroups(const Step &step, uint32_t command,
                        const LaunchCommand &launch) const {
  if (devices().layout.addsUp(number, command))
    return devices().layout.termsOf(number, command, step.devices);
  std::vector<std::vector<int64_t>> groups;
  if (launch.groupShared < 0)
    return groups;
  absl::flat_hash_map<const char *, size_t> groupOf;
  for (int64_t device : step.devices) {
    auto [found, isNew] = groupOf.try_emplace(
        address(device, launch.buffers[launch.groupShared]), groups.size());
    if (isNew)
      groups.emplace_back();
    groups[found->second].push_back(device);
  }
  // A process may have a part of a group.
  if (absl::c_any_of(groups, [&](const std::vector<int64_t> &group) {
        return static_cast<int64_t>(group.size()) != launch.groupDevices;
      }))
    groups.clear();
  return groups;
}

/// Makes the launch one of the kernel for groups, with a call for each.
void StepBuilder::bindGroups(
    Step &step, const LaunchCommand &launch,
    const std::vector<std::vector<int64_t>> &groups) const {
  step.kernel = devices().kernels.kernel(launch.groupKernel);
  step.group = launch.groupDevices;
  step.addsUp = launch.canAddUp();
  // What is read of each device, then the results.
  const int64_t reads = launch.buffers.size() - launch.writes;
  auto repeat = [&](auto &ofOperands) {
    if (ofOperands.empty())
      return;
    auto all = ofOperands;
    all.clear();
    for (int64_t device = 0; device < step.group; ++device)
      all.insert(all.end(), ofOperands.begin(), ofOperands.begin() + reads);
    for (int64_t result = 0; result < step.resultsPerCall(); ++result)
      all.insert(all.end(), ofOperands.begin() + reads, ofOperands.end());
    ofOperands = std::move(all);
  };
  repeat(step.accesses);
  repeat(step.strides);
  repeat(step.parts[0].bytesPerIteration);
  step.operands = step.accesses.size();
  const std::vector<int64_t> holders = std::move(step.devices);
  step.table.clear();
  step.calls.clear();
  step.devices.clear();
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::vector<int64_t> results =
        step.addsUp ? std::vector<int64_t>{holders[i]} : groups[i];
    step.calls.push_back(
        {devices().contexts.data() + results[0] * devices().contextStride,
         step.table.size()});
    for (int64_t device : groups[i])
      for (int64_t read = 0; read < reads; ++read)
        step.table.push_back(address(device, launch.buffers[read]));
    for (int64_t device : results)
      for (size_t write = reads; write < launch.buffers.size(); ++write)
        step.table.push_back(address(device, launch.buffers[write]));
    step.devices.insert(step.devices.end(), results.begin(), results.end());
  }
}

/// One step for neighbouring parts that run for the same devices.
void StepBuilder::addLaunch(uint32_t command, const LaunchCommand &launch) {
  int64_t next = 0;
  for (size_t i = 0; i < launch.parts.size();) {
    Step &step = prepared.steps.emplace_back();
    step.kind = Step::Kind::Launch;
    step.kernel = devices().kernels.kernel(launch.kernel);
    step.grain = launch.grain;
    step.first = next;
    std::vector<Operand> operands = operandsOf(launch, launch.parts[i]);
    std::vector<int64_t> of = devices().layout.devicesFor(number, operands);
    for (; i < launch.parts.size(); ++i) {
      std::vector<Operand> more = operandsOf(launch, launch.parts[i]);
      if (devices().layout.devicesFor(number, more) != of)
        break;
      operands.insert(operands.end(), more.begin(), more.end());
      next += launch.parts[i].extent;
      step.parts.push_back(describePart(launch, launch.parts[i]));
    }
    step.last = next;
    step.tiles = (step.last - step.first + launch.grain - 1) / launch.grain;
    bind(step, operands, launch.buffers);
    if (auto groups = findGroups(step, command, launch); !groups.empty())
      bindGroups(step, launch, groups);
  }
}

/// The collective without the addresses of its tensors.
CollectiveSpec
StepBuilder::describeCollective(const CollectiveStartCommand &command) const {
  CollectiveSpec spec;
  spec.kind = command.kind;
  spec.reduction = command.reduction;
  spec.axes = command.axes;
  spec.targetAxes = command.targetAxes;
  spec.sources = command.sources;
  for (const CollectiveItem &item : command.items) {
    CollectiveTensor &tensor = spec.tensors.emplace_back();
    tensor.dtype = program().buffers[item.in].dtype;
    tensor.inShape = program().buffers[item.in].shape;
    tensor.outShape = program().buffers[item.out].shape;
    tensor.dim = item.dim;
    tensor.splitDim = item.splitDim;
    tensor.isReduced = devices().layout.isSummed(number, item.in);
  }
  return spec;
}

/// The mesh of the devices that take part: those of one rank, or of all.
const Mesh &StepBuilder::meshOf(const PipelineStep &starts) const {
  return starts.size() > 1 ? plan.mesh : devices().plan.mesh;
}

CollectiveSpec StepBuilder::bindCollective(const PipelineStep &starts,
                                           int64_t run) const {
  CollectiveSpec spec = describeCollective(std::get<CollectiveStartCommand>(
      program().commands[starts[0].command].operation));
  for (CollectiveTensor &tensor : spec.tensors) {
    tensor.in.resize(meshOf(starts).numDevices());
    tensor.out.resize(meshOf(starts).numDevices());
  }
  spec.processes.resize(meshOf(starts).numDevices());
  for (RankCommand start : starts) {
    auto &items = std::get<CollectiveStartCommand>(
                      programOf(start.rank).commands[start.command].operation)
                      .items;
    auto placeOf = [&](int64_t device) {
      return starts.size() > 1 ? plan.deviceOf(start.rank, device) : device;
    };
    for (int process = 0; process < processes.size(); ++process) {
      DeviceRange devices = processes.devicesOf(start.rank, process);
      for (int64_t device = devices.first; device < devices.last; ++device)
        spec.processes[placeOf(device)] = process;
    }
    DeviceRange local = ranks[start.rank].layout.devices();
    for (size_t i = 0; i < items.size(); ++i)
      for (int64_t device = local.first; device < local.last; ++device) {
        int64_t place = placeOf(device);
        spec.tensors[i].in[place] =
            addressOn(start.rank, device, items[i].in, run);
        spec.tensors[i].out[place] =
            addressOn(start.rank, device, items[i].out, run);
      }
  }
  size_t kept = 0;
  for (size_t i = 0; i < spec.tensors.size(); ++i)
    if (!gathered.isInPlace(starts[0].command, i) &&
        !scattered.isInPlace(starts[0].command, i))
      std::swap(spec.tensors[kept++], spec.tensors[i]);
  spec.tensors.resize(kept);
  return spec;
}

/// Prepares collectives that start one directly after the other.
absl::Status
StepBuilder::prepareCollectives(absl::Span<const PipelineStep> together,
                                int64_t runs) {
  bool moves = false;
  for (const PipelineStep &starts : together)
    for (const CollectiveItem &item :
         std::get<CollectiveStartCommand>(
             program().commands[starts[0].command].operation)
             .items)
      moves |= program().buffers[item.in].stride > 0 ||
               program().buffers[item.out].stride > 0;
  for (int64_t run = 0; run < (moves ? runs : 1); ++run) {
    std::vector<CollectiveSpec> specs;
    for (const PipelineStep &starts : together)
      specs.push_back(bindCollective(starts, run));
    absl::StatusOr<std::vector<std::unique_ptr<PreparedCollective>>> all =
        backend.prepareTogether(meshOf(together[0]), std::move(specs));
    if (!all.ok())
      return all.status();
    for (size_t i = 0; i < together.size(); ++i)
      prepared.collectives[{rank, together[i][0].command}].push_back(
          std::move((*all)[i]));
  }
  return absl::OkStatus();
}

/// The step of what a collective that has been prepared does at its start.
void StepBuilder::startCollective(const PipelineStep &starts) {
  startedAt[{rank, starts[0].command}] = prepared.steps.size();
  std::vector<PreparedCollective *> early;
  for (const auto &ofRun : prepared.collectives[{rank, starts[0].command}])
    early.push_back(ofRun->start());
  addRounds(starts, std::move(early));
}

/// The steps of the rest of it.
void StepBuilder::finishCollective(const PipelineStep &starts) {
  RankCommand start = starts[0];
  std::vector<PreparedCollective *> now;
  for (const auto &ofRun : prepared.collectives[{rank, start.command}])
    now.push_back(ofRun.get());
  const size_t wait = prepared.steps.size();
  addRounds(starts, std::move(now));
  Step &last = prepared.steps.back();
  last.startedAt = startedAt[{rank, start.command}];
  last.waitedAt = wait;
  last.wireBytes = wireBytes(
      meshOf(starts), describeCollective(std::get<CollectiveStartCommand>(
                          program().commands[start.command].operation)));
}

/// One step for the tasks of `now`, which are the same in all runs but for
/// addresses, and one for those of each `next`.
void StepBuilder::addRounds(const PipelineStep &starts,
                            std::vector<PreparedCollective *> now) {
  const int first = starts[0].rank;
  const std::string what = collectiveInWords(
      programOf(first), ranks[first].plan.mesh, starts[0].command);
  while (now[0]) {
    Step &step = prepared.steps.emplace_back();
    step.kind = Step::Kind::Collective;
    step.what = what;
    step.collectives = now;
    for (RankCommand start : starts)
      step.senders.push_back(start.rank);
    for (PreparedCollective *&ofRun : now)
      ofRun = ofRun->next();
  }
}

/// One step for each buffer, with a call for every copy at a receiver in the
/// process of its sender. There is none for a buffer whose value is in its
/// place already.
void StepBuilder::addTransfer(RankCommand from, RankCommand to) {
  auto &sent = std::get<SendCommand>(
      programOf(from.rank).commands[from.command].operation);
  auto &received = std::get<ReceiveCommand>(
      programOf(to.rank).commands[to.command].operation);
  DeviceRange senders = ranks[from.rank].layout.devices();
  for (size_t i = 0; i < sent.buffers.size(); ++i) {
    uint32_t in = sent.buffers[i], out = received.buffers[i];
    Step step;
    step.kind = Step::Kind::Copy;
    step.bytes = step.wireBytes = programOf(to.rank).buffers[out].bytes;
    step.senders = {from.rank};
    step.operands = 2;
    step.accesses = {{step.bytes, false}, {step.bytes, true}};
    for (int64_t device :
         ranks[to.rank].layout.devicesFor(number, {{out, true}})) {
      if (!senders.contains(device) ||
          addressOn(from.rank, device, in) == addressOn(to.rank, device, out))
        continue;
      step.calls.push_back({nullptr, step.table.size()});
      step.table.push_back(addressOn(from.rank, device, in));
      step.table.push_back(addressOn(to.rank, device, out));
    }
    if (step.calls.empty())
      prepared.sharedBytes[from.rank] += step.bytes;
    else
      prepared.steps.push_back(std::move(step));
  }
}

/// What a send or a receive exchanges with other processes, as one step. Both
/// sides have the same order: buffer by buffer, device by device.
void StepBuilder::startMessages(RankCommand place) {
  const Command &command = programOf(place.rank).commands[place.command];
  std::vector<Transport::Message> messages;
  auto add = [&](int64_t device, uint32_t buffer, int process,
                 bool isReceived) {
    messages.push_back({process, addressOn(place.rank, device, buffer),
                        programOf(place.rank).buffers[buffer].bytes,
                        isReceived});
  };
  DeviceRange local = ranks[place.rank].layout.devices();
  uint32_t message = 0;
  if (auto *send = std::get_if<SendCommand>(&command.operation)) {
    message = send->message;
    // The receivers are those of `addTransfer` in their processes.
    const ProgramSpec &peer = programOf(send->peer);
    auto receive = absl::c_find_if(peer.commands, [&](const Command &other) {
      auto *receive = std::get_if<ReceiveCommand>(&other.operation);
      return receive && receive->message == message;
    });
    auto &received = std::get<ReceiveCommand>(receive->operation);
    for (size_t i = 0; i < send->buffers.size(); ++i)
      for (int process = 0; process < processes.size(); ++process)
        for (int64_t device : ranks[send->peer].layout.devicesFor(
                 number, {{received.buffers[i], true}},
                 processes.devicesOf(send->peer, process)))
          if (process != processes.own() && local.contains(device))
            add(device, send->buffers[i], process, /*isReceived=*/false);
  } else {
    auto &receive = std::get<ReceiveCommand>(command.operation);
    message = receive.message;
    for (uint32_t buffer : receive.buffers)
      for (int64_t device :
           ranks[place.rank].layout.devicesFor(number, {{buffer, true}}))
        if (int process = processes.processOf(receive.peer, device);
            process != processes.own())
          add(device, buffer, process, /*isReceived=*/true);
  }
  if (messages.empty())
    return;
  auto made = prepared.messages.try_emplace(
      {place.rank, place.command}, *processes.transport(),
      channelOfMessage(message), std::move(messages));
  addMessages(Step::Kind::StartMessages, place.rank, made.first->second);
  prepared.steps.back().what =
      messageInWords(programOf(place.rank), place.command, place.command);
}

void StepBuilder::finishMessages(RankCommand place, uint32_t start) {
  auto started = prepared.messages.find({place.rank, start});
  if (started == prepared.messages.end())
    return;
  addMessages(Step::Kind::FinishMessages, place.rank, started->second);
  prepared.steps.back().what =
      messageInWords(programOf(place.rank), start, place.command);
}

void StepBuilder::addMessages(Step::Kind kind, int rank,
                              RemoteMessages &messages) {
  Step &step = prepared.steps.emplace_back();
  step.kind = kind;
  step.senders = {rank};
  step.messages = &messages;
  step.operands = messages.all().size();
  step.calls.push_back({nullptr, 0});
  for (const Transport::Message &one : messages.all()) {
    step.table.push_back(one.data);
    step.accesses.push_back({one.bytes, one.isReceived});
  }
}

absl::Status StepBuilder::addStep(uint32_t number, int64_t runs) {
  const Command &command = program().commands[number];
  if (std::holds_alternative<CollectiveStartCommand>(command.operation)) {
    // With those behind it; a loop ends behind a wait.
    std::vector<PipelineStep> together;
    for (uint32_t next = number; !prepared.collectives.count({rank, number}) &&
                                 std::holds_alternative<CollectiveStartCommand>(
                                     program().commands[next].operation);
         ++next)
      together.push_back({{rank, next}});
    absl::Status status = together.empty() ? absl::OkStatus()
                                           : prepareCollectives(together, runs);
    if (!status.ok())
      return status;
    startCollective({{rank, number}});
    if (absl::c_all_of(prepared.collectives[{rank, number}],
                       [](const auto &ofRun) { return ofRun->isShort(); })) {
      finishCollective({{rank, number}});
      finishedAtStart.insert(number);
    }
    return status;
  }
  // A verified plan waits once for each collective (checkCollectives).
  if (auto *wait = std::get_if<CollectiveWaitCommand>(&command.operation)) {
    if (!finishedAtStart.contains(wait->start))
      finishCollective({{rank, wait->start}});
    return absl::OkStatus();
  }
  if (auto *launch = std::get_if<LaunchCommand>(&command.operation)) {
    addLaunch(number, *launch);
    return absl::OkStatus();
  }
  if (auto *gemm = std::get_if<GemmCommand>(&command.operation)) {
    gemms.add(number, *gemm);
    return absl::OkStatus();
  }
  Step step;
  if (auto *copy = std::get_if<CopyCommand>(&command.operation)) {
    step.kind = Step::Kind::Copy;
    step.bytes = program().buffers[copy->in].bytes;
    bind(step, operandsOf(program(), command), {copy->in, copy->out});
  } else if (auto *clear = std::get_if<ClearCommand>(&command.operation)) {
    step.kind = Step::Kind::Clear;
    step.bytes = program().buffers[clear->buffer].bytes;
    bind(step, operandsOf(program(), command), {clear->buffer});
  } else {
    step.kind = Step::Kind::Loop;
    step.runs = std::get<LoopCommand>(command.operation).runs;
  }
  prepared.steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status StepBuilder::named(const absl::Status &status,
                                uint32_t command) const {
  return absl::Status(status.code(),
                      absl::StrCat("program \"", program().name, "\", command ",
                                   command, ": ", status.message()));
}

/// Gives the kernel of a task its microbatch as the run of a loop.
void StepBuilder::setMicrobatch(Step &step, int64_t microbatch) const {
  if (step.kind != Step::Kind::Launch)
    return;
  for (const Step::Call &call : step.calls) {
    step.contexts.insert(step.contexts.end(), call.context,
                         call.context + devices().contextStride);
    step.contexts.back() = microbatch;
  }
  for (size_t i = 0; i < step.calls.size(); ++i)
    step.calls[i].context = step.contexts.data() + i * devices().contextStride;
}

/// Adds the steps of `together`, with their clock and microbatch.
absl::Status StepBuilder::addSteps(const PipelineStep &together) {
  rank = together[0].rank;
  uint32_t command = together[0].command, first = prepared.steps.size();
  const Command &table = program().commands[command];
  auto *wait = std::get_if<CollectiveWaitCommand>(&table.operation);
  bool starts = std::holds_alternative<CollectiveStartCommand>(table.operation);
  bool ends = wait && std::holds_alternative<CollectiveStartCommand>(
                          program().commands[wait->start].operation);
  if (wait && !ends) {
    finishMessages(together[0], wait->start);
    return absl::OkStatus();
  }
  if (together.size() == 1 &&
      (std::holds_alternative<SendCommand>(table.operation) ||
       std::holds_alternative<ReceiveCommand>(table.operation))) {
    startMessages(together[0]);
    return absl::OkStatus();
  }
  if (auto *send = std::get_if<SendCommand>(&table.operation)) {
    addTransfer(together[0], together[1]);
    for (; first < prepared.steps.size(); ++first)
      prepared.steps[first].clock =
          prepared.clocks[ranks.size()] + send->message;
    return absl::OkStatus();
  }
  // All processes prepare all collectives.
  if (!starts && !ends && devices().layout.devices().size() == 0)
    return absl::OkStatus();
  absl::Status status;
  if (starts)
    status = prepareCollectives(absl::MakeConstSpan(&together, 1), 1);
  else if (!ends)
    status = addStep(command, /*runs=*/1);
  if (!status.ok())
    return named(status, command);
  if (starts)
    startCollective(together);
  // Between processes the wait of a rank's own is a step.
  if (ends)
    finishCollective({{rank, wait->start}});
  else if (starts && (processes.size() == 1 ||
                      devices().plan.isOverRanks(
                          std::get<CollectiveStartCommand>(table.operation))))
    finishCollective(together);
  for (; table.task >= 0 && first < prepared.steps.size(); ++first) {
    setMicrobatch(prepared.steps[first],
                  program().tasks[table.task].microbatch);
    prepared.steps[first].clock = prepared.clocks[rank] + table.task;
  }
  return absl::OkStatus();
}

void StepBuilder::setCommand(size_t first, RankCommand place) {
  for (; first < prepared.steps.size(); ++first) {
    prepared.steps[first].rank = place.rank;
    prepared.steps[first].command = place.command;
  }
}

absl::Status StepBuilder::addSteps(const PipelineOrder &order) {
  std::vector<const ArenaLayout *> layouts;
  for (const DeviceSet &devices : ranks)
    layouts.push_back(&devices.layout);
  messagePlaces.emplace(plan, layouts, number, order);
  prepared.sharedBytes.resize(ranks.size());
  prepared.clocks = {0};
  for (const DeviceSet &devices : ranks)
    prepared.clocks.push_back(prepared.clocks.back() +
                              devices.plan.programs[number].tasks.size());
  prepared.clocks.push_back(prepared.clocks.back() + order.messages);
  // By step its round, and its place among those of its command.
  std::vector<std::pair<int64_t, size_t>> places;
  for (size_t i = 0; i < order.steps.size(); ++i) {
    if (i > 0 && order.rounds[i] != order.rounds[i - 1])
      gemms.beginRound();
    size_t first = prepared.steps.size();
    if (absl::Status status = addSteps(order.steps[i]); !status.ok())
      return status;
    setCommand(first, order.steps[i][0]);
    for (size_t added = first; added < prepared.steps.size(); ++added)
      places.push_back({order.rounds[i], added - first});
  }
  sortSteps(places);
  messagePlaces.reset();
  return absl::OkStatus();
}

/// Sorts the steps by `places`: in a round the first steps of all commands come
/// first, then their second ones, so that one barrier serves all.
void StepBuilder::sortSteps(
    absl::Span<const std::pair<int64_t, size_t>> places) {
  std::vector<size_t> order(prepared.steps.size());
  absl::c_iota(order, 0);
  absl::c_stable_sort(
      order, [&](size_t a, size_t b) { return places[a] < places[b]; });
  std::vector<size_t> placeOf(order.size());
  for (size_t place = 0; place < order.size(); ++place)
    placeOf[order[place]] = place;
  std::vector<Step> sorted;
  for (size_t index : order) {
    Step &step = sorted.emplace_back(std::move(prepared.steps[index]));
    if (step.endsCollective()) {
      step.startedAt = placeOf[step.startedAt];
      step.waitedAt = placeOf[step.waitedAt];
    }
  }
  prepared.steps = std::move(sorted);
}

absl::Status StepBuilder::addSteps() {
  if (devices().layout.sharesReplicas())
    placeInputs(*this, prepared);
  if (processes.size() == 1 && devices().layout.sharesReplicas()) {
    scattered = ScatteredSums(*this);
    gathered = GatheredFactors(*this, prepared);
  }
  // The step of the loop around the next command, and its commands left.
  size_t loop = 0;
  uint32_t left = 0;
  for (size_t i = 0; i < program().commands.size(); ++i) {
    int64_t runs = left > 0 ? prepared.steps[loop].runs : 1;
    gemms.beginRound();
    size_t first = prepared.steps.size();
    if (absl::Status status = addStep(i, runs); !status.ok())
      return named(status, i);
    setCommand(first, {rank, static_cast<uint32_t>(i)});
    if (auto *command =
            std::get_if<LoopCommand>(&program().commands[i].operation)) {
      loop = prepared.steps.size() - 1;
      left = command->commands;
    } else if (left > 0 && --left == 0) {
      prepared.steps[loop].length = prepared.steps.size() - loop - 1;
    }
  }
  findInputAddresses(prepared);
  return absl::OkStatus();
}

absl::StatusOr<PreparedSteps> shardc::rt::prepareSteps(
    const PlanSpec &plan, absl::Span<const DeviceSet> ranks, size_t program,
    const PipelineOrder *order, Collectives &backend,
    const DeviceProcesses &processes, const MicroKernels &kernels) {
  StepBuilder builder(plan, ranks, program, backend, processes, kernels);
  if (absl::Status status =
          order ? builder.addSteps(*order) : builder.addSteps();
      !status.ok())
    return status;
  return builder.take();
}
