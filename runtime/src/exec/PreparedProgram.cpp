//===- PreparedProgram.cpp - A program bound to its arenas ----------------===//
//
// All workers go through the steps at the same time, each with its share of the
// tasks; barriers stand where a step needs what others have written.
//
//===----------------------------------------------------------------------===//

#include "exec/PreparedProgram.h"

#include "exec/DescribeSteps.h"

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

using namespace shardc::rt;

using Clock = std::chrono::steady_clock;

absl::StatusOr<std::unique_ptr<PreparedProgram>>
PreparedProgram::prepare(const PlanSpec &plan,
                         absl::Span<const DeviceSet> ranks, size_t program,
                         const PipelineOrder *order, Collectives &collectives,
                         const DeviceProcesses &processes, int workers) {
  using Result = absl::StatusOr<std::unique_ptr<PreparedProgram>>;
  auto prepareIn = [&](const PipelineOrder *order) -> Result {
    absl::StatusOr<PreparedSteps> steps =
        prepareSteps(plan, ranks, program, order, collectives, processes);
    if (!steps.ok())
      return steps.status();
    return std::unique_ptr<PreparedProgram>(new PreparedProgram(
        *std::move(steps), ranks, program, processes.transport(), workers));
  };
  if (!order)
    return prepareIn(nullptr);
  if (processes.size() > 1) {
    PipelineOrder remote =
        addRemoteSteps(plan, program, order->inSequence(), processes);
    return prepareIn(&remote);
  }
  if (workers > 1)
    if (Result inRounds = prepareIn(order);
        !inRounds.ok() || (*inRounds)->isShared())
      return inRounds;
  PipelineOrder sequence = order->inSequence();
  return prepareIn(&sequence);
}

bool PreparedProgram::isShared() const {
  return absl::c_any_of(prepared.steps, [](const Step &step) {
    return step.isLocal() ? step.numTasks() > 1
                          : step.collectives[0]->numTasks() > 1;
  });
}

void PreparedProgram::bindPacked(char *memory) {
  for (Step &step : prepared.steps)
    for (const Step::Call &call : step.calls)
      if (step.hasPacked) {
        void *&place = step.table[call.buffers + step.operands - 1];
        place = memory + reinterpret_cast<uintptr_t>(place);
      }
  placeBarriers();
}

void PreparedProgram::placeBarriers() {
  Barriers barriers(workers);
  size_t loopEnd = prepared.steps.size();
  int64_t runs = 1;
  for (size_t i = 0; i < prepared.steps.size(); ++i) {
    Step &step = prepared.steps[i];
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

/// An error with the communication that it is of.
static absl::Status inWords(const Step &step, const absl::Status &status) {
  if (status.ok())
    return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), " (in ", step.what, ")"));
}

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

void PreparedProgram::runCall(const Step &step, const Step::Call &call,
                              int64_t run, TileRange tiles) {
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
      ofRun.assign(context, context + ranks[0].contextStride);
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
  case Step::Kind::StartMessages:
    note(inWords(step, step.messages->start()));
    break;
  case Step::Kind::FinishMessages:
    note(inWords(step, step.messages->finish()));
    break;
  case Step::Kind::Collective:
  case Step::Kind::Loop:
    break;
  }
}

TaskRange PreparedProgram::tasksOf(const Step &step, int64_t run,
                                   int worker) const {
  int64_t tasks = step.isLocal() ? step.numTasks() : 0;
  if (step.kind == Step::Kind::Collective)
    tasks =
        step.collectives[step.collectives.size() == 1 ? 0 : run]->numTasks();
  return TaskRange(tasks, worker, workers);
}

TracedProgram PreparedProgram::describe(const PlanSpec &plan) const {
  return describeSteps(plan, ranks, number, prepared);
}

