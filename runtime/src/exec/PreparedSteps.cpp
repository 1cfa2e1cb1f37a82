//===- PreparedSteps.cpp - From the commands of a program to steps --------===//
//
// Every command becomes one step or several: calls for the devices that compute
// copies of its results, with the addresses of their buffers. GEMMs of several
// devices are merged, and factors that they share are packed by a step of their
// own.
//
//===----------------------------------------------------------------------===//

#include "exec/PreparedSteps.h"

#include "exec/CommunicationNames.h"
#include "exec/MergeGemms.h"
#include "exec/MessagePlaces.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <tuple>

using namespace shardc::rt;

namespace {

/// A GEMM, with a bias and a relu, of all devices.
struct MergedGemms {
  const GemmCommand &command;
  GemmCommand merged;
  GemmTypes types;
  std::vector<GemmPointers> calls;
  /// One for every copy of the results, before calls were merged.
  std::vector<int64_t> devices;
  uint64_t firstPacked; ///< The place of its first packed factor.
  std::shared_ptr<const PreparedGemm> first;
  /// Adds the second and further terms of a sum; null if there are none.
  std::shared_ptr<const PreparedGemm> added;

  size_t numTerms() const { return calls[0].terms.size(); }
  /// The different addresses of a factor in one term of all calls.
  std::vector<char *> distinct(size_t term, bool ofA) const {
    std::vector<char *> factors;
    for (const GemmPointers &one : calls)
      factors.push_back(ofA ? one.terms[term].a : one.terms[term].b);
    std::sort(factors.begin(), factors.end());
    factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
    return factors;
  }
  /// What is packed for all tiles of a term.
  std::vector<char *> shared(size_t term) const {
    return distinct(term, isShared(PreparedGemm::SharedFactor::A));
  }
  bool isShared(PreparedGemm::SharedFactor factor) const {
    return first->sharedFactor() == factor;
  }
  /// The distance of packed factors.
  uint64_t packedStride() const {
    return (first->packedBytes() + 63) / 64 * 64;
  }
};

class StepBuilder {
public:
  /// All must outlive the builder.
  StepBuilder(const PlanSpec &plan, absl::Span<const DeviceSet> ranks,
              size_t number, Collectives &backend,
              const DeviceProcesses &processes)
      : plan(plan), ranks(ranks), number(number), backend(backend),
        processes(processes) {}

  /// In the order of the list.
  absl::Status addSteps();
  /// With a pipeline.
  absl::Status addSteps(const PipelineOrder &order);

  PreparedSteps take() { return std::move(prepared); }

private:
  const DeviceSet &devices() const { return ranks[rank]; }
  const ProgramSpec &program() const { return programOf(rank); }
  const ProgramSpec &programOf(int rank) const {
    return ranks[rank].plan.programs[number];
  }

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
  void addGemm(uint32_t command, const GemmCommand &gemm);
  void addMergedGemms(uint32_t command, const GemmCommand &gemm);
  void addPacking(const MergedGemms &gemms, size_t term, int64_t round);
  void addTiles(const MergedGemms &gemms, size_t firstTerm, size_t lastTerm,
                int64_t round);
  void addColumnSums(const GemmCommand &gemm);
  void addLaunch(const LaunchCommand &launch);
  CollectiveSpec
  describeCollective(const CollectiveStartCommand &command) const;
  CollectiveSpec bindCollective(const PipelineStep &starts, int64_t run) const;
  const Mesh &meshOf(const PipelineStep &starts) const;
  char *address(int64_t device, uint32_t buffer, int64_t run = 0) const {
    return addressOn(rank, device, buffer, run);
  }
  char *addressOn(int rank, int64_t device, uint32_t buffer,
                  int64_t run = 0) const;
  /// Adds a call on `buffers` for every device that computes a copy of the
  /// results among `operands`.
  void bind(Step &step, const std::vector<Operand> &operands,
            const std::vector<uint32_t> &buffers) const;
  void setStrides(Step &step, const std::vector<uint32_t> &buffers) const;

