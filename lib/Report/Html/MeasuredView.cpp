//===- MeasuredView.cpp - The trace of a run beside the estimate ----------===//

#include "TimeLine.h"
#include "Views.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <map>

using namespace llvm;
using namespace shardc;

/// The workers that are drawn; of more the first ones.
static constexpr size_t maxWorkers = 16;
static constexpr size_t maxLongest = 12;

static StringRef getClass(const RunSpan &span) {
  if (span.kind == RunSpan::Kind::Communication)
    return "communication";
  return span.kind == RunSpan::Kind::Wait ? StringRef("wait")
                                          : StringRef(span.part);
}

static std::string getSpanText(const RunSpan &span) {
  std::string text = span.kind == RunSpan::Kind::Wait
                         ? "waits for others before " + span.name
                         : span.name;
  if (!span.source.empty())
    text += " at " + getShortSource(span.source);
  for (const std::string &more : {span.part, span.task})
    if (!more.empty())
      text += ", " + more;
  return text + ": " + getTimeText(span.microseconds) + " from " +
         getTimeText(span.startMicroseconds);
}

/// "worker 0"; of streams "device 0", and "between 0 to 3" where they
/// communicate.
static std::string getLaneText(const RunTrace &trace, size_t worker) {
  StringRef name = trace.workers[worker];
  if (!trace.isOfStreams())
    return shorten(name, 16);
  name = name.split("stream of ").second.split(':').first;
  if (trace.isBeside[worker])
    return shorten("between " + name.split(' ').second.str(), 16);
  return shorten(name, 16);
}

/// A row for each worker, over the step of median duration.
static void drawWorkers(Markup &markup, const RunTrace &trace, double length) {
  const RunStep &step = trace.getMedian();
  size_t numDrawn = std::min(trace.workers.size(), maxWorkers);
  double bottom = 8 + 28 * static_cast<double>(numDrawn);
  openSvg(markup, timePictureWidth, bottom + 30,
          formatv("What {0} workers did over {1}, which took {2}", numDrawn,
                  step.name, getTimeText(step.microseconds))
              .str(),
          "measured");
  for (size_t worker = 0; worker < numDrawn; ++worker) {
    double y = 8 + 28 * static_cast<double>(worker);
    TimeLane lane(length);
    for (const RunSpan &span : step.spans)
      if (span.worker == worker)
        lane.add({span.startMicroseconds,
                  span.startMicroseconds + span.microseconds,
                  getClass(span).str(), getSpanText(span)});
    addText(markup, timeLeft - 8, y + 16, "end", getLaneText(trace, worker));
    lane.draw(markup, y, 22);
  }
  addTimeAxis(markup, bottom, length);
  markup.close();
}

/// A time of a step by the estimate and as measured. Microseconds.
struct ComparedTime {
  std::string name;
  std::optional<double> estimated, measured;
};

/// The time of the spans by the name that `getKey` gives them, of a step on
/// average, and of all workers together, divided by their number: names add up
/// to a step, but for what streams of GPUs communicate beside others. Spans
/// without a name do not count.
static std::map<std::string, double>
getMeasured(const RunTrace &trace,
            function_ref<std::string(const RunSpan &)> getKey) {
  std::map<std::string, double> sums;
  for (const RunStep &step : trace.steps)
    for (const RunSpan &span : step.spans)
      if (std::string key = getKey(span); !key.empty())
        sums[key] += span.microseconds /
                     static_cast<double>(
                         trace.getNumWorkers(trace.isBeside[span.worker]));
  for (auto &[name, sum] : sums)
    sum /= static_cast<double>(trace.steps.size());
  return sums;
}

/// What is estimated first, in its order, then what was only measured.
static std::vector<ComparedTime>
joinTimes(ArrayRef<std::pair<std::string, double>> estimated,
          const std::map<std::string, double> &measured) {
  std::vector<ComparedTime> times;
  std::map<std::string, size_t> known;
  auto get = [&](const std::string &name) -> ComparedTime & {
    auto [it, isNew] = known.try_emplace(name, times.size());
    if (isNew)
      times.push_back({name, std::nullopt, std::nullopt});
    return times[it->second];
  };
  for (const auto &[name, time] : estimated) {
    ComparedTime &each = get(name);
    each.estimated = each.estimated.value_or(0) + time;
  }
  for (const auto &[name, time] : measured)
    get(name).measured = time;
  return times;
}

