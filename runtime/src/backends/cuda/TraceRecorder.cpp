//===- TraceRecorder.cpp - Records runs on GPUs in a trace ----------------===//

#include "backends/cuda/TraceRecorder.h"

#include <algorithm>
#include <limits>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::StatusOr<std::unique_ptr<TraceRecorder>>
TraceRecorder::create(const DeviceSet &set,
                      const std::vector<std::unique_ptr<Program>> &programs,
                      std::vector<const BatchMemory *> batches, bool isCaptured,
                      const std::string &plan, Trace &trace) {
  std::unique_ptr<TraceRecorder> recorder(new TraceRecorder(set, trace));
  std::vector<TracedProgram> described;
  for (const std::unique_ptr<Program> &program : programs)
    described.push_back(program->describeSteps());
  Trace::State &state = trace.internals();
  if (absl::Status s = state.open(std::move(described),
                                  recorder->streams.describe(), set.plan.mesh);
      !s.ok())
    return s;
  state.plan = plan;
  for (const std::unique_ptr<Gpu> &gpu : set.gpus) {
    absl::StatusOr<Stream> stream = Stream::create(*gpu->context);
    if (!stream.ok())
      return stream.status();
    recorder->clocks.push_back(*std::move(stream));
    absl::StatusOr<Event> event = Event::createTimed(*gpu->context);
    if (!event.ok())
      return event.status();
    recorder->anchors.push_back({*std::move(event), 0});
  }
  for (const BatchMemory *memory : batches)
    if (absl::Status s = recorder->addBatch(*memory, programs, isCaptured);
        !s.ok())
      return s;
  return recorder;
}

absl::Status
TraceRecorder::addBatch(const BatchMemory &memory,
                        const std::vector<std::unique_ptr<Program>> &programs,
                        bool isCaptured) {
  Batch &batch = batches.emplace_back();
  batch.times.reserve(programs.size());
  for (const std::unique_ptr<Program> &program : programs) {
    CommandTimes &times =
        batch.times.emplace_back(streams, set.gpus, isCaptured);
    if (absl::Status s = program->reserve(times); !s.ok())
      return s;
    if (!isCaptured)
      continue;
    absl::StatusOr<std::vector<Graph>> graphs =
        program->capture(memory, &times);
    if (!graphs.ok())
      return graphs.status();
    batch.graphs.push_back(*std::move(graphs));
  }
  return absl::OkStatus();
}

bool TraceRecorder::needsClocks() const {
  constexpr int64_t longAgo = 1000000000;
  return Trace::State::now() - anchors[0].time > longAgo;
}

absl::Status TraceRecorder::readClocks(absl::Duration deadline) {
  for (size_t gpu = 0; gpu < anchors.size(); ++gpu)
    if (absl::Status s = readClock(gpu, deadline); !s.ok())
      return s;
  return absl::OkStatus();
}

/// An event is reached between two readings of the host's clock: the first of
/// several that takes little longer than the quickest.
absl::Status TraceRecorder::readClock(size_t gpu, absl::Duration deadline) {
  constexpr int rounds = 8;
  Anchor &anchor = anchors[gpu];
  if (absl::Status s = set.gpus[gpu]->context->makeCurrent(); !s.ok())
    return s;
  int64_t quickest = std::numeric_limits<int64_t>::max();
  for (int round = 0; round < 2 * rounds; ++round) {
    const int64_t before = Trace::State::now();
    if (absl::Status s = anchor.event.record(clocks[gpu]); !s.ok())
      return s;
    if (absl::Status s =
            anchor.event.wait(deadline, "reading the clock of a GPU");
        !s.ok())
      return s;
    const int64_t took = Trace::State::now() - before;
    anchor.time = before + took / 2;
    if (round >= rounds && took <= quickest + quickest / 4)
      break;
    quickest = std::min(quickest, took);
  }
  return absl::OkStatus();
}

void TraceRecorder::fail(int32_t run, bool isFirst) {
  Trace::State &state = to->internals();
  state.endRun(run, /*failed=*/true);
  TracedRun &failed = state.runs[run];
  failed.begin = isFirst ? std::max(failed.begin,
                                    *std::max_element(ends.begin(), ends.end()))
                         : failed.end;
  failed.end = std::max(failed.begin, failed.end);
}

absl::Status TraceRecorder::end(size_t number, absl::Span<const size_t> order,
                                int32_t run) {
  Trace::State &state = to->internals();
  Batch &batch = batches[number];
  int64_t firstBegin = std::numeric_limits<int64_t>::max(), lastEnd = 0;
  // One GPU may be in this run while another is still in the one before.
  const int64_t before = *std::max_element(ends.begin(), ends.end());
  for (size_t program : order) {
    const CommandTimes &times = batch.times[program];
    std::vector<int64_t> begins;
    for (size_t gpu = 0; gpu < clocks.size(); ++gpu) {
      absl::StatusOr<CommandTimes::Times> of =
          times.timesOf(gpu, anchors[gpu].event);
      if (!of.ok())
        return of.status();
      // Runs follow one another, whatever readings of clocks say.
      begins.push_back(std::max(anchors[gpu].time + of->begin, ends[gpu]));
      ends[gpu] = begins.back() + of->duration;
      firstBegin = std::min(firstBegin, begins.back());
      lastEnd = std::max(lastEnd, ends[gpu]);
    }
    if (absl::Status s = times.addSpans(program, run, begins, state.workers);
        !s.ok())
      return s;
  }
  state.endRun(run, /*failed=*/false);
  state.runs[run].begin = std::max(firstBegin, before);
  state.runs[run].end = lastEnd;
  return absl::OkStatus();
}
