//===- PreparedProgram.cpp - A program bound to its arenas ----------------===//
//
// Preparing a program: every command becomes one step or several, addresses are
// looked up, and barriers are placed. Running it: all workers go through the
// steps at the same time.
//
//===----------------------------------------------------------------------===//

#include "exec/PreparedProgram.h"

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <tuple>
#include <utility>

using namespace shardc::rt;

using Clock = std::chrono::steady_clock;

//===----------------------------------------------------------------------===//
// Preparing
//===----------------------------------------------------------------------===//

char *PreparedProgram::addressOn(int rank, int64_t device, uint32_t buffer,
                                 int64_t run) const {
  if (messagePlaces)
    std::tie(rank, buffer) = messagePlaces->placeOf({rank, buffer});
  return ranks[rank].memory +
         ranks[rank].layout.offsetOf(number, buffer, device, run);
}

void PreparedProgram::setStrides(Step &step,
                                 const std::vector<uint32_t> &buffers) const {
  bool moves = false;
  for (uint32_t buffer : buffers) {
    step.strides.push_back(program().buffers[buffer].stride);
    moves |= step.strides.back() > 0;
  }
  if (!moves)
    step.strides.clear();
}

void PreparedProgram::bind(Step &step, const std::vector<Operand> &operands,
                           const std::vector<uint32_t> &buffers) const {
  step.operands = buffers.size();
  setStrides(step, buffers);
  for (uint32_t buffer : buffers) {
    Access &access = step.accesses.emplace_back();
    for (const Operand &operand : operands)
      if (operand.buffer == buffer) {
        access.bytes = program().buffers[buffer].bytes;
        access.isWrite |= operand.isWrite;
      }
  }
  for (int64_t device : devices().layout.devicesFor(number, operands)) {
    step.calls.push_back(
        {devices().contexts.data() + device * devices().contextStride,
         step.table.size()});
    for (uint32_t buffer : buffers)
      step.table.push_back(address(device, buffer));
  }
}

/// One step for neighbouring parts that run for the same devices.
void PreparedProgram::addLaunch(const LaunchCommand &launch) {
  int64_t next = 0;
  for (size_t i = 0; i < launch.parts.size();) {
    Step &step = steps.emplace_back();
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
    }
    step.last = next;
    step.tiles = (step.last - step.first + launch.grain - 1) / launch.grain;
    bind(step, operands, launch.buffers);
  }
}

/// A GEMM, with a bias and a relu, of all devices.
struct PreparedProgram::MergedGemms {
  const GemmCommand &command;
  GemmCommand merged;
  GemmTypes types;
  std::vector<GemmPointers> calls;
  uint64_t firstPacked; ///< The place of its first packed factor.
  std::shared_ptr<const PreparedGemm> first;
  /// Adds the second and further terms of a sum; null if there are none.
  std::shared_ptr<const PreparedGemm> added;

