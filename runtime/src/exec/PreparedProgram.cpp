//===- PreparedProgram.cpp - Runs a program's steps -----------------------===//

#include "exec/PreparedProgram.h"

#include "absl/container/inlined_vector.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace shardc::rt;

void PreparedProgram::note(const absl::Status &status) {
  if (status.ok())
    return;
  std::lock_guard<std::mutex> lock(errorMutex);
  error.Update(status);
}

void PreparedProgram::runGemm(const Step &step, void *const *table,
                              int64_t tile) {
  // Factors of every term, the result, the bias.
  int64_t factors = step.operands - 1 - step.hasBias;
  void *c = table[factors];
  const void *bias = step.hasBias ? table[factors + 1] : nullptr;
  note(step.gemm->run(table[0], table[1], bias, c, tile));
  for (int64_t term = 2; term < factors; term += 2)
    note(step.addTerm->run(table[term], table[term + 1], bias, c, tile));
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
      ofRun.assign(context, context + devices.contextStride);
      ofRun.back() = run;
      context = ofRun.data();
    }
    step.kernel(table, context, step.first + tiles.begin * step.grain,
                std::min(step.last, step.first + tiles.end * step.grain));
    break;
  }
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
  case Step::Kind::Start:
  case Step::Kind::Wait:
  case Step::Kind::Loop:
    break;
  }
}

void PreparedProgram::runLocal(const Step &step, int64_t run, int worker) {
  TaskRange tasks(step.numTasks(), worker, workers);
  for (int64_t task = tasks.begin; task < tasks.end;) {
    int64_t call = task / step.tiles, first = task % step.tiles;
    int64_t count = std::min(step.tiles - first, tasks.end - task);
    runCall(step, step.calls[call], run, {first, first + count});
    task += count;
  }
}

void PreparedProgram::runCollective(const Step &step, int64_t run, int worker,
                                    Counters &counters) {
  using Clock = std::chrono::steady_clock;
  PreparedCollective &collective =
      *(*step.collectives)[step.collectives->size() == 1 ? 0 : run];
  if (step.kind == Step::Kind::Start) {
    if (worker == 0)
      note(collective.start());
    return;
  }
  Clock::time_point start = Clock::now();
  TaskRange tasks(collective.numTasks(), worker, workers);
  for (int64_t task = tasks.begin; task < tasks.end; ++task)
    note(collective.runTask(task));
  if (worker > 0)
    return;
  counters.wireBytes += step.wireBytes;
  counters.communicationSeconds +=
      std::chrono::duration<double>(Clock::now() - start).count();
}

void PreparedProgram::run(int worker, WorkerPool &pool, Counters &counters) {
  runRange({0, steps.size()}, worker, pool, counters);
}

void PreparedProgram::runRange(Range range, int worker, WorkerPool &pool,
                               Counters &counters) {
  for (size_t index = range.begin; index < range.end; ++index) {
    const Step &step = steps[index];
    if (step.needsBarrier)
      pool.barrier();
    if (step.kind == Step::Kind::Loop) {
      size_t end = index + 1 + step.length;
      for (int64_t run = 0; run < step.runs; ++run)
        runRange({index + 1, end, run}, worker, pool, counters);
      index = end - 1;
    } else if (step.isLocal()) {
      runLocal(step, range.run, worker);
    } else {
      runCollective(step, range.run, worker, counters);
    }
  }
}

absl::Status PreparedProgram::takeError() {
  std::lock_guard<std::mutex> lock(errorMutex);
  absl::Status taken = std::move(error);
  error = absl::OkStatus();
  return taken;
}
