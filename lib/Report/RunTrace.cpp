//===- RunTrace.cpp - The trace of a run, beside its plan -----------------===//

#include "shardc/Report/RunTrace.h"

#include "shardc/Support/JsonReader.h"
#include "shardc/Support/ReadFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <zlib.h>

using namespace llvm;
using namespace shardc;

namespace {

/// A process and its track, "pid" and "tid" of the format.
using Track = std::pair<int64_t, int64_t>;

class TraceReader {
public:
  TraceReader(const json::Array &events, RunTrace &trace)
      : events(events), trace(trace) {}

  void read() {
    for (const json::Value &value : events)
      if (const json::Object *event = value.getAsObject())
        readName(*event);
    addWorkers();
    for (const json::Value &value : events)
      if (const json::Object *event = value.getAsObject())
        readRun(*event);
    for (const json::Value &value : events)
      if (const json::Object *event = value.getAsObject())
        readSpan(*event);
    for (RunStep &step : trace.steps)
      stable_sort(step.spans, [](const RunSpan &lhs, const RunSpan &rhs) {
        return std::pair(lhs.worker, lhs.startMicroseconds) <
               std::pair(rhs.worker, rhs.startMicroseconds);
      });
    leaveOutSlow();
  }

private:
  static Track getTrack(const json::Object &event) {
    return {event.getInteger("pid").value_or(0),
            event.getInteger("tid").value_or(0)};
  }

  /// Times of a trace are whole nanoseconds, and large: without the rounding of
  /// their difference.
  static double getDuration(double begin, double end) {
    return std::round((end - begin) * 1e3) / 1e3;
  }

  /// The argument `name` of an event, or "".
  static StringRef getArgument(const json::Object &event, StringRef name) {
    const json::Object *arguments = event.getObject("args");
    return arguments ? arguments->getString(name).value_or("") : "";
  }

  void readName(const json::Object &event) {
    StringRef name = event.getString("name").value_or("");
    if (name == "process_name")
      processes[getTrack(event).first] = getArgument(event, "name");
    else if (name == "thread_name")
      tracks[getTrack(event)] = getArgument(event, "name");
    else if (name == "process_labels")
      trace.lost = getArgument(event, "labels");
  }

  void addWorkers() {
    for (const auto &[track, name] : tracks) {
      const bool isStream = name.starts_with("stream of ");
      if (!name.starts_with("worker ") &&
          !(isStream && !name.ends_with(": copies")))
        continue;
      workers[track] = trace.workers.size();
      trace.isBeside.push_back(isStream && name.ends_with(": communication"));
      trace.workers.push_back(processes.size() > 1
                                  ? (processes[track.first] + ", " + name).str()
                                  : name.str());
    }
  }

  /// A train step. With several processes the step of the trace begins with
  /// the first of them and ends with the last.
  void readRun(const json::Object &event) {
    StringRef name = event.getString("name").value_or("");
    if (event.getString("cat") != "run" ||
        getArgument(event, "program") != "train_step" ||
        name.ends_with(", failed"))
      return;
    double begin = event.getNumber("ts").value_or(0);
    double end = begin + event.getNumber("dur").value_or(0);
    auto [known, isNew] = steps.try_emplace(name, trace.steps.size());
    if (isNew) {
      trace.steps.emplace_back().name = name.str();
      begins.push_back(begin);
      ends.push_back(end);
    }
    size_t step = known->second;
    begins[step] = std::min(begins[step], begin);
    ends[step] = std::max(ends[step], end);
    trace.steps[step].microseconds = getDuration(begins[step], ends[step]);
    runs[getTrack(event).first].push_back({begin, end, step});
  }

  void readSpan(const json::Object &event) {
    auto worker = workers.find(getTrack(event));
    if (event.getString("ph") != "X" || worker == workers.end())
      return;
    double begin = event.getNumber("ts").value_or(0);
    // Another GPU may still be in the step before.
    auto named = steps.find(getArgument(event, "run"));
    std::optional<size_t> step = named == steps.end()
                                     ? findStep(worker->first.first, begin)
                                     : named->second;
    if (!step)
      return;
    RunSpan span;
    StringRef category = event.getString("cat").value_or("");
    span.kind = category == "communication" ? RunSpan::Kind::Communication
                : category == "wait"        ? RunSpan::Kind::Wait
                                            : RunSpan::Kind::Compute;
    if (span.kind == RunSpan::Kind::Wait && trace.isBeside[worker->second])
      return;
    span.name = span.kind == RunSpan::Kind::Wait
                    ? getArgument(event, "before")
                    : event.getString("name").value_or("");
    span.source = getArgument(event, "source");
    span.part = getArgument(event, "part");
    span.task = getArgument(event, "task");
    span.worker = worker->second;
    span.startMicroseconds = std::max(0.0, getDuration(begins[*step], begin));
    span.microseconds = event.getNumber("dur").value_or(0);
    trace.steps[*step].spans.push_back(std::move(span));
  }

