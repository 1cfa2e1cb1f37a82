//===- ChromeTrace.cpp - A trace in Chrome's format -----------------------===//

#include "trace/ChromeTrace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

using namespace shardc::rt;

namespace {

/// A JSON string; bytes that are no UTF-8 are replaced.
std::string quote(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

const char *categoryOf(const TracedStep &step) {
  return step.kind == TracedStep::Kind::Communication ? "communication"
                                                      : "compute";
}

/// The numbers of the first tracks ("threads" in the format): steps, then
/// workers, devices and the host.
enum Tracks : int { ofRuns = 1, ofWorkers = 2 };

/// What the workers did in one execution of a step.
struct Execution {
  int64_t begin = 0, end = 0;
  std::vector<StepSpan> spans; ///< By worker; of those replaced an empty one.

  /// One of them.
  const StepSpan &anyOf() const {
    return *std::find_if(spans.begin(), spans.end(),
                         [](const StepSpan &span) { return span.end > 0; });
  }

  void add(int worker, const StepSpan &span, int workers) {
    if (spans.empty()) {
      spans.resize(workers, StepSpan{});
      begin = span.begin;
      end = span.end;
    }
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
    spans[worker] = span;
  }
};

class EventWriter {
public:
  EventWriter(const Trace::State &trace, const TracedProcess &process)
      : trace(trace), process(process) {}

  std::string write();

private:
  /// Of an execution: run, program, run of the loop, step.
  using Key = std::tuple<int32_t, uint32_t, int32_t, uint32_t>;

  const TracedStep &stepOf(const StepSpan &span) const {
    return trace.programs[span.program].steps[span.step];
  }

  /// The number of a new track, behind those that there are.
  int addTrack(const std::string &name);
  void add(const std::string &event);
  /// A complete event, `args` without braces.
  void span(int track, const std::string &name, const std::string &category,
            int64_t begin, int64_t end, const std::string &args);
  void flow(const std::string &name, int fromTrack, int64_t from, int toTrack,
            int64_t to);
  void counter(const std::string &name, int64_t at, double value);
  std::string microseconds(int64_t nanoseconds) const;
  const std::string &argsOf(const StepSpan &span);
  std::string nameOfRun(const TracedRun &run) const;

  void addNames();
  void addHost();
  void addRuns();
  void addWorker(int worker, const std::vector<StepSpan> &spans);
  void addDevices(const Execution &execution);
  void writeDevices();
  void addInFlight(const Key &key, const Execution &execution);
  void addWaits(const TracedStep &step, const Execution &execution);
  void addWaitsOfStreams(const Key &key, const Execution &execution);
  bool haveCommonDevice(const StepSpan &a, const StepSpan &b) const;
  void addRates();
  void addCounters();

  const Trace::State &trace;
  const TracedProcess &process;
  std::map<Key, Execution> executions;
  std::map<std::pair<uint32_t, uint32_t>, std::string> args; // by program, step
  /// By device of the mesh.
  struct DeviceSpan {
    const StepSpan *of;
    int64_t begin, end;
  };
  std::vector<std::vector<DeviceSpan>> devices;
  int nextTrack = ofRuns;
  int64_t nextFlow = 0;
  std::string text;
};

} // namespace

/// Chrome counts in microseconds; here from the start of the computer, since
/// that is where the clock of Linux begins.
std::string EventWriter::microseconds(int64_t nanoseconds) const {
  nanoseconds += process.clockOffset;
  return absl::StrFormat("%d.%03d", nanoseconds / 1000, nanoseconds % 1000);
}

void EventWriter::add(const std::string &event) {
  absl::StrAppend(&text, text.empty() ? "" : ",\n", "{\"pid\":", process.rank,
                  ",", event, "}");
}

int EventWriter::addTrack(const std::string &name) {
  const int track = nextTrack++;
  add(absl::StrCat("\"tid\":", track,
                   ",\"ph\":\"M\",\"name\":\"thread_name\",\"args\":{\"name\":",
                   quote(name), "}"));
  add(absl::StrCat("\"tid\":", track,
                   ",\"ph\":\"M\",\"name\":\"thread_sort_index\",\"args\":{"
                   "\"sort_index\":",
                   track, "}"));
  return track;
}

void EventWriter::span(int track, const std::string &name,
                       const std::string &category, int64_t begin, int64_t end,
                       const std::string &args) {
  add(absl::StrCat("\"tid\":", track, ",\"ph\":\"X\",\"name\":", quote(name),
                   ",\"cat\":\"", category, "\",\"ts\":", microseconds(begin),
                   absl::StrFormat(",\"dur\":%d.%03d", (end - begin) / 1000,
                                   (end - begin) % 1000),
                   ",\"args\":{", args, "}"));
}

void EventWriter::flow(const std::string &name, int fromTrack, int64_t from,
                       int toTrack, int64_t to) {
  std::string common =
      absl::StrCat(",\"name\":", quote(name), ",\"cat\":\"flow\",\"id\":\"",
                   process.rank, ".", nextFlow++, "\",\"ts\":");
  add(absl::StrCat("\"tid\":", fromTrack, ",\"ph\":\"s\"", common,
                   microseconds(from)));
  add(absl::StrCat("\"tid\":", toTrack, ",\"ph\":\"f\",\"bp\":\"e\"", common,
                   microseconds(to)));
}

void EventWriter::counter(const std::string &name, int64_t at, double value) {
  add(absl::StrCat("\"tid\":0,\"ph\":\"C\",\"name\":", quote(name),
                   ",\"ts\":", microseconds(at), ",\"args\":{\"value\":",
                   absl::StrFormat("%.17g", value), "}"));
}

/// "step 10", or the name of another program; "step 10, failed".
std::string EventWriter::nameOfRun(const TracedRun &run) const {
  return absl::StrCat(run.step < 0 ? trace.programs[run.program].name
                                   : absl::StrCat("step ", run.step),
                      run.failed ? ", failed" : "");
}

/// The arguments of all executions of a step.
const std::string &EventWriter::argsOf(const StepSpan &span) {
  std::string &text = args[{span.program, span.step}];
  if (!text.empty())
    return text;
  const TracedStep &step = stepOf(span);
  std::vector<std::string> fields = {
      absl::StrCat("\"part\":", quote(step.part))};
  auto addText = [&](const char *name, const std::string &value) {
    if (!value.empty())
      fields.push_back(absl::StrCat("\"", name, "\":", quote(value)));
  };
  auto addNumber = [&](const char *name, double value) {
    if (value > 0)
      fields.push_back(absl::StrFormat("\"%s\":%.17g", name, value));
  };
  addText("source", step.source);
  addText("shapes", step.shapes);
  addText("task", step.task);
  addNumber("bytes", step.bytes);
  addNumber("flops", step.flops);
  addNumber("wire bytes per device", step.wireBytes);
  return text = absl::StrJoin(fields, ",");
}

void EventWriter::addNames() {
  add(absl::StrCat("\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":",
                   quote(process.name), "}"));
  add(absl::StrCat("\"ph\":\"M\",\"name\":\"process_sort_index\",\"args\":{"
                   "\"sort_index\":",
                   process.rank, "}"));
  addTrack("steps");
  for (const TracedWorker &worker : trace.lanes)
    addTrack(worker.name);
}

/// A track for each name, in the order in which they appear.
void EventWriter::addHost() {
  std::lock_guard<std::mutex> lock(trace.hostMutex);
  std::map<std::string, int> tracks;
  for (const HostSpan &one : trace.host) {
    auto [track, isNew] = tracks.emplace(one.track, 0);
    if (isNew)
      track->second = addTrack(one.track);
    span(track->second, one.name, "host", one.begin, one.end, "");
  }
}

void EventWriter::addRuns() {
  for (const TracedRun &run : trace.runs)
    span(ofRuns, nameOfRun(run), "run", run.begin, run.end,
         absl::StrCat("\"program\":", quote(trace.programs[run.program].name)));
}

void EventWriter::addWorker(int worker, const std::vector<StepSpan> &spans) {
  // Shorter ones are the cost of a barrier.
  constexpr int64_t leastWait = 200;
  for (const StepSpan &one : spans) {
    const TracedStep &step = stepOf(one);
    if (one.begin - one.arrived >= leastWait)
      span(ofWorkers + worker, "wait", "wait", one.arrived, one.begin,
           absl::StrCat("\"before\":", quote(step.name),
                        ",\"run\":", quote(nameOfRun(trace.runs[one.run]))));
    if (step.kind != TracedStep::Kind::Loop && one.hasTasks())
      span(ofWorkers + worker, step.name, categoryOf(step), one.begin, one.end,
           absl::StrCat("\"run\":", quote(nameOfRun(trace.runs[one.run])),
                        ",\"step\":", one.step, ",\"loop\":", one.loop, ",",
                        argsOf(one)));
    executions[{one.run, one.program, one.loop, one.step}].add(
        worker, one, trace.workers.size());
  }
}

/// The time of a worker's span is divided among the calls in it by the number
/// of their tasks, in their order, as the worker takes them.
void EventWriter::addDevices(const Execution &execution) {
  const TracedStep &step = stepOf(execution.anyOf());
  for (size_t call = 0; call < step.devices.size(); ++call) {
    int64_t first = call * step.tasksPerCall;
    int64_t last = first + step.tasksPerCall;
    if (step.devices.size() == 1) {
      first = 0;
      last = std::numeric_limits<int32_t>::max();
    }
    int64_t begin = execution.end, end = execution.begin;
    for (const StepSpan &span : execution.spans) {
      int64_t from = std::max<int64_t>(span.firstTask, first);
      int64_t to = std::min<int64_t>(span.endTask, last);
      if (from >= to)
        continue;
      double perTask =
          double(span.end - span.begin) / (span.endTask - span.firstTask);
      begin = std::min<int64_t>(begin,
                                span.begin + perTask * (from - span.firstTask));
      end =
          std::max<int64_t>(end, span.begin + perTask * (to - span.firstTask));
    }
    if (begin > end)
      continue;
    for (int64_t device : step.devices[call])
      devices[device].push_back({&execution.anyOf(), begin, end});
  }
}

/// Workers that do not wait for one another may work for one device at the same
/// time. Then it has several tracks, since spans of a track do not overlap.
void EventWriter::writeDevices() {
  for (size_t device = 0; device < devices.size(); ++device) {
    std::vector<DeviceSpan> &spans = devices[device];
    std::stable_sort(spans.begin(), spans.end(),
                     [](const DeviceSpan &a, const DeviceSpan &b) {
                       return a.begin < b.begin;
                     });
    struct Lane {
      int track;
      int64_t end;
    };
    std::vector<Lane> lanes;
    for (const DeviceSpan &one : spans) {
      auto lane =
          std::find_if(lanes.begin(), lanes.end(),
                       [&](const Lane &lane) { return lane.end <= one.begin; });
      if (lane == lanes.end()) {
        std::string name =
            absl::StrCat("device ", device, " (", trace.devices[device], ")");
        if (!lanes.empty())
          absl::StrAppend(&name, ", beside it");
        if (lanes.size() > 1)
          absl::StrAppend(&name, " ", lanes.size());
        lane = lanes.insert(lane, {addTrack(name), 0});
      }
      lane->end = one.end;
      const TracedStep &step = stepOf(*one.of);
      span(lane->track, step.name, categoryOf(step), one.begin, one.end,
           argsOf(*one.of));
    }
  }
}

/// A collective from its start to the end of its wait, as an asynchronous
/// event, with a flow from the one to the other.
void EventWriter::addInFlight(const Key &key, const Execution &execution) {
  auto [run, program, loop, number] = key;
  const TracedStep &step = stepOf(execution.anyOf());
  if (!step.endsCollective())
    return;
  auto started =
      executions.find({run, program, loop, uint32_t(step.startedAt)});
  auto waited = executions.find({run, program, loop, uint32_t(step.waitedAt)});
  if (started == executions.end() || waited == executions.end())
    return;
  // What worker 0 does next when the collective starts; a flow begins there.
  int64_t begin = started->second.begin;
  std::string common = absl::StrCat(
      ",\"name\":", quote(step.name), ",\"cat\":\"collective\",\"id\":\"",
      process.rank, ".", run, ".", program, ".", loop, ".", number,
      "\",\"tid\":", int(ofRuns), ",\"ts\":");
  add(absl::StrCat("\"ph\":\"b\"", common, microseconds(begin), ",\"args\":{",
                   argsOf(execution.anyOf()), "}"));
  add(absl::StrCat("\"ph\":\"e\"", common, microseconds(execution.end)));
  const StepSpan &wait = waited->second.spans[0];
  if (started != waited && started->second.spans[0].hasTasks() &&
      wait.hasTasks())
    flow("in flight", ofWorkers, begin, ofWorkers, wait.begin);
}

/// Waits for others that are shorter have no flow.
static constexpr int64_t leastFlow = 1000;

/// Flows from the worker that came last to a barrier to those that waited.
void EventWriter::addWaits(const TracedStep &step, const Execution &execution) {
  if (!step.needsBarrier)
    return;
  size_t last = 0;
  for (size_t worker = 0; worker < execution.spans.size(); ++worker)
    if (execution.spans[worker].arrived > execution.spans[last].arrived)
      last = worker;
  for (size_t worker = 0; worker < execution.spans.size(); ++worker) {
    const StepSpan &waiter = execution.spans[worker];
    if (waiter.begin - waiter.arrived >= leastFlow && worker != last &&
        waiter.hasTasks())
      flow("waited for", ofWorkers + last, execution.spans[last].arrived - 1,
           ofWorkers + worker, waiter.begin);
  }
}

/// Of streams: they wait for those of their own devices.
bool EventWriter::haveCommonDevice(const StepSpan &a, const StepSpan &b) const {
  const std::vector<int64_t> &ofA = stepOf(a).devices[a.firstTask];
  const std::vector<int64_t> &ofB = stepOf(b).devices[b.firstTask];
  return std::find_first_of(ofA.begin(), ofA.end(), ofB.begin(), ofB.end()) !=
         ofA.end();
}

/// Flows from the command that ended last of those that one on another stream
/// waited for.
void EventWriter::addWaitsOfStreams(const Key &key,
                                    const Execution &execution) {
  auto [run, program, loop, number] = key;
  for (size_t stream = 0; stream < execution.spans.size(); ++stream) {
    const StepSpan &waiter = execution.spans[stream];
    if (!waiter.hasTasks() || waiter.begin - waiter.arrived < leastFlow)
      continue;
    size_t last = stream;
    int64_t end = 0;
    for (auto [step, ofLoop] : stepOf(waiter).after) {
      auto producer = executions.find({run, program, ofLoop, step});
      if (producer == executions.end())
        continue;
      for (size_t other = 0; other < producer->second.spans.size(); ++other)
        if (const StepSpan &one = producer->second.spans[other];
            one.hasTasks() && one.end > end && haveCommonDevice(one, waiter)) {
          last = other;
          end = one.end;
        }
    }
    if (last != stream)
      // Its end is noted behind what lets the other go on.
      flow("waited for", ofWorkers + last, std::min(end, waiter.begin) - 1,
           ofWorkers + stream, waiter.begin);
  }
}

void EventWriter::addCounters() {
  std::map<int, uint64_t> arena;                  // by rank of the pipeline
  std::vector<std::pair<int64_t, uint64_t>> sent; // at, bytes
  std::vector<const Execution *> inTime;
  for (const auto &one : executions)
    inTime.push_back(&one.second);
  std::stable_sort(inTime.begin(), inTime.end(),
                   [](const Execution *a, const Execution *b) {
                     return a->begin < b->begin;
                   });
  for (const Execution *execution : inTime) {
    const TracedStep &step = stepOf(execution->anyOf());
    if (auto [last, isNew] = arena.emplace(step.rank, step.arenaBytes);
        isNew || last->second != step.arenaBytes) {
      last->second = step.arenaBytes;
      counter(step.rank < 0
                  ? "arena bytes with values"
                  : absl::StrCat("arena bytes with values, pipeline rank ",
                                 step.rank),
              execution->begin, step.arenaBytes);
    }
    if (step.wireBytes > 0)
      sent.emplace_back(execution->end, step.wireBytes);
  }
  for (const TracedRun &run : trace.runs)
    if (uint64_t bytes = trace.programs[run.program].sharedWireBytes)
      sent.emplace_back(run.end, bytes);
  std::stable_sort(sent.begin(), sent.end());
  uint64_t sum = 0;
  for (auto [at, bytes] : sent)
    counter("wire bytes per device", at, sum += bytes);
}

/// Of all GEMMs that run at a time: on GPUs those of several streams.
void EventWriter::addRates() {
  struct Change {
    int64_t at;
    int begun;
    double rate;
  };
  std::vector<Change> changes;
  for (const auto &[key, execution] : executions) {
    const TracedStep &step = stepOf(execution.anyOf());
    if (step.flops == 0 || execution.end <= execution.begin)
      continue;
    const double rate = step.flops / (execution.end - execution.begin);
    changes.push_back({execution.begin, 1, rate});
    changes.push_back({execution.end, -1, -rate});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change &a, const Change &b) {
                     return std::pair(a.at, a.begun) < std::pair(b.at, b.begun);
                   });
  int running = 0;
  double sum = 0;
  for (const Change &change : changes) {
    running += change.begun;
    // Without what rounding leaves.
    sum = running == 0 ? 0 : sum + change.rate;
    counter("GFLOP/s of GEMMs", change.at, sum);
  }
}