std::string PreparedProgram::describeProgress(const PlanSpec &plan) const {
  size_t furthestBehind = prepared.steps.size();
  for (const Place &place : places)
    furthestBehind =
        std::min(furthestBehind, place.step.load(std::memory_order_relaxed));
  const TracedProgram described = describe(plan);
  if (furthestBehind >= described.steps.size())
    return "";
  const TracedStep &step = described.steps[furthestBehind];
  std::string where = step.part;
  for (const std::string &more : {step.task, step.source})
    if (!more.empty())
      absl::StrAppend(&where, where.empty() ? "" : ", ", more);
  return where.empty() ? step.name : absl::StrCat(step.name, " (", where, ")");
}

void PreparedProgram::runLocal(const Step &step, int64_t run, int worker) {
  TaskRange tasks = tasksOf(step, run, worker);
  // Messages move behind each call, and behind each tile of a GEMM, which takes
  // microseconds or more.
  const bool moves = movesMessages(worker);
  const bool byTile = moves && step.kind == Step::Kind::Gemm;
  for (int64_t task = tasks.begin; task < tasks.end;) {
    int64_t call = step.calls.size() == 1 ? 0 : task / step.tiles;
    int64_t first = task - call * step.tiles;
    int64_t count = byTile ? 1 : std::min(step.tiles - first, tasks.end - task);
    runCall(step, step.calls[call], run, {first, first + count});
    task += count;
    if (moves)
      transport->progress();
  }
}

void PreparedProgram::runCollective(const Step &step, int64_t run, int worker) {
  PreparedCollective &collective =
      *step.collectives[step.collectives.size() == 1 ? 0 : run];
  TaskRange tasks = tasksOf(step, run, worker);
  for (int64_t task = tasks.begin; task < tasks.end; ++task)
    note(inWords(step, collective.runTask(task)));
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
    times.tasks.emplace_back(first + prepared.clocks[rank],
                             first + prepared.clocks[rank + 1]);
  times.messages.assign(first + prepared.clocks[ranks.size()],
                        first + prepared.clocks.back());
  return times;
}

void PreparedProgram::run(int worker, WorkerPool &pool, Counters &counters) {
  bool measures = counters.measures && worker == 0;
  if (measures && !prepared.clocks.empty())
    counters.clockSeconds.resize(prepared.clocks.back());
  runRange({0, prepared.steps.size()}, worker, pool, counters);
  if (measures)
    counters.startClock(-1);
  if (worker == 0)
    counters.setCommunicating(false);
  for (size_t rank = 0; worker == 0 && rank < prepared.sharedBytes.size();
       ++rank)
    counters.wireBytes[rank] += prepared.sharedBytes[rank];
}

void PreparedProgram::runRange(Range range, int worker, WorkerPool &pool,
                               Counters &counters) {
  for (size_t index = range.begin; index < range.end; ++index) {
    const Step &step = prepared.steps[index];
    const int64_t arrived = counters.trace ? Trace::State::now() : 0;
    if (step.needsBarrier || counters.measures)
      pool.barrier([&] {
        if (movesMessages(worker))
          transport->progress();
      });
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
      continue;
    }
    places[worker].step.store(index, std::memory_order_relaxed);
    const int64_t begin = counters.trace ? Trace::State::now() : 0;
    if (step.senders.empty())
      runLocal(step, range.run, worker);
    else
      communicate(step, range.run, worker, counters);
    if (counters.trace) {
      TaskRange tasks = tasksOf(step, range.run, worker);
      counters.trace->workers[worker].add(
          {static_cast<uint32_t>(number), static_cast<uint32_t>(index),
           counters.tracedRun, static_cast<int32_t>(range.run),
           static_cast<int32_t>(tasks.begin), static_cast<int32_t>(tasks.end),
           arrived, begin, Trace::State::now()});
    }
  }
}

absl::Status PreparedProgram::takeError() {
  std::lock_guard<std::mutex> lock(errorMutex);
  absl::Status taken = std::move(error);
  error = absl::OkStatus();
  return taken;
}
