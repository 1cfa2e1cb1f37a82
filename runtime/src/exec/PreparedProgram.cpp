//===- PreparedProgram.cpp - A program bound to its arenas ----------------===//
//
// Each worker has a share of the tasks of every step. A section ends where a
// step needs what other shares have written. Shares, sections and the order of
// what they compute are a matter of the program alone; who computes which part
// of them is not.
//
//===----------------------------------------------------------------------===//

#include "exec/PreparedProgram.h"

#include "exec/CallOrders.h"
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
                         const DeviceProcesses &processes,
                         const MicroKernels &kernels, int workers) {
  using Result = absl::StatusOr<std::unique_ptr<PreparedProgram>>;
  auto prepareIn = [&](const PipelineOrder *order) -> Result {
    absl::StatusOr<PreparedSteps> steps = prepareSteps(
        plan, ranks, program, order, collectives, processes, kernels);
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

bool PreparedProgram::readInPlace(size_t tensor, const void *array,
                                  int64_t width) {
  auto input =
      absl::c_find_if(prepared.inputs, [&](const PreparedSteps::Input &input) {
        return input.tensor == tensor;
      });
  if (input == prepared.inputs.end())
    return false;
  if (reinterpret_cast<uintptr_t>(array) % width != 0) {
    std::memcpy(input->memory.get(), array, input->bytes);
    array = input->memory.get();
  }
  if (array == input->array)
    return true;
  input->array = static_cast<const char *>(array);
  // Nobody writes there: tables also have the addresses of results.
  for (const PreparedSteps::Input::Place &place : input->places)
    prepared.steps[place.step].table[place.entry] =
        const_cast<char *>(input->array) + place.offset;
  return true;
}

bool PreparedProgram::knowsAccesses(const Step &step) const {
  // Between processes others access them, too.
  return step.isLocal() || (step.collectives.size() == 1 && !transport &&
                            step.collectives[0]->visitAccesses(
                                0, 0, [](const void *, uint64_t, bool) {}));
}

void PreparedProgram::noteAccesses(const Step &step, int share, int64_t runs,
                                   Barriers &barriers) const {
  TaskRange range = tasksOf(step, tasksIn(step, /*run=*/0), share);
  if (range.begin >= range.end)
    return;
  if (!step.isLocal()) {
    step.collectives[0]->visitAccesses(
        range.begin, range.end,
        [&](const void *data, uint64_t bytes, bool isWrite) {
          barriers.access(share, data, bytes, isWrite);
        });
    return;
  }
  step.forEachCall(
      range.begin, range.end, [&](int64_t call, int64_t begin, int64_t end) {
        for (int64_t operand = 0; operand < step.operands; ++operand) {
          Step::Bytes bytes = step.bytesOf(operand, begin, end);
          if (bytes.begin == bytes.end)
            continue;
          if (!step.strides.empty())
            bytes.end += (runs - 1) * step.strides[operand];
          const void *address = step.table[step.calls[call].buffers + operand];
          barriers.access(
              share, static_cast<const char *>(address) + bytes.begin,
              bytes.end - bytes.begin, step.accesses[operand].isWrite);
        }
      });
}

void PreparedProgram::chooseOwner(Step &step, int64_t runs,
                                  absl::Span<const double> seconds,
                                  Barriers &barriers) const {
  std::vector<int> shares(workers);
  absl::c_iota(shares, 0);
  absl::c_stable_sort(shares,
                      [&](int a, int b) { return seconds[a] < seconds[b]; });
  for (int share : shares) {
    step.ownerOfOne = share;
    noteAccesses(step, share, runs, barriers);
    bool isNeeded = barriers.isNeeded();
    barriers.dropStep();
    if (!isNeeded)
      return;
  }
  step.ownerOfOne = 0;
}

void PreparedProgram::placeBarriers() {
  Barriers barriers(workers);
  CallOrders orders(workers);
  // What each share has to do since the last barrier.
  std::vector<double> seconds(workers, 0);
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
    default:
      break;
    }
    orders.choose(step);
    const int64_t tasks = tasksIn(step, /*run=*/0);
    if (!knowsAccesses(step)) {
      step.needsBarrier = tasks > 0;
      if (step.needsBarrier)
        barriers.accessAll();
      continue;
    }
    // Between processes worker 0 moves messages.
    if (tasks == 1 && workers > 1 && !transport)
      chooseOwner(step, runs, seconds, barriers);
    for (int share = 0; share < workers; ++share)
      noteAccesses(step, share, runs, barriers);
    step.needsBarrier = barriers.endStep();
    if (step.needsBarrier)
      absl::c_fill(seconds, 0);
    for (int share = 0; share < workers; ++share) {
      TaskRange range = tasksOf(step, tasks, share);
      if (range.begin < range.end)
        seconds[share] +=
            estimateSeconds(step) * (range.end - range.begin) / tasks;
    }
  }
  sections = findSections(/*ofEachStep=*/false);
  sectionsOfSteps = findSections(/*ofEachStep=*/true);
  for (size_t step = 0; step < prepared.steps.size(); ++step)
    for (int share = 0; share < workers; ++share)
      portions.push_back(portionOf(step, /*run=*/0, share));
}