  /// The step during which `process` is at `time`.
  std::optional<size_t> findStep(int64_t process, double time) const {
    auto found = runs.find(process);
    if (found == runs.end())
      return std::nullopt;
    // Runs of a process follow one another.
    auto next =
        llvm::upper_bound(found->second, time, [](double time, const Run &run) {
          return time < run.begin;
        });
    if (next == found->second.begin() || time > std::prev(next)->end)
      return std::nullopt;
    return std::prev(next)->step;
  }

  void leaveOutSlow() {
    constexpr double slow = 2;
    if (trace.steps.empty())
      return;
    double most = slow * trace.getMedian().microseconds;
    size_t before = trace.steps.size();
    llvm::erase_if(trace.steps, [&](const RunStep &step) {
      return step.microseconds > most;
    });
    trace.numSlow = static_cast<int64_t>(before - trace.steps.size());
  }

  struct Run {
    double begin, end;
    size_t step;
  };

  const json::Array &events;
  RunTrace &trace;
  std::map<int64_t, StringRef> processes;
  std::map<Track, StringRef> tracks;
  std::map<Track, size_t> workers;
  /// By name the index of a step, and by that its begin and end.
  std::map<StringRef, size_t> steps;
  std::vector<double> begins, ends;
  /// By process.
  std::map<int64_t, std::vector<Run>> runs;
};

} // namespace

const RunStep &RunTrace::getMedian() const {
  std::vector<const RunStep *> sorted;
  for (const RunStep &step : steps)
    sorted.push_back(&step);
  std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2,
                   sorted.end(), [](const RunStep *lhs, const RunStep *rhs) {
                     return lhs->microseconds < rhs->microseconds;
                   });
  return *sorted[sorted.size() / 2];
}

double RunTrace::getStepMicroseconds() const {
  double sum = 0;
  for (const RunStep &step : steps)
    sum += step.microseconds;
  return sum / static_cast<double>(steps.size());
}

size_t RunTrace::getNumWorkers(bool isBeside) const {
  return llvm::count(this->isBeside, isBeside);
}

/// The content of a gzip file (RFC 1952).
static Expected<std::string> uncompress(StringRef bytes) {
  constexpr size_t most = size_t(1) << 30;
  z_stream stream = {};
  // 16 more than the window's bits: with the header of gzip.
  if (inflateInit2(&stream, 15 + 16) != Z_OK)
    return createStringError("out of memory");
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  int code = Z_OK;
  while (code == Z_OK && text.size() < most) {
    size_t done = text.size();
    text.resize(std::max<size_t>(1 << 16, 2 * done));
    stream.next_out = reinterpret_cast<Bytef *>(text.data() + done);
    stream.avail_out = static_cast<uInt>(text.size() - done);
    code = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (code == Z_OK)
    return createStringError("it has more than 1 GiB, uncompressed: trace "
                             "fewer steps");
  if (code != Z_STREAM_END)
    return createStringError("it is damaged, or cut off: it cannot be "
                             "uncompressed");
  return text;
}

Expected<RunTrace> shardc::readRunTrace(const std::string &path) {
  auto buffer = readFile(path);
  if (!buffer)
    return buffer.takeError();
  StringRef text = (*buffer)->getBuffer();
  std::string uncompressed;
  if (text.starts_with("\x1f\x8b")) {
    Expected<std::string> result = uncompress(text);
    if (!result)
      return createStringError(path + ": " + toString(result.takeError()));
    uncompressed = std::move(*result);
    text = uncompressed;
  }
  Expected<json::Value> value = parseJson(text, path);
  if (!value)
    return value.takeError();
  const json::Object *root = value->getAsObject();
  const json::Array *events = root ? root->getArray("traceEvents") : nullptr;
  const json::Object *other = root ? root->getObject("otherData") : nullptr;
  const json::Object *plan = other ? other->getObject("plan") : nullptr;
  if (!events || !plan)
    return createStringError(path + ": expected a trace with 'traceEvents' and "
                                    "the 'plan' that was run, as shardc-run "
                                    "--trace writes it");
  RunTrace trace;
  trace.plan = *plan;
  TraceReader(*events, trace).read();
  if (trace.steps.empty())
    return createStringError(path + ": no train step that has ended is in the "
                                    "trace");
  return trace;
}

std::string shardc::checkPlanOf(const RunTrace &trace,
                                const json::Object &report) {
  auto getText = [](const json::Value *value) {
    return value ? formatv("{0}", *value).str() : std::string("unknown");
  };
  for (const char *name :
       {"model", "mesh", "batch_size", "peak_bytes_per_device",
        "wire_bytes_per_device", "matmul_flops_per_device"}) {
    std::string found = getText(trace.plan.get(name));
    std::string expected = getText(report.get(name));
    if (found != expected)
      return std::string("is a trace of another plan: '") + name + "' is " +
             found + " there and " + expected + " here";
  }
  return "";
}