/// By part of the step. The ops of a pipeline's report are those of one rank:
/// there is no estimate then.
static std::vector<ComparedTime> compareParts(const json::Object &report,
                                              const RunTrace &trace) {
  std::map<std::string, double> estimated;
  if (const json::Object *time = report.getObject("time");
      time && !report.getObject("pipeline"))
    for (const json::Object *op : getObjects(*time, "ops"))
      estimated[op->getBoolean("communicates").value_or(false)
                    ? "communication"
                    : getString(*op, "part")] += getNumber(*op, "microseconds");
  std::map<std::string, double> measured = getMeasured(
      trace, [](const RunSpan &span) { return getClass(span).str(); });
  std::vector<ComparedTime> parts;
  double covered = 0;
  for (const char *part :
       {"forward", "backward", "update", "communication", "wait"}) {
    const bool isWait = StringRef(part) == "wait";
    const bool isBeside =
        StringRef(part) == "communication" && trace.isOfStreams();
    if (!isBeside)
      covered += measured[part];
    parts.push_back({isWait     ? "waiting for others"
                     : isBeside ? "communication, beside others"
                                : part,
                     std::nullopt, measured[part]});
    if (auto it = estimated.find(part); it != estimated.end())
      parts.back().estimated = it->second;
  }
  parts.push_back({"inputs, results and the rest", std::nullopt,
                   std::max(0.0, trace.getStepMicroseconds() - covered)});
  return parts;
}

/// "all_reduce over data, backward, at model.mlir:12:3", as the plan and the
/// trace say it. Those of one place, kind and part are one.
static std::string getCollectiveName(StringRef name, StringRef part,
                                     StringRef source) {
  return (name + ", " + part + ", at " + sys::path::filename(source)).str();
}

static std::vector<ComparedTime> compareCollectives(const json::Object &report,
                                                    const RunTrace &trace) {
  std::vector<std::pair<std::string, double>> estimated;
  for (const json::Object *line : getObjects(report, "collectives")) {
    std::vector<std::string> axes;
    for (const json::Value &axis : getArray(*line, "axes"))
      axes.push_back(axis.getAsString().value_or("").str());
    // Messages of a pipeline are named by their receivers in the trace.
    if (getString(*line, "kind") != "send")
      estimated.emplace_back(getCollectiveName(getString(*line, "kind") +
                                                   " over " + join(axes, ","),
                                               getString(*line, "part"),
                                               getString(*line, "source")),
                             getNumber(*line, "microseconds"));
  }
  return joinTimes(
      estimated, getMeasured(trace, [](const RunSpan &span) -> std::string {
        return span.kind == RunSpan::Kind::Communication
                   ? getCollectiveName(span.name, span.part, span.source)
                   : "";
      }));
}

/// "stage 1, F": the tasks of a kind.
static std::string getTaskName(StringRef stage, StringRef kind) {
  return ("stage " + stage + ", " + kind).str();
}

/// The tasks of a pipeline by stage and kind, of all microbatches.
static std::vector<ComparedTime> compareStages(const json::Object &pipeline,
                                               const RunTrace &trace) {
  std::vector<std::pair<std::string, double>> estimated;
  for (const json::Object *rank : getObjects(pipeline, "ranks")) {
    std::string tasks = getString(*rank, "tasks");
    SmallVector<StringRef> names;
    StringRef(tasks).split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (auto [name, time] : zip(names, getArray(*rank, "task_microseconds"))) {
      StringRef stage = name.take_while(isDigit);
      estimated.emplace_back(getTaskName(stage, name.substr(stage.size(), 1)),
                             time.getAsNumber().value_or(0));
    }
  }
  llvm::sort(estimated);
  return joinTimes(
      estimated, getMeasured(trace, [](const RunSpan &span) -> std::string {
        // "F2 of stage 1".
        auto [task, stage] = StringRef(span.task).split(" of stage ");
        if (stage.empty() || span.kind != RunSpan::Kind::Compute)
          return "";
        return getTaskName(stage, task.take_front());
      }));
}

/// Two bars for each time.
static void drawCompared(Markup &markup, ArrayRef<ComparedTime> times) {
  constexpr double left = 200, scale = 620, row = 34;
  double most = 1e-9;
  for (const ComparedTime &time : times)
    most =
        std::max({most, time.estimated.value_or(0), time.measured.value_or(0)});
  openSvg(markup, timePictureWidth, row * static_cast<double>(times.size()),
          "Estimated and measured times of the parts of a step; the table "
          "below has the numbers",
          "compared");
  for (auto [number, time] : enumerate(times)) {
    double y = row * static_cast<double>(number) + 3;
    addText(markup, left - 8, y + 17, "end", time.name);
    for (auto [classes, value] : {std::pair("estimated", time.estimated),
                                  std::pair("measured", time.measured)}) {
      if (value) {
        double width = std::max(1.0, scale * *value / most);
        addRectangle(markup, left, y, width, 12, classes,
                     time.name + ", " + classes + ": " + getTimeText(*value));
        addText(markup, left + width + 6, y + 10, "start", getTimeText(*value),
                "label");
      }
      y += 14;
    }
  }
  markup.close();
}