  size_t numTerms() const { return calls[0].terms.size(); }
  const PreparedGemm &ofTerm(size_t term) const {
    return term == 0 ? *first : *added;
  }
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

/// Packs the shared factors of a term, each once.
void PreparedProgram::addPacking(const MergedGemms &gemms, size_t term,
                                 int64_t round) {
  Step &step = steps.emplace_back();
  step.kind = Step::Kind::Pack;
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
  packed = std::max(packed, nextPacked);
}

/// The tiles of the terms [firstTerm, lastTerm), of which several are not
/// packed.
void PreparedProgram::addTiles(const MergedGemms &gemms, size_t firstTerm,
                               size_t lastTerm, int64_t round) {
  Step &step = steps.emplace_back();
  const GemmCommand &command = gemms.command, &merged = gemms.merged;
  step.kind = Step::Kind::Gemm;
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
void PreparedProgram::addMergedGemms(uint32_t command,
                                     const GemmCommand &gemm) {
  MergedGemms gemms{gemm,    gemm,   program().typesOf(gemm), {}, nextPacked,
                    nullptr, nullptr};
  std::vector<int64_t> of = devices().layout.devicesFor(
      number, operandsOf(program(), program().commands[command]));
  std::vector<std::vector<int64_t>> terms =
      devices().layout.termsOf(number, command, of);
  for (size_t i = 0; i < of.size(); ++i) {
    GemmPointers &one = gemms.calls.emplace_back();
    for (int64_t device : terms[i])
      one.terms.push_back({address(device, gemm.a), address(device, gemm.b)});
    one.c = address(of[i], gemm.c);
    one.bias = gemm.bias >= 0 ? address(of[i], gemm.bias) : nullptr;
  }
  if (gemm.activation == Activation::ReluGradient)
    gemms.merged.activation = Activation::None;
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

/// The step behind a GEMM with a mask. A relu writes the mask, a bit for each
/// positive result; the gradient of a relu sets results to zero by it.
void PreparedProgram::addMask(const GemmCommand &gemm) {
  Step &step = steps.emplace_back();
  bool isWritten = gemm.activation == Activation::Relu;
  step.kind = isWritten ? Step::Kind::WriteMask : Step::Kind::ApplyMask;
  step.mask.emplace(gemm, program().typesOf(gemm).result);
  step.tiles = step.mask->numTiles();
  uint32_t mask = gemm.mask;
  if (isWritten)
    bind(step, {{gemm.c, false}, {mask, true}}, {gemm.c, mask});
  else
    bind(step, {{mask, false}, {gemm.c, true}}, {mask, gemm.c});
}

/// The step behind a GEMM with sums over the columns of one of its matrices.
void PreparedProgram::addColumnSums(const GemmCommand &gemm) {
  Step &step = steps.emplace_back();
  step.kind = Step::Kind::ColumnSums;
  step.columnSums.emplace(gemm, program().typesOf(gemm));
  step.tiles = step.columnSums->numTiles();
  uint32_t matrix = gemm.columnSumsOf == Summed::A   ? gemm.a
                    : gemm.columnSumsOf == Summed::B ? gemm.b
                                                     : gemm.c;
  uint32_t sums = gemm.columnSums;
  bind(step, {{matrix, false}, {sums, true}}, {matrix, sums});
}

void PreparedProgram::addGemm(uint32_t command, const GemmCommand &gemm) {
  addMergedGemms(command, gemm);
  if (gemm.mask >= 0)
    addMask(gemm);
  if (gemm.columnSums >= 0)
    addColumnSums(gemm);
}

/// The collective without the addresses of its tensors.
CollectiveSpec PreparedProgram::describeCollective(
    const CollectiveStartCommand &command) const {
  CollectiveSpec spec;
  spec.kind = command.kind;
  spec.reduction = command.reduction;
  spec.axes = command.axes;
  spec.targetAxes = command.targetAxes;
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
const Mesh &PreparedProgram::meshOf(const PipelineStep &starts) const {
  return starts.size() > 1 ? plan.mesh : devices().plan.mesh;
}

CollectiveSpec PreparedProgram::bindCollective(const PipelineStep &starts,
                                               int64_t run) const {
  CollectiveSpec spec = describeCollective(std::get<CollectiveStartCommand>(
      program().commands[starts[0].command].operation));
  for (CollectiveTensor &tensor : spec.tensors) {
    tensor.in.resize(meshOf(starts).numDevices());
    tensor.out.resize(meshOf(starts).numDevices());
  }
  for (RankCommand start : starts) {
    auto &items = std::get<CollectiveStartCommand>(
                      programOf(start.rank).commands[start.command].operation)
                      .items;
    for (size_t i = 0; i < items.size(); ++i)
      for (int64_t device = ranks[start.rank].layout.devices().first;
           device < ranks[start.rank].layout.devices().last; ++device) {
        int64_t place =
            starts.size() > 1 ? plan.deviceOf(start.rank, device) : device;
        spec.tensors[i].in[place] =
            addressOn(start.rank, device, items[i].in, run);
        spec.tensors[i].out[place] =
            addressOn(start.rank, device, items[i].out, run);
      }
  }
  return spec;
}

absl::Status PreparedProgram::prepareCollective(const PipelineStep &starts,
                                                int64_t runs,
                                                Collectives &backend) {
  auto &start = std::get<CollectiveStartCommand>(
      program().commands[starts[0].command].operation);
  bool moves = false;
  for (const CollectiveItem &item : start.items)
    moves |= program().buffers[item.in].stride > 0 ||
             program().buffers[item.out].stride > 0;
  PreparedCollectives &ofRuns = collectives[{rank, starts[0].command}];
  for (int64_t run = 0; run < (moves ? runs : 1); ++run) {
    absl::StatusOr<std::unique_ptr<PreparedCollective>> prepared =
        backend.prepare(meshOf(starts), bindCollective(starts, run));
    if (!prepared.ok())
      return prepared.status();
    ofRuns.push_back(*std::move(prepared));
  }
  return absl::OkStatus();
}

/// The steps of a collective that has been prepared: one for its first tasks,
/// and one for those of each `next`. The first counts its bytes.
void PreparedProgram::addCollective(const PipelineStep &starts) {
  std::vector<PreparedCollective *> now;
  for (const auto &ofRun : collectives[{rank, starts[0].command}])
    now.push_back(ofRun.get());
  uint64_t bytes = wireBytes(
      meshOf(starts), describeCollective(std::get<CollectiveStartCommand>(
                          program().commands[starts[0].command].operation)));
  // They are the same in all runs, but for addresses.
  while (now[0]) {
    Step &step = steps.emplace_back();
    step.kind = Step::Kind::Collective;
    step.collectives = now;
    step.wireBytes = std::exchange(bytes, 0);
    for (RankCommand start : starts)
      step.senders.push_back(start.rank);
    for (PreparedCollective *&ofRun : now)
      ofRun = ofRun->next();
  }
}

/// One step for each buffer, with a call for every copy at the receiver. There
/// is none for a buffer whose value is in its place already.
void PreparedProgram::addTransfer(RankCommand from, RankCommand to) {
  auto &sent = std::get<SendCommand>(
      programOf(from.rank).commands[from.command].operation);
  auto &received = std::get<ReceiveCommand>(
      programOf(to.rank).commands[to.command].operation);
  for (size_t i = 0; i < sent.buffers.size(); ++i) {
    uint32_t in = sent.buffers[i], out = received.buffers[i];
    if (addressOn(from.rank, 0, in) == addressOn(to.rank, 0, out)) {
      sharedBytes[from.rank] += programOf(to.rank).buffers[out].bytes;
      continue;
    }
    Step &step = steps.emplace_back();
    step.kind = Step::Kind::Copy;
    step.bytes = step.wireBytes = programOf(to.rank).buffers[out].bytes;
    step.senders = {from.rank};
    step.operands = 2;
    step.accesses = {{step.bytes, false}, {step.bytes, true}};
    for (int64_t device :
         ranks[to.rank].layout.devicesFor(number, {{out, true}})) {
      step.calls.push_back({nullptr, step.table.size()});
      step.table.push_back(addressOn(from.rank, device, in));
      step.table.push_back(addressOn(to.rank, device, out));
    }
  }
}

absl::Status PreparedProgram::addStep(uint32_t number, int64_t runs,
                                      Collectives &backend) {
  const Command &command = program().commands[number];
  if (std::holds_alternative<CollectiveStartCommand>(command.operation))
    return prepareCollective({{rank, number}}, runs, backend);
  // A verified plan waits once for each collective (checkCollectives).
  if (auto *wait = std::get_if<CollectiveWaitCommand>(&command.operation)) {
    addCollective({{rank, wait->start}});
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
  steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status PreparedProgram::named(const absl::Status &status,
                                    uint32_t command) const {
  return absl::Status(status.code(),
                      absl::StrCat("program \"", program().name, "\", command ",
                                   command, ": ", status.message()));
}

/// Gives the kernel of a task its microbatch as the run of a loop.
void PreparedProgram::setMicrobatch(Step &step, int64_t microbatch) const {
  if (step.kind != Step::Kind::Launch)
    return;
  for (const Call &call : step.calls) {
    step.contexts.insert(step.contexts.end(), call.context,
                         call.context + devices().contextStride);
    step.contexts.back() = microbatch;
  }
  for (size_t i = 0; i < step.calls.size(); ++i)
    step.calls[i].context = step.contexts.data() + i * devices().contextStride;
}

/// Adds the steps of `together`, with their clock and microbatch.
absl::Status PreparedProgram::addSteps(const PipelineStep &together,
                                       Collectives &backend) {
  rank = together[0].rank;
  uint32_t command = together[0].command, first = steps.size();
  const Command &table = program().commands[command];
  if (auto *send = std::get_if<SendCommand>(&table.operation)) {
    addTransfer(together[0], together[1]);
    for (; first < steps.size(); ++first)
      steps[first].clock = clocks[ranks.size()] + send->message;
    return absl::OkStatus();
  }
  bool isCollective =
      std::holds_alternative<CollectiveStartCommand>(table.operation);
  absl::Status status = isCollective
                            ? prepareCollective(together, /*runs=*/1, backend)
                            : addStep(command, /*runs=*/1, backend);
  if (!status.ok())
    return named(status, command);
  if (isCollective)
    addCollective(together);
  for (; table.task >= 0 && first < steps.size(); ++first) {
    setMicrobatch(steps[first], program().tasks[table.task].microbatch);
    steps[first].clock = clocks[rank] + table.task;
  }
  return absl::OkStatus();
}

absl::Status PreparedProgram::addSteps(const PipelineOrder &order,
                                       Collectives &backend) {
  std::vector<const ArenaLayout *> layouts;
  for (const DeviceSet &devices : ranks)
    layouts.push_back(&devices.layout);
  messagePlaces.emplace(plan, layouts, number, order);
  sharedBytes.resize(ranks.size());
  clocks = {0};
  for (const DeviceSet &devices : ranks)
    clocks.push_back(clocks.back() +
                     devices.plan.programs[number].tasks.size());
  clocks.push_back(clocks.back() + order.messages);
  // By step its round, and its place among those of its command.
  std::vector<std::pair<int64_t, size_t>> places;
  for (size_t i = 0; i < order.steps.size(); ++i) {
    if (i > 0 && order.rounds[i] != order.rounds[i - 1])
      nextPacked = 0;
    size_t first = steps.size();
    if (absl::Status status = addSteps(order.steps[i], backend); !status.ok())
      return status;
    for (size_t added = first; added < steps.size(); ++added)
      places.push_back({order.rounds[i], added - first});
  }
  sortSteps(places);
  messagePlaces.reset();
  return absl::OkStatus();
}

/// Sorts the steps by `places`: in a round the first steps of all commands come
/// first, then their second ones, so that one barrier serves all.
void PreparedProgram::sortSteps(
    absl::Span<const std::pair<int64_t, size_t>> places) {
  std::vector<size_t> order(steps.size());
  absl::c_iota(order, 0);
  absl::c_stable_sort(
      order, [&](size_t a, size_t b) { return places[a] < places[b]; });
  std::vector<Step> sorted;
  for (size_t index : order)
    sorted.push_back(std::move(steps[index]));
  steps = std::move(sorted);
}

absl::Status PreparedProgram::addSteps(Collectives &backend) {
  // The step of the loop around the next command, and its commands left.
  size_t loop = 0;
  uint32_t left = 0;
  for (size_t i = 0; i < program().commands.size(); ++i) {
    int64_t runs = left > 0 ? steps[loop].runs : 1;
    nextPacked = 0;
    if (absl::Status status = addStep(i, runs, backend); !status.ok())
      return named(status, i);
    if (auto *command =
            std::get_if<LoopCommand>(&program().commands[i].operation)) {
      loop = steps.size() - 1;
      left = command->commands;
    } else if (left > 0 && --left == 0) {
      steps[loop].length = steps.size() - loop - 1;
    }
  }
  return absl::OkStatus();
}

void PreparedProgram::placeBarriers() {
  Barriers barriers(workers);
  size_t loopEnd = steps.size();
  int64_t runs = 1;
  for (size_t i = 0; i < steps.size(); ++i) {
    Step &step = steps[i];
    if (i == loopEnd) {
      barriers.accessAll();
      runs = 1;
    }
    switch (step.kind) {
    case Step::Kind::Loop:
      // The last step of a run comes before the first of the next.
      barriers.accessAll();
      loopEnd = i + 1 + step.length;
      runs = step.runs;
      continue;
    case Step::Kind::Collective:
      step.needsBarrier = step.collectives[0]->numTasks() > 0;
      if (step.needsBarrier)
        barriers.accessAll();
      continue;
    default:
      break;
    }
    for (int worker = 0; worker < workers; ++worker) {
      TaskRange range(step.numTasks(), worker, workers);
      if (range.begin == range.end)
        continue;
      size_t first = range.begin / step.tiles;
      size_t last = (range.end - 1) / step.tiles;
      for (int64_t operand = 0; operand < step.operands; ++operand)
        for (size_t call = first; call <= last; ++call) {
          uint64_t bytes = step.accesses[operand].bytes;
          if (!step.strides.empty())
            bytes += (runs - 1) * step.strides[operand];
          barriers.access(worker,
                          step.table[step.calls[call].buffers + operand], bytes,
                          step.accesses[operand].isWrite);
        }
    }
    step.needsBarrier = barriers.endStep();
  }
}

absl::StatusOr<std::unique_ptr<PreparedProgram>> PreparedProgram::prepare(
    const PlanSpec &plan, absl::Span<const DeviceSet> ranks, size_t program,
    const PipelineOrder *order, Collectives &collectives, int workers) {
  using Result = absl::StatusOr<std::unique_ptr<PreparedProgram>>;
  auto prepareIn = [&](const PipelineOrder *order) -> Result {
    std::unique_ptr<PreparedProgram> prepared(
        new PreparedProgram(plan, ranks, program, workers));
    if (absl::Status status = order ? prepared->addSteps(*order, collectives)
                                    : prepared->addSteps(collectives);
        !status.ok())
      return status;
    return prepared;
  };
  if (!order)
    return prepareIn(nullptr);
  if (workers > 1)
    if (Result inRounds = prepareIn(order);
        !inRounds.ok() || (*inRounds)->isShared())
      return inRounds;
  PipelineOrder sequence = order->inSequence();
  return prepareIn(&sequence);
}

bool PreparedProgram::isShared() const {
  return absl::c_any_of(steps, [](const Step &step) {
    return step.isLocal() ? step.numTasks() > 1
                          : step.collectives[0]->numTasks() > 1;
  });
}

void PreparedProgram::bindPacked(char *memory) {
  for (Step &step : steps)
    for (const Call &call : step.calls)
      if (step.hasPacked) {
        void *&place = step.table[call.buffers + step.operands - 1];
        place = memory + reinterpret_cast<uintptr_t>(place);
      }
  placeBarriers();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

void PreparedProgram::note(const absl::Status &status) {
  if (status.ok())
    return;
  std::lock_guard<std::mutex> lock(errorMutex);
  error.Update(status);
}

void PreparedProgram::runGemm(const Step &step, void *const *table,
                              int64_t tile) {
  // Factors of every term, the result, the bias, the packed factor.
  int64_t factors = step.operands - 1 - step.hasBias - step.hasPacked;
  GemmOperands operands{
      table[0], table[1], step.hasBias ? table[factors + 1] : nullptr,
      table[factors], step.hasPacked ? table[step.operands - 1] : nullptr};
  step.gemm->run(operands, step.round, tile);
  for (int64_t term = 2; term < factors; term += 2) {
    operands.a = table[term];
    operands.b = table[term + 1];
    step.addTerm->run(operands, step.round, tile);
  }
}

void PreparedProgram::runCall(const Step &step, const Call &call, int64_t run,
                              TileRange tiles) {
  void *const *table = step.table.data() + call.buffers;
  absl::InlinedVector<void *, 16> moved;
  if (run > 0 && !step.strides.empty()) {
    for (int64_t i = 0; i < step.operands; ++i)
      moved.push_back(static_cast<char *>(table[i]) + run * step.strides[i]);
    table = moved.data();
  }
  switch (step.kind) {
  case Step::Kind::Launch: {
    const int64_t *context = call.context;
    absl::InlinedVector<int64_t, 8> ofRun;
    if (run > 0) {
      ofRun.assign(context, context + devices().contextStride);
      ofRun.back() = run;
      context = ofRun.data();
    }
    step.kernel(table, context, step.first + tiles.begin * step.grain,
                std::min(step.last, step.first + tiles.end * step.grain));
    break;
  }
  case Step::Kind::Pack:
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile)
      step.gemm->pack(table[0], table[1], step.round, tile);
    break;
  case Step::Kind::Gemm:
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile)
      runGemm(step, table, tile);
    break;
  case Step::Kind::WriteMask:
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile)
      step.mask->write(table[0], table[1], tile);
    break;
  case Step::Kind::ApplyMask:
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile)
      step.mask->apply(table[0], table[1], tile);
    break;
  case Step::Kind::ColumnSums:
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile)
      step.columnSums->run(table[0], table[1], tile);
    break;
  case Step::Kind::Copy:
    std::memmove(table[1], table[0], step.bytes);
    break;
  case Step::Kind::Clear:
    std::memset(table[0], 0, step.bytes);
    break;
  case Step::Kind::Collective:
  case Step::Kind::Loop:
    break;
  }
}

void PreparedProgram::runLocal(const Step &step, int64_t run, int worker) {
  TaskRange tasks(step.numTasks(), worker, workers);
  for (int64_t task = tasks.begin; task < tasks.end;) {
    int64_t call = step.calls.size() == 1 ? 0 : task / step.tiles;
    int64_t first = task - call * step.tiles;
    int64_t count = std::min(step.tiles - first, tasks.end - task);
    runCall(step, step.calls[call], run, {first, first + count});
    task += count;
  }
}

void PreparedProgram::runCollective(const Step &step, int64_t run, int worker) {
  PreparedCollective &collective =
      *step.collectives[step.collectives.size() == 1 ? 0 : run];
  TaskRange tasks(collective.numTasks(), worker, workers);
  for (int64_t task = tasks.begin; task < tasks.end; ++task)
    note(collective.runTask(task));
}

/// Runs a collective or a transfer, and counts it.
void PreparedProgram::communicate(const Step &step, int64_t run, int worker,
                                  Counters &counters) {
  if (step.isLocal())
    runLocal(step, run, worker);
  else
    runCollective(step, run, worker);
  if (worker == 0)
    for (int rank : step.senders)
      counters.wireBytes[rank] += step.wireBytes;
}

void PreparedProgram::Counters::setCommunicating(bool now) {
  if (now == communicates)
    return;
  communicates = now;
  Clock::time_point time = Clock::now();
  if (now)
    communicationStart = time;
  else
    communicationSeconds +=
        std::chrono::duration<double>(time - communicationStart).count();
}

void PreparedProgram::Counters::startClock(int next) {
  Clock::time_point now = Clock::now();
  if (clock >= 0)
    clockSeconds[clock] +=
        std::chrono::duration<double>(now - clockStart).count();
  clock = next;
  clockStart = now;
}

PipelineTimes PreparedProgram::timesOf(const Counters &counters) const {
  auto first = counters.clockSeconds.begin();
  PipelineTimes times;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    times.tasks.emplace_back(first + clocks[rank], first + clocks[rank + 1]);
  times.messages.assign(first + clocks[ranks.size()], first + clocks.back());
  return times;
}

void PreparedProgram::run(int worker, WorkerPool &pool, Counters &counters) {
  bool measures = counters.measures && worker == 0;
  if (measures && !clocks.empty())
    counters.clockSeconds.resize(clocks.back());
  runRange({0, steps.size()}, worker, pool, counters);
  if (measures)
    counters.startClock(-1);
  if (worker == 0)
    counters.setCommunicating(false);
  for (size_t rank = 0; worker == 0 && rank < sharedBytes.size(); ++rank)
    counters.wireBytes[rank] += sharedBytes[rank];
}

void PreparedProgram::runRange(Range range, int worker, WorkerPool &pool,
                               Counters &counters) {
  for (size_t index = range.begin; index < range.end; ++index) {
    const Step &step = steps[index];
    if (step.needsBarrier || counters.measures)
      pool.barrier();
    // Behind the barrier, where all workers have ended what came before.
    if (counters.measures && worker == 0)
      counters.startClock(step.clock);
    if (worker == 0)
      counters.setCommunicating(!step.senders.empty());
    if (step.kind == Step::Kind::Loop) {
      size_t end = index + 1 + step.length;
      for (int64_t run = 0; run < step.runs; ++run)
        runRange({index + 1, end, run}, worker, pool, counters);
      index = end - 1;
    } else if (step.senders.empty()) {
      runLocal(step, range.run, worker);
    } else {
      communicate(step, range.run, worker, counters);
    }
  }
}

absl::Status PreparedProgram::takeError() {
  std::lock_guard<std::mutex> lock(errorMutex);
  absl::Status taken = std::move(error);
  error = absl::OkStatus();
  return taken;
}