  const PlanSpec &plan;
  absl::Span<const DeviceSet> ranks;
  size_t number;
  Collectives &backend;
  const DeviceProcesses &processes;
  PreparedSteps prepared;
  /// Of the command that is being prepared.
  int rank = 0;
  /// With a pipeline.
  std::optional<MessagePlaces> messagePlaces;
  /// The number of the next step when a collective starts, by rank and command.
  std::map<std::pair<int, uint32_t>, size_t> startedAt;
  /// Where packed factors of the next GEMM begin: GEMMs of one round of a
  /// pipeline, which run together, have places of their own.
  uint64_t nextPacked = 0;
};

} // namespace

char *StepBuilder::addressOn(int rank, int64_t device, uint32_t buffer,
                             int64_t run) const {
  if (messagePlaces)
    std::tie(rank, buffer) = messagePlaces->placeOf({rank, buffer});
  return ranks[rank].memory +
         ranks[rank].layout.offsetOf(number, buffer, device, run);
}

void StepBuilder::setStrides(Step &step,
                             const std::vector<uint32_t> &buffers) const {
  bool moves = false;
  for (uint32_t buffer : buffers) {
    step.strides.push_back(program().buffers[buffer].stride);
    moves |= step.strides.back() > 0;
  }
  if (!moves)
    step.strides.clear();
}

void StepBuilder::bind(Step &step, const std::vector<Operand> &operands,
                       const std::vector<uint32_t> &buffers) const {
  step.operands = buffers.size();
  setStrides(step, buffers);
  for (uint32_t buffer : buffers) {
    Step::Access &access = step.accesses.emplace_back();
    for (const Operand &operand : operands)
      if (operand.buffer == buffer) {
        access.bytes = program().buffers[buffer].bytes;
        access.isWrite |= operand.isWrite;
      }
  }
  step.devices = devices().layout.devicesFor(number, operands);
  for (int64_t device : step.devices) {
    step.calls.push_back(
        {devices().contexts.data() + device * devices().contextStride,
         step.table.size()});
    for (uint32_t buffer : buffers)
      step.table.push_back(address(device, buffer));
  }
}

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

/// One step for neighbouring parts that run for the same devices.
void StepBuilder::addLaunch(const LaunchCommand &launch) {
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
  }
}

/// Packs the shared factors of a term, each once.
void StepBuilder::addPacking(const MergedGemms &gemms, size_t term,
                             int64_t round) {
  Step &step = prepared.steps.emplace_back();
  step.kind = Step::Kind::Pack;
  step.devices = gemms.devices;
  step.gemm = term == 0 ? gemms.first : gemms.added;
  step.round = round;
  step.tiles = step.gemm->numPackTasks(round);
  step.hasPacked = true;
  step.operands = 2;
  bool isA = gemms.isShared(PreparedGemm::SharedFactor::A);
  const GemmCommand &merged = gemms.merged;
  uint64_t bytes = merged.batch * merged.k * (isA ? merged.m : merged.n) *
                   byteSize(gemms.types.factors);
  step.accesses = {{bytes, false}, {step.gemm->packedBytes(), true}};
  setStrides(step, {isA ? gemms.command.a : gemms.command.b});
  if (!step.strides.empty())
    step.strides.push_back(0);
  std::vector<char *> factors = gemms.shared(term);
  for (size_t i = 0; i < factors.size(); ++i) {
    step.calls.push_back({nullptr, step.table.size()});
    uint64_t place = gemms.firstPacked + i * gemms.packedStride();
    step.table.insert(step.table.end(),
                      {factors[i], reinterpret_cast<void *>(place)});
  }
  nextPacked = gemms.firstPacked + factors.size() * gemms.packedStride();
  prepared.packedBytes = std::max(prepared.packedBytes, nextPacked);
}