static void addComparedTable(Markup &markup, StringRef caption,
                             StringRef heading, StringRef rowClass,
                             ArrayRef<ComparedTime> times) {
  openTable(markup, caption,
            {heading, "estimated", "measured", "measured / estimated"},
            {1, 2, 3});
  for (const ComparedTime &time : times) {
    markup.open("tr", {{"class", rowClass.str()}})
        .element("th", {{"scope", "row"}}, time.name);
    for (const std::optional<double> &value : {time.estimated, time.measured}) {
      markup.open("td", {{"class", "number"}});
      if (value)
        addMicroseconds(markup, *value);
      markup.close();
    }
    bool hasBoth = time.estimated.value_or(0) > 0 && time.measured;
    markup.element(
        "td", {{"class", "number"}},
        hasBoth ? formatv("{0:f2}", *time.measured / *time.estimated).str()
                : "");
    markup.close();
  }
  closeTable(markup);
}

static void addLongest(Markup &markup, const RunTrace &trace) {
  std::map<std::string, double> measured =
      getMeasured(trace, [](const RunSpan &span) -> std::string {
        return span.kind == RunSpan::Kind::Wait
                   ? ""
                   : getCollectiveName(span.name, span.part, span.source);
      });
  std::vector<std::pair<std::string, double>> longest(measured.begin(),
                                                      measured.end());
  stable_sort(longest, [](const auto &lhs, const auto &rhs) {
    return lhs.second > rhs.second;
  });
  openTable(
      markup,
      formatv("The longest of {0} commands, as measured", longest.size()).str(),
      {"command", "time", "share of the step"}, {1, 2});
  for (const auto &[name, time] : ArrayRef(longest).take_front(maxLongest)) {
    markup.open("tr", {{"class", "measured-command"}})
        .element("th", {{"scope", "row"}}, name);
    markup.open("td", {{"class", "number"}});
    addMicroseconds(markup, time);
    markup.close().element(
        "td", {{"class", "number"}},
        formatv("{0:f1} %", 100 * time / trace.getStepMicroseconds()).str());
    markup.close();
  }
  closeTable(markup);
}

void shardc::addMeasured(const HtmlReportInput &input, double length,
                         Markup &markup) {
  const RunTrace &trace = *input.trace;
  const json::Object *pipeline = input.report.getObject("pipeline");
  markup.element("h3", {}, "Measured");
  markup.open("p", {{"class", "measured-step"}}).text("A step took ");
  addMicroseconds(markup, trace.getStepMicroseconds());
  markup.text(formatv(" on average in a run: {0} of its steps are counted",
                      trace.steps.size())
                  .str());
  if (trace.numSlow > 0)
    markup.text(formatv(", and {0} left out that took more than twice the "
                        "median",
                        trace.numSlow)
                    .str());
  markup.text(trace.lost.empty() ? "." : "; " + trace.lost + ".");
  markup.text(
      formatv(" The picture is of {0}. Times are of all workers, divided "
              "by their number.",
              trace.getMedian().name)
          .str());
  if (trace.isOfStreams())
    markup.text(" Streams that compute wait for those that communicate: what "
                "nothing hides is in their waits, too.");
  else if (pipeline)
    markup.text(" All workers of a process share the tasks of its pipeline "
                "ranks, so that a run has no bubble of its own; by the "
                "estimate each rank has its share of the machine.");
  if (trace.workers.size() > maxWorkers)
    markup.text(formatv(" {0} workers of {1} are drawn.", maxWorkers,
                        trace.workers.size())
                    .str());
  markup.close();
  addLegend(markup, {{"forward", "forward"},
                     {"backward", "backward"},
                     {"update", "update"},
                     {"communication", "communication"},
                     {"wait", "waiting for others"}});
  markup.open("figure");
  drawWorkers(markup, trace, length);
  markup.close();
  std::vector<ComparedTime> parts = compareParts(input.report, trace);
  addLegend(markup, {{"estimated", "estimated"}, {"measured", "measured"}});
  markup.open("figure");
  drawCompared(markup, parts);
  markup.close();
  addComparedTable(markup, "A step by part", "part", "compared-part", parts);
  if (pipeline)
    addComparedTable(
        markup,
        "Tasks of the pipeline, of all microbatches: F forward, B "
        "backward, I the gradient of the input, W those of weights",
        "tasks", "compared-stage", compareStages(*pipeline, trace));
  std::vector<ComparedTime> collectives =
      compareCollectives(input.report, trace);
  if (!collectives.empty())
    addComparedTable(
        markup,
        "Collectives; one without a measured time was done within a "
        "GEMM",
        "collective", "compared-collective", collectives);
  addLongest(markup, trace);
}
