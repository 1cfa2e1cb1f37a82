//===- Profile.cpp - Where the time of a step goes ------------------------===//

#include "trace/Profile.h"

#include <algorithm>
#include <tuple>

using namespace shardc::rt;

static constexpr double nanosecond = 1e-9;

namespace {
struct Interval {
  int64_t begin, end;
};
} // namespace

/// The time in which one of `some`, which may overlap, and one of `others`,
/// which are in order, pass together.
static int64_t overlap(std::vector<Interval> some,
                       const std::vector<Interval> &others) {
  std::sort(some.begin(), some.end(),
            [](Interval a, Interval b) { return a.begin < b.begin; });
  int64_t sum = 0, until = 0;
  auto other = others.begin();
  for (Interval one : some) {
    one.begin = std::max(one.begin, until);
    until = std::max(until, one.end);
    while (other != others.end() && other->end <= one.begin)
      ++other;
    for (auto each = other; each != others.end() && each->begin < one.end;
         ++each)
      sum += std::max<int64_t>(0, std::min(one.end, each->end) -
                                      std::max(one.begin, each->begin));
  }
  return sum;
}

namespace {
/// Adds up spans.
class Adder {
public:
  Adder(const Trace::State &trace, Profile &profile)
      : trace(trace), profile(profile) {
    for (size_t i = 0; i < trace.lanes.size(); ++i) {
      const TracedWorker &worker = trace.lanes[i];
      profile.isOfStreams = worker.isStream();
      if (worker.isBeside)
        continue;
      numbers[i] = profile.numWorkers++;
      if (worker.isStream())
        computes[worker.devices[0]] = i;
    }
    workers = profile.numWorkers;
  }

  /// False if there is no train step to count.
  bool chooseRuns();
  void addWorker(size_t worker);
  /// A stream that runs beside workers, after these.
  void addBeside(size_t stream);
  void finish();

private:
  /// Program, and the command by what a person sees of it.
  using Key = std::tuple<uint32_t, std::string, std::string, std::string>;

  double secondsOf(size_t run) const;
  /// Adds what is known of a command without its times.
  Profile::Command &addCommand(size_t worker, const StepSpan &span);

  const Trace::State &trace;
  Profile &profile;
  double workers = 0; ///< Without those that run beside others.
  /// By worker its number without these, and by device the worker that
  /// computes.
  std::map<size_t, size_t> numbers;
  std::map<int64_t, size_t> computes;
  std::vector<bool> isCounted; ///< By run.
  std::map<Key, Profile::Command> commands;
  /// By worker.
  std::map<size_t, std::vector<Interval>> computing, waits;
};
} // namespace

double Adder::secondsOf(size_t run) const {
  return (trace.runs[run].end - trace.runs[run].begin) * nanosecond;
}

/// Those of train steps that ended, all of whose spans are there, and that
/// nothing interrupted for as long as they take themselves.
bool Adder::chooseRuns() {
  constexpr double slow = 2;
  size_t first = 0;
  for (const SpanRing &worker : trace.workers)
    if (worker.numLost() > 0)
      first = std::max<size_t>(first, worker.inOrder().front().run + 1);
  std::vector<size_t> whole;
  std::vector<double> durations;
  for (size_t run = first; run < trace.runs.size(); ++run)
    if (trace.runs[run].step >= 0 && !trace.runs[run].failed) {
      whole.push_back(run);
      durations.push_back(secondsOf(run));
    }
  if (whole.empty())
    return false;
  std::nth_element(durations.begin(), durations.begin() + durations.size() / 2,
                   durations.end());
  profile.medianSeconds = durations[durations.size() / 2];
  profile.firstStep = trace.runs[whole.front()].step;
  profile.lastStep = trace.runs[whole.back()].step;
  isCounted.resize(trace.runs.size());
  for (size_t run : whole) {
    isCounted[run] = secondsOf(run) <= slow * profile.medianSeconds;
    ++(isCounted[run] ? profile.numSteps : profile.numSlow);
  }
  return true;
}

Profile::Command &Adder::addCommand(size_t worker, const StepSpan &span) {
  const TracedStep &step = trace.programs[span.program].steps[span.step];
  Profile::Command &command =
      commands[{span.program, step.name, step.source, step.shapes}];
  command.name = step.name;
  command.source = step.source;
  command.part = step.part;
  command.communicates = step.kind == TracedStep::Kind::Communication;
  // What all workers do together counts once. Threads have a span of each step,
  // streams one of each of their devices.
  if (profile.isOfStreams ? span.firstTask == 0 : worker == 0) {
    command.flops += step.flops;
    command.bytes += step.bytes;
    command.wireBytes += step.wireBytes;
    command.bytesAtOnce = std::max(command.bytesAtOnce, double(step.bytes));
  }
  return command;
}