/// The tiles of the terms [firstTerm, lastTerm), of which several are not
/// packed.
void StepBuilder::addTiles(const MergedGemms &gemms, size_t firstTerm,
                           size_t lastTerm, int64_t round) {
  Step &step = prepared.steps.emplace_back();
  const GemmCommand &command = gemms.command, &merged = gemms.merged;
  step.kind = Step::Kind::Gemm;
  step.devices = gemms.devices;
  step.flops = 2.0 * merged.batch * merged.m * merged.n * merged.k *
               gemms.calls.size() * (lastTerm - firstTerm) /
               gemms.first->numRounds();
  step.gemm = firstTerm == 0 ? gemms.first : gemms.added;
  step.addTerm = gemms.added;
  step.round = round;
  step.tiles = step.gemm->numTiles();
  step.hasBias = command.bias >= 0;
  step.hasPacked = !gemms.isShared(PreparedGemm::SharedFactor::None);
  std::vector<uint32_t> buffers;
  uint64_t factor = merged.batch * byteSize(gemms.types.factors);
  for (size_t term = firstTerm; term < lastTerm; ++term) {
    buffers.insert(buffers.end(), {command.a, command.b});
    step.accesses.push_back({merged.m * merged.k * factor, false});
    step.accesses.push_back({merged.k * merged.n * factor, false});
  }
  buffers.push_back(command.c);
  uint64_t result = merged.batch * byteSize(gemms.types.result);
  step.accesses.push_back({merged.m * merged.n * result, true});
  if (step.hasBias) {
    buffers.push_back(command.bias);
    step.accesses.push_back({program().buffers[command.bias].bytes, false});
  }
  setStrides(step, buffers);
  step.operands = buffers.size();
  std::vector<char *> shared;
  if (step.hasPacked) {
    shared = gemms.shared(firstTerm);
    step.accesses.push_back({step.gemm->packedBytes(), false});
    ++step.operands;
    if (!step.strides.empty())
      step.strides.push_back(0);
  }
  for (const GemmPointers &one : gemms.calls) {
    step.calls.push_back({nullptr, step.table.size()});
    for (size_t term = firstTerm; term < lastTerm; ++term)
      step.table.insert(step.table.end(),
                        {one.terms[term].a, one.terms[term].b});
    step.table.push_back(one.c);
    if (step.hasBias)
      step.table.push_back(one.bias);
    if (step.hasPacked) {
      const GemmPointers::Factors &factors = one.terms[firstTerm];
      char *own =
          gemms.isShared(PreparedGemm::SharedFactor::A) ? factors.a : factors.b;
      size_t place = absl::c_lower_bound(shared, own) - shared.begin();
      step.table.push_back(reinterpret_cast<void *>(
          gemms.firstPacked + place * gemms.packedStride()));
    }
  }
}

/// The GEMM itself, with a bias and a relu, for all devices.
void StepBuilder::addMergedGemms(uint32_t command, const GemmCommand &gemm) {
  MergedGemms gemms{gemm,    gemm,   program().typesOf(gemm),
                    {},      {},     nextPacked,
                    nullptr, nullptr};
  std::vector<int64_t> of = devices().layout.devicesFor(
      number, operandsOf(program(), program().commands[command]));
  std::vector<std::vector<int64_t>> terms =
      devices().layout.termsOf(number, command, of);
  gemms.devices = of;
  for (size_t i = 0; i < of.size(); ++i) {
    GemmPointers &one = gemms.calls.emplace_back();
    for (int64_t device : terms[i])
      one.terms.push_back({address(device, gemm.a), address(device, gemm.b)});
    one.c = address(of[i], gemm.c);
    one.bias = gemm.bias >= 0 ? address(of[i], gemm.bias) : nullptr;
  }
  mergeGemms(gemms.merged, gemms.types, gemms.calls);

  GemmCalls calls{
      static_cast<int64_t>(gemms.calls.size()),
      static_cast<int64_t>(gemms.distinct(0, /*ofA=*/true).size()),
      static_cast<int64_t>(gemms.distinct(0, /*ofA=*/false).size())};
  gemms.first = PreparedGemm::prepare(gemms.merged, gemms.types, calls);
  if (gemms.numTerms() > 1) {
    GemmCommand added = gemms.merged;
    added.accumulate = true;
    gemms.added = PreparedGemm::prepare(added, gemms.types, calls);
  }
  int64_t rounds = gemms.first->numRounds();
  if (gemms.isShared(PreparedGemm::SharedFactor::None)) {
    for (int64_t round = 0; round < rounds; ++round)
      addTiles(gemms, 0, gemms.numTerms(), round);
    return;
  }
  for (size_t term = 0; term < gemms.numTerms(); ++term)
    for (int64_t round = 0; round < rounds; ++round) {
      addPacking(gemms, term, round);
      addTiles(gemms, term, term + 1, round);
    }
}