std::string EventWriter::write() {
  addNames();
  addRuns();
  for (size_t worker = 0; worker < trace.workers.size(); ++worker)
    addWorker(worker, trace.workers[worker].inOrder());
  devices.resize(trace.devices.size());
  for (const auto &[key, execution] : executions) {
    addDevices(execution);
    addInFlight(key, execution);
    addWaits(stepOf(execution.anyOf()), execution);
    addWaitsOfStreams(key, execution);
  }
  writeDevices();
  addHost();
  addCounters();
  addRates();
  uint64_t lost = 0;
  for (const SpanRing &worker : trace.workers)
    lost += worker.numLost();
  if (lost > 0)
    add(absl::StrCat("\"ph\":\"M\",\"name\":\"process_labels\",\"args\":{"
                     "\"labels\":\"",
                     lost, " earlier spans did not fit\"}"));
  return std::move(text);
}

std::string shardc::rt::chromeEvents(const Trace::State &trace,
                                     const TracedProcess &process) {
  return EventWriter(trace, process).write();
}

std::string shardc::rt::chromeTrace(const std::vector<std::string> &events,
                                    const std::string &plan) {
  return absl::StrCat(
      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"plan\":", plan,
      "},\n\"traceEvents\":[\n", absl::StrJoin(events, ",\n"), "\n]}\n");
}
