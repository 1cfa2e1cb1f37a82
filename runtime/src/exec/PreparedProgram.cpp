//===- PreparedProgram.cpp - A program bound to its arenas ----------------===//
//
// Each worker has a share of the tasks of every step. A section ends where a
// step needs what other shares have written. Shares, sections and the order of
// what they compute are a matter of the program alone; who computes which part
// of them is not.
//
//===----------------------------------------------------------------------===//

#include "exec/PreparedProgram.h"

#include "exec/DescribeSteps.h"

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <cmath>
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
  sections = findSections(/*ofEachStep=*/false);
  sectionsOfSteps = findSections(/*ofEachStep=*/true);
  for (const Step &step : prepared.steps)
    chunkTasks.push_back(tasksPerChunk(step));
}

std::vector<PreparedProgram::Section>
PreparedProgram::findSections(bool ofEachStep) const {
  std::vector<Section> found;
  size_t first = 0, loop = 0, loopEnd = 0;
  bool begins = true;
  for (size_t i = 0; i < prepared.steps.size(); ++i) {
    const Step &step = prepared.steps[i];
    if (step.kind == Step::Kind::Loop) {
      first = found.size();
      loop = i;
      loopEnd = i + 1 + step.length;
      begins = true;
      continue;
    }
    if (begins || ofEachStep || step.needsBarrier)
      found.push_back({i, i});
    found.back().end = i + 1;
    begins = i + 1 == loopEnd;
    if (begins) {
      found.back().first = first;
      found.back().runs = prepared.steps[loop].runs;
    }
  }
  return found;
}

int64_t PreparedProgram::tasksPerChunk(const Step &step) const {
  // Rough rates of a core; what counts is that a chunk takes long beside the
  // tens of nanoseconds in which it is taken.
  constexpr double worthTaking = 10e-6, flopsPerSecond = 5e10,
                   bytesPerSecond = 1e10;
  double bytes = step.bytes;
  for (const Step::Access &access : step.accesses)
    bytes += access.bytes;
  double seconds =
      step.flops / flopsPerSecond + bytes * step.calls.size() / bytesPerSecond;
  if (!step.isLocal() || seconds == 0)
    return 1;
  return std::ceil(std::min<double>(worthTaking / seconds, 1) *
                   step.numTasks());
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
                                   int share) const {
  int64_t tasks = step.isLocal() ? step.numTasks() : 0;
  if (step.kind == Step::Kind::Collective)
    tasks =
        step.collectives[step.collectives.size() == 1 ? 0 : run]->numTasks();
  return TaskRange(tasks, share, workers);
}

TracedProgram PreparedProgram::describe(const PlanSpec &plan) const {
  return describeSteps(plan, ranks, number, prepared);
}