void Adder::addWorker(size_t worker) {
  double waiting = 0;
  std::vector<Interval> inFlight;
  std::map<std::tuple<int32_t, int32_t, int64_t>, int64_t> begins;
  for (const StepSpan &span : trace.workers[worker].inOrder()) {
    if (!isCounted[span.run])
      continue;
    const TracedStep &step = trace.programs[span.program].steps[span.step];
    const double busy = (span.end - span.begin) * nanosecond;
    waiting += (span.begin - span.arrived) * nanosecond;
    profile
        .seconds[step.kind == TracedStep::Kind::Communication ? "communication"
                                                              : step.part] +=
        busy / workers;
    Profile::Command &command = addCommand(worker, span);
    command.seconds += busy / workers;
    if (!command.communicates)
      computing[worker].push_back({span.begin, span.end});
    waits[worker].push_back({span.arrived, span.begin});
    if (worker > 0)
      continue;
    begins[{span.run, span.loop, span.step}] = span.begin;
    if (!step.isEarly)
      continue;
    int64_t start = begins[{span.run, span.loop, step.startedAt}];
    int64_t wait = begins[{span.run, span.loop, step.waitedAt}];
    command.secondsInFlight += (wait - start) * nanosecond;
    inFlight.push_back({start, wait});
  }
  if (worker == 0)
    profile.hidden += overlap(std::move(inFlight), computing[0]) * nanosecond;
  profile.waitingOfWorker.push_back(waiting);
  profile.waiting += waiting / workers;
}

void Adder::addBeside(size_t stream) {
  // By the worker that computes for a device that takes part.
  std::map<size_t, std::vector<Interval>> communicating;
  for (const StepSpan &span : trace.workers[stream].inOrder()) {
    if (!isCounted[span.run])
      continue;
    const TracedStep &step = trace.programs[span.program].steps[span.step];
    const std::vector<int64_t> &devices = step.devices[span.firstTask];
    Profile::Command &command = addCommand(stream, span);
    command.seconds +=
        (span.end - span.begin) * nanosecond * devices.size() / workers;
    for (int64_t device : devices)
      if (command.communicates)
        communicating[computes.at(device)].push_back({span.begin, span.end});
  }
  for (auto &[other, spans] : communicating) {
    double all = 0;
    for (Interval one : spans)
      all += (one.end - one.begin) * nanosecond;
    const double hidden = overlap(spans, computing[other]) * nanosecond;
    const double waited = overlap(spans, waits[other]) * nanosecond;
    profile.hidden += hidden / workers;
    profile.seconds["communication"] += (all - hidden) / workers;
    profile.waitingOfWorker[numbers[other]] -= waited;
    profile.waiting -= waited / workers;
  }
}

void Adder::finish() {
  const double steps = profile.numSteps;
  double all = 0;
  for (size_t run = 0; run < isCounted.size(); ++run)
    if (isCounted[run])
      all += secondsOf(run);
  profile.stepSeconds = all / steps;
  double covered = profile.waiting;
  for (auto &[part, seconds] : profile.seconds) {
    covered += seconds;
    seconds /= steps;
  }
  profile.rest = std::max(0.0, all - covered) / steps;
  profile.waiting /= steps;
  profile.hidden /= steps;
  for (double &waiting : profile.waitingOfWorker)
    waiting /= all;
  for (auto &[key, command] : commands) {
    command.seconds /= steps;
    command.flops /= steps;
    command.bytes /= steps;
    command.wireBytes /= profile.numSteps;
    command.secondsInFlight /= steps;
    profile.commands.push_back(command);
  }
  std::stable_sort(
      profile.commands.begin(), profile.commands.end(),
      [](const auto &a, const auto &b) { return a.seconds > b.seconds; });
}

Profile shardc::rt::profileOf(const Trace::State &trace) {
  Profile profile;
  Adder adder(trace, profile);
  if (!adder.chooseRuns())
    return profile;
  for (size_t worker = 0; worker < trace.workers.size(); ++worker)
    if (!trace.lanes[worker].isBeside)
      adder.addWorker(worker);
  for (size_t worker = 0; worker < trace.workers.size(); ++worker)
    if (trace.lanes[worker].isBeside)
      adder.addBeside(worker);
  adder.finish();
  return profile;
}