int64_t PreparedProgram::tasksIn(const Step &step, int64_t run) {
  if (step.kind == Step::Kind::Collective)
    return step.collectives[step.collectives.size() == 1 ? 0 : run]->numTasks();
  return step.isLocal() ? step.numTasks() : 0;
}

TaskRange PreparedProgram::tasksOf(const Step &step, int64_t all,
                                   int share) const {
  TaskRange range(all, share, workers);
  if (all == 1)
    range.begin = share != step.ownerOfOne;
  // One worker has the same tile of calls that are taken together.
  if (step.together > 1 && all >= step.together * workers) {
    range = TaskRange(all / step.together, share, workers);
    range.begin *= step.together;
    range.end *= step.together;
  }
  return range;
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

double PreparedProgram::estimateSeconds(const Step &step) {
  // Rough rates of a core.
  constexpr double flopsPerSecond = 5e10, bytesPerSecond = 1e10;
  double bytes = step.bytes;
  for (const Step::Access &access : step.accesses)
    bytes += access.bytes;
  bytes *= step.calls.size();
  if (step.kind == Step::Kind::Collective)
    bytes = step.collectives[0]->bytes();
  return step.flops / flopsPerSecond + bytes / bytesPerSecond;
}

int64_t PreparedProgram::tasksWorthTaking(const Step &step) const {
  // Long beside the tens of nanoseconds in which a chunk is taken.
  constexpr double worthTaking = 10e-6;
  const double seconds = estimateSeconds(step);
  if (seconds == 0)
    return 1;
  return std::ceil(
      std::min<double>(worthTaking / seconds, 1) *
      (step.isLocal() ? step.numTasks() : step.collectives[0]->numTasks()));
}

PreparedProgram::Portion PreparedProgram::portionOf(size_t number, int64_t run,
                                                    int share) const {
  const Step &step = prepared.steps[number];
  Portion portion;
  portion.tasks = tasksOf(step, tasksIn(step, run), share);
  const int64_t tasks = portion.tasks.end - portion.tasks.begin;
  if (tasks == 0)
    return portion;
  portion.tasksPerChunk = workers == 1
                              ? tasks
                              : std::max(tasksWorthTaking(step),
                                         tasks / SharedWork::mostChunks + 1);
  portion.chunks = (tasks + portion.tasksPerChunk - 1) / portion.tasksPerChunk;
  return portion;
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
  hasError = true;
}

void PreparedProgram::runGemm(const Step &step, void *const *table,
                              int64_t tile) {
  // Factors of every term, the result, the bias, pieces, the packed factor.
  int64_t factors =
      step.operands - 1 - step.hasBias - step.pieces - step.hasPacked;
  GemmOperands operands{table[0],
                        table[1],
                        step.hasBias ? table[factors + 1] : nullptr,
                        table[factors],
                        step.hasPacked ? table[step.operands - 1] : nullptr,
                        table + 2};
  step.gemm->run(operands, step.round, tile);
  for (int64_t term = 2; step.addTerm && term < factors; term += 2) {
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
      step.gemm->pack(table, table[step.operands - 1], step.round, tile);
    break;
  case Step::Kind::Gemm:
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile)
      runGemm(step, table, tile);
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

TracedProgram PreparedProgram::describe(const PlanSpec &plan) const {
  return describeSteps(plan, ranks, number, prepared);
}

std::string PreparedProgram::describeProgress(const PlanSpec &plan,
                                              const WorkerPool &pool) const {
  size_t furthestBehind = prepared.steps.size();
  for (int share = 0; share < pool.size(); ++share)
    if (std::optional<uint32_t> step = pool.stepOf(share))
      furthestBehind = std::min<size_t>(furthestBehind, *step);
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
  step.forEachCall(tasks.begin, tasks.end,
                   [&](int64_t call, int64_t begin, int64_t end) {
                     while (begin < end) {
                       const int64_t next = byTile ? begin + 1 : end;
                       runCall(step, step.calls[call], run, {begin, next});
                       begin = next;
                       if (moves)
                         transport->progress();
                     }
                   });
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
  SharedStep firstStep(int share) override {
    return stepFrom(share, sections[section].begin);
  }
  SharedStep stepAfter(int share, uint32_t number) override {
    return stepFrom(share, number + 1);
  }
  void runChunk(int worker, int share, uint32_t number, int chunk) override;
  bool isDivided() const override { return trace || program.transport; }
  bool whileCallerWaits() override;

private:
  /// The next step of the section, from `number` on, of which the share has
  /// tasks.
  SharedStep stepFrom(int share, size_t number);
  Portion portionOf(int share, size_t number) const;
  void count(const Step &step);
  void record(int share, uint32_t number, const TaskRange &tasks,
              int64_t begin);

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

PreparedProgram::Portion PreparedProgram::Run::portionOf(int share,
                                                         size_t number) const {
  // Those of collectives that move are a matter of the run.
  const bool varies = program.prepared.steps[number].collectives.size() > 1;
  Portion portion = varies ? program.portionOf(number, run, share)
                           : program.portions[number * program.workers + share];
  if (isDivided() && portion.chunks > 1) {
    portion.tasksPerChunk = portion.tasks.end - portion.tasks.begin;
    portion.chunks = 1;
  }
  return portion;
}

SharedStep PreparedProgram::Run::stepFrom(int share, size_t number) {
  const size_t end = sections[section].end;
  for (; number < end; ++number) {
    if (share == 0)
      count(program.prepared.steps[number]);
    const Portion portion = portionOf(share, number);
    if (portion.chunks > 0)
      return {static_cast<uint32_t>(number), portion.chunks};
    if (trace)
      record(share, number, portion.tasks, Trace::State::now());
  }
  return {};
}

/// What is counted once for all shares.
void PreparedProgram::Run::count(const Step &step) {
  if (counters.measures)
    counters.startClock(step.clock);
  counters.setCommunicating(!step.senders.empty());
  for (int rank : step.senders)
    counters.wireBytes[rank] += step.wireBytes;
}

void PreparedProgram::Run::runChunk(int worker, int share, uint32_t number,
                                    int chunk) {
  const Step &step = program.prepared.steps[number];
  const Portion portion = portionOf(share, number);
  TaskRange tasks = portion.tasks;
  tasks.begin += chunk * portion.tasksPerChunk;
  tasks.end = std::min(tasks.end, tasks.begin + portion.tasksPerChunk);
  const int64_t begin = trace ? Trace::State::now() : 0;
  if (program.hasError.load(std::memory_order_relaxed))
    return;
  if (step.isLocal())
    program.runLocal(step, run, tasks,
                     /*movesMessages=*/worker == 0 && program.transport);
  else
    program.runCollective(step, run, tasks);
  if (trace)
    record(share, number, tasks, begin);
}

/// A share's worker alone runs it, in one chunk.
void PreparedProgram::Run::record(int share, uint32_t number,
                                  const TaskRange &tasks, int64_t begin) {
  const int64_t now = Trace::State::now();
  trace->workers[share].add(
      {static_cast<uint32_t>(program.number), number, counters.tracedRun,
       static_cast<int32_t>(run), static_cast<int32_t>(tasks.begin),
       static_cast<int32_t>(tasks.end), arrived[share], begin, now});
  arrived[share] = now;
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
  absl::Status taken = error;
  error = absl::OkStatus();
  hasError = false;
  return taken;
}
