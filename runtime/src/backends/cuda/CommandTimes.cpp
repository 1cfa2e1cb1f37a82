//===- CommandTimes.cpp - When the commands of a program ran --------------===//

#include "backends/cuda/CommandTimes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

TracedStreams::TracedStreams(const std::vector<std::unique_ptr<Gpu>> &gpus,
                             const std::vector<Device> &devices) {
  for (rt::Stream kind :
       {rt::Stream::Compute, rt::Stream::Communication, rt::Stream::Copies})
    for (const Device &device : devices) {
      auto [number, isNew] = numbers.emplace(&device.stream(kind), all.size());
      if (isNew) {
        size_t gpu = 0;
        while (gpus[gpu].get() != device.gpu)
          ++gpu;
        all.push_back({gpu, kind, {}});
      }
      all[number->second].devices.push_back(device.number);
    }
}

std::vector<TracedWorker> TracedStreams::describe() const {
  std::vector<TracedWorker> workers;
  for (const One &one : all) {
    TracedWorker &worker = workers.emplace_back();
    worker.devices = one.devices;
    worker.isBeside = one.kind != rt::Stream::Compute;
    worker.name = absl::StrCat(
        "stream of device", one.devices.size() > 1 ? "s " : " ",
        one.devices.front(),
        one.devices.size() > 1 ? absl::StrCat(" to ", one.devices.back()) : "",
        ": ", toString(one.kind));
  }
  return workers;
}

absl::Status CommandTimes::reserve(size_t gpu, size_t commands) {
  // Of the run its begin and its end, of a command both.
  const size_t most = 2 + 2 * commands;
  while (events[gpu].size() < most) {
    absl::StatusOr<Event> event = Event::createTimed(*gpus[gpu]->context);
    if (!event.ok())
      return event.status();
    events[gpu].push_back(*std::move(event));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> CommandTimes::record(size_t gpu, const Stream &stream) {
  Event &event = events[gpu].at(used[gpu]);
  if (absl::Status s =
          isCaptured ? event.recordInGraph(stream) : event.record(stream);
      !s.ok())
    return s;
  return used[gpu]++;
}

absl::Status CommandTimes::beginRun(size_t gpu) {
  if (gpu == 0) {
    marks.clear();
    used.assign(gpus.size(), 0);
    last.assign(gpus.size(), 0);
    latest.assign(streams.size(), 0);
    begun.assign(streams.size(), 0);
  }
  return record(gpu, *gpus[gpu]->main).status();
}

absl::Status CommandTimes::begin(const Stream &stream, bool hasWaited) {
  const size_t number = streams.numberOf(stream);
  begun[number] = latest[number];
  // Where the host waits for each command, too.
  if (!hasWaited && isCaptured)
    return absl::OkStatus();
  absl::StatusOr<size_t> event = record(streams.gpuOf(number), stream);
  if (event.ok())
    begun[number] = *event;
  return event.status();
}

absl::Status CommandTimes::end(const Stream &stream, uint32_t step, int32_t run,
                               int32_t position) {
  const size_t number = streams.numberOf(stream);
  absl::StatusOr<size_t> event = record(streams.gpuOf(number), stream);
  if (!event.ok())
    return event.status();
  marks.push_back(
      {number, step, run, position, latest[number], begun[number], *event});
  latest[number] = *event;
  return absl::OkStatus();
}

absl::Status CommandTimes::endRun(size_t gpu) {
  absl::StatusOr<size_t> event = record(gpu, *gpus[gpu]->main);
  if (event.ok())
    last[gpu] = *event;
  return event.status();
}

absl::StatusOr<CommandTimes::Times>
CommandTimes::timesOf(size_t gpu, const Event &from) const {
  const std::vector<Event> &own = events[gpu];
  absl::StatusOr<int64_t> begin = own[0].timeSince(from);
  if (!begin.ok())
    return begin.status();
  absl::StatusOr<int64_t> duration = own[last[gpu]].timeSince(own[0]);
  if (!duration.ok())
    return duration.status();
  return Times{*begin, *duration};
}

absl::Status CommandTimes::addSpans(uint32_t program, int32_t run,
                                    absl::Span<const int64_t> begins,
                                    std::vector<SpanRing> &spans) const {
  std::vector<std::vector<int64_t>> times(gpus.size());
  for (size_t gpu = 0; gpu < gpus.size(); ++gpu)
    for (size_t event = 0; event < used[gpu]; ++event) {
      absl::StatusOr<int64_t> since =
          events[gpu][event].timeSince(events[gpu][0]);
      if (!since.ok())
        return since.status();
      times[gpu].push_back(begins[gpu] + *since);
    }
  for (const Mark &mark : marks) {
    const std::vector<int64_t> &at = times[streams.gpuOf(mark.stream)];
    spans[mark.stream].add({program, mark.step, run, mark.run, mark.position,
                            mark.position + 1, at[mark.arrived], at[mark.begin],
                            at[mark.end]});
  }
  return absl::OkStatus();
}