/// The step behind a GEMM with sums over the columns of one of its factors.
void StepBuilder::addColumnSums(const GemmCommand &gemm) {
  Step &step = prepared.steps.emplace_back();
  step.kind = Step::Kind::ColumnSums;
  step.columnSums.emplace(gemm, program().typesOf(gemm));
  step.tiles = step.columnSums->numTiles();
  uint32_t matrix = gemm.columnSumsOf == Summed::A ? gemm.a : gemm.b;
  uint32_t sums = gemm.columnSums;
  bind(step, {{matrix, false}, {sums, true}}, {matrix, sums});
}

void StepBuilder::addGemm(uint32_t command, const GemmCommand &gemm) {
  addMergedGemms(command, gemm);
  if (gemm.columnSums >= 0)
    addColumnSums(gemm);
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
    if (status.ok())
      startCollective({{rank, number}});
    return status;
  }
  // A verified plan waits once for each collective (checkCollectives).
  if (auto *wait = std::get_if<CollectiveWaitCommand>(&command.operation)) {
    finishCollective({{rank, wait->start}});
    return absl::OkStatus();
  }
  if (auto *launch = std::get_if<LaunchCommand>(&command.operation)) {
    addLaunch(*launch);
    return absl::OkStatus();
  }
  if (auto *gemm = std::get_if<GemmCommand>(&command.operation)) {
    addGemm(number, *gemm);
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
  if (auto *wait = std::get_if<CollectiveWaitCommand>(&table.operation)) {
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
  bool isCollective =
      std::holds_alternative<CollectiveStartCommand>(table.operation);
  // All processes prepare all collectives.
  if (!isCollective && devices().layout.devices().size() == 0)
    return absl::OkStatus();
  absl::Status status =
      isCollective ? prepareCollectives(absl::MakeConstSpan(&together, 1), 1)
                   : addStep(command, /*runs=*/1);
  if (!status.ok())
    return named(status, command);
  if (isCollective) {
    startCollective(together);
    finishCollective(together);
  }
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
      nextPacked = 0;
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
  // The step of the loop around the next command, and its commands left.
  size_t loop = 0;
  uint32_t left = 0;
  for (size_t i = 0; i < program().commands.size(); ++i) {
    int64_t runs = left > 0 ? prepared.steps[loop].runs : 1;
    nextPacked = 0;
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
  return absl::OkStatus();
}

absl::StatusOr<PreparedSteps>
shardc::rt::prepareSteps(const PlanSpec &plan,
                         absl::Span<const DeviceSet> ranks, size_t program,
                         const PipelineOrder *order, Collectives &backend,
                         const DeviceProcesses &processes) {
  StepBuilder builder(plan, ranks, program, backend, processes);
  if (absl::Status status =
          order ? builder.addSteps(*order) : builder.addSteps();
      !status.ok())
    return status;
  return builder.take();
}