std::string PreparedProgram::describeProgress(const PlanSpec &plan,
                                              const WorkerPool &pool) const {
  size_t furthestBehind = prepared.steps.size();
  for (const Share &share : pool.progress())
    furthestBehind = std::min<size_t>(
        furthestBehind, share.step.load(std::memory_order_relaxed));
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

void PreparedProgram::runLocal(const Step &step, int64_t run, TaskRange tasks,
                               bool movesMessages) {
  // Messages move behind each call, and behind each tile of a GEMM, which takes
  // microseconds or more.
  const bool moves = movesMessages && transport->isInFlight();
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

void PreparedProgram::runCollective(const Step &step, int64_t run,
                                    TaskRange tasks) {
  PreparedCollective &collective =
      *step.collectives[step.collectives.size() == 1 ? 0 : run];
  for (int64_t task = tasks.begin; task < tasks.end; ++task)
    note(inWords(step, collective.runTask(task)));
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

/// Between several processes, whose messages worker 0 moves, and in a trace,
/// which has a span of each worker for every step, all workers do their own
/// shares.
class PreparedProgram::Run : public SharedWork {
public:
  Run(PreparedProgram &program, Counters &counters)
      : program(program), counters(counters), trace(counters.trace),
        sections(counters.measures ? program.sectionsOfSteps
                                   : program.sections) {
    if (trace)
      arrived.resize(program.workers, Trace::State::now());
  }

  bool openSection() override;
  void begin(int number, Share &share) override;
  void advance(int number, Share &share) override {
    goTo(number, share, share.step.load(std::memory_order_relaxed) + 1);
  }
  void runChunk(int worker, int number, const Share &share, int chunk) override;
  bool isDivided() const override { return trace || program.transport; }
  bool whileCallerWaits() override;

private:
  void goTo(int number, Share &share, size_t step);
  void count(const Step &step);
  void record(int number, const Share &share, int64_t begin);

  PreparedProgram &program;
  Counters &counters;
  Trace::State *const trace;
  const std::vector<Section> &sections;
  size_t section = 0, next = 0;
  int64_t run = 0, nextRun = 0; ///< Of a loop.
  std::vector<int64_t> arrived; ///< In a trace, by share: its last step's end.
};

bool PreparedProgram::Run::openSection() {
  if (next == sections.size())
    return false;
  section = next;
  run = nextRun;
  const Section &now = sections[section];
  if (now.runs > run + 1) {
    next = now.first;
    ++nextRun;
  } else {
    ++next;
    if (now.runs > 0)
      nextRun = 0;
  }
  return true;
}

void PreparedProgram::Run::begin(int number, Share &share) {
  share.endStep = sections[section].end;
  share.run = run;
  goTo(number, share, sections[section].begin);
}

/// Goes to a step of which the share has tasks, from `step` on.
void PreparedProgram::Run::goTo(int number, Share &share, size_t step) {
  for (; step < share.endStep; ++step) {
    const Step &now = program.prepared.steps[step];
    share.step.store(step, std::memory_order_relaxed);
    TaskRange range = program.tasksOf(now, share.run, number);
    share.firstTask = range.begin;
    share.endTask = range.end;
    if (number == 0)
      count(now);
    const int64_t tasks = range.end - range.begin;
    if (tasks > 0) {
      share.tasksPerChunk =
          program.workers == 1 || isDivided()
              ? tasks
              : std::max(program.chunkTasks[step], tasks / mostChunks + 1);
      // Without a division, which small steps would notice.
      share.chunks =
          tasks <= share.tasksPerChunk
              ? 1
              : (tasks + share.tasksPerChunk - 1) / share.tasksPerChunk;
      return;
    }
    if (trace)
      record(number, share, Trace::State::now());
  }
  share.chunks = 0;
}

/// What is counted once for all shares.
void PreparedProgram::Run::count(const Step &step) {
  if (counters.measures)
    counters.startClock(step.clock);
  counters.setCommunicating(!step.senders.empty());
  for (int rank : step.senders)
    counters.wireBytes[rank] += step.wireBytes;
}

void PreparedProgram::Run::runChunk(int worker, int number, const Share &share,
                                    int chunk) {
  const Step &step =
      program.prepared.steps[share.step.load(std::memory_order_relaxed)];
  TaskRange tasks(0, 0, 1);
  tasks.begin = share.firstTask + chunk * share.tasksPerChunk;
  tasks.end = std::min(share.endTask, tasks.begin + share.tasksPerChunk);
  const int64_t begin = trace ? Trace::State::now() : 0;
  if (step.isLocal())
    program.runLocal(step, share.run, tasks,
                     /*movesMessages=*/worker == 0 && program.transport);
  else
    program.runCollective(step, share.run, tasks);
  if (trace)
    record(number, share, begin);
}

/// A share's worker alone runs it, in one chunk.
void PreparedProgram::Run::record(int number, const Share &share,
                                  int64_t begin) {
  const int64_t now = Trace::State::now();
  trace->workers[number].add(
      {static_cast<uint32_t>(program.number),
       share.step.load(std::memory_order_relaxed), counters.tracedRun,
       static_cast<int32_t>(share.run), static_cast<int32_t>(share.firstTask),
       static_cast<int32_t>(share.endTask), arrived[number], begin, now});
  arrived[number] = now;
}

bool PreparedProgram::Run::whileCallerWaits() {
  if (!program.transport || !program.transport->isInFlight())
    return false;
  program.transport->progress();
  return true;
}

void PreparedProgram::run(WorkerPool &pool, Counters &counters) {
  if (counters.measures && !prepared.clocks.empty())
    counters.clockSeconds.resize(prepared.clocks.back());
  Run run(*this, counters);
  pool.run(run);
  if (counters.measures)
    counters.startClock(-1);
  counters.setCommunicating(false);
  for (size_t rank = 0; rank < prepared.sharedBytes.size(); ++rank)
    counters.wireBytes[rank] += prepared.sharedBytes[rank];
}

absl::Status PreparedProgram::takeError() {
  std::lock_guard<std::mutex> lock(errorMutex);
  absl::Status taken = std::move(error);
  error = absl::OkStatus();
  return taken;
}
