//===- TimeView.cpp - The step over time, and a roofline ------------------===//

#include "TimeLine.h"
#include "Views.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;
using namespace shardc;

static constexpr size_t maxLongestOps = 12;

static std::string getOpText(const json::Object &op) {
  std::string source = getShortSource(getString(op, "source"));
  return getString(op, "name") + (source.empty() ? "" : " at " + source) +
         ", " + getString(op, "part") + ": " +
         getTimeText(getNumber(op, "microseconds"));
}

static TimeLane getLane(const json::Object &time, bool communicates,
                        double length) {
  TimeLane lane(length);
  for (const json::Object *op : getObjects(time, "ops")) {
    if (op->getBoolean("communicates").value_or(false) != communicates)
      continue;
    double start = getNumber(*op, "start_microseconds");
    lane.add({start, start + getNumber(*op, "microseconds"),
              getString(*op, "part"), getOpText(*op)});
  }
  return lane;
}

/// `length` is the time of the whole width.
static void drawStep(Markup &markup, const json::Object &time, double length) {
  openSvg(markup, timePictureWidth, 118,
          "The ops of a step over its estimated time of " +
              getTimeText(getNumber(time, "overlapped_microseconds")) +
              ", above compute, below communication",
          "timeline");
  static constexpr StringLiteral names[] = {"compute", "communication"};
  for (auto [number, name] : enumerate(names)) {
    double y = 8 + 38 * static_cast<double>(number);
    addText(markup, timeLeft - 8, y + 20, "end", name);
    getLane(time, number == 1, length).draw(markup, y, 30);
  }
  addTimeAxis(markup, 88, length);
  markup.close();
}

static void addLongest(Markup &markup, const json::Object &time) {
  std::vector<const json::Object *> ops = getObjects(time, "ops");
  stable_sort(ops, [](const json::Object *lhs, const json::Object *rhs) {
    return getNumber(*lhs, "microseconds") > getNumber(*rhs, "microseconds");
  });
  openTable(markup,
            formatv("The longest of {0} ops by the estimate", ops.size()).str(),
            {"op", "time", "starts at", "part", "place in the model"}, {1, 2});
  for (const json::Object *op : ArrayRef(ops).take_front(maxLongestOps)) {
    markup.open("tr", {{"class", "op"}}).open("th", {{"scope", "row"}});
    markup.element("code", {}, getString(*op, "name")).close();
    markup.open("td", {{"class", "number"}});
    addMicroseconds(markup, getNumber(*op, "microseconds"));
    markup.close().open("td", {{"class", "number"}});
    addMicroseconds(markup, getNumber(*op, "start_microseconds"));
    markup.close().element("td", {}, getString(*op, "part"));
    markup.open("td")
        .element("code", {}, getString(*op, "source"))
        .close()
        .close();
  }
  closeTable(markup);
}

/// The names of tasks in "0F0,0B0".
static SmallVector<StringRef> getTaskNames(StringRef tasks) {
  SmallVector<StringRef> names;
  tasks.split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return names;
}

/// The class of a task by its kind, the letter behind its stage.
static StringRef getTaskPart(StringRef name) {
  size_t letter = name.find_first_of("FBIW");
  if (letter == StringRef::npos || name[letter] == 'F')
    return "forward";
  return name[letter] == 'W' ? "update" : "backward";
}

/// The tasks of a pipeline's ranks over time; what is empty is the bubble.
static void drawPipeline(Markup &markup, const json::Object &pipeline,
                         double length) {
  double makespan = getNumber(pipeline, "makespan_microseconds");
  std::vector<const json::Object *> ranks = getObjects(pipeline, "ranks");
  if (makespan <= 0)
    return;
  double scale = timeWidth / length;
  double bottom = 8 + 34 * static_cast<double>(ranks.size());
  openSvg(markup, timePictureWidth, bottom + 30,
          formatv("The tasks of {0} pipeline ranks over {1}; ranks idle for "
                  "{2:f1} % of it",
                  ranks.size(), getTimeText(makespan),
                  100 * getNumber(pipeline, "bubble"))
              .str(),
          "pipeline");
  for (auto [number, rank] : enumerate(ranks)) {
    double y = 8 + 34 * static_cast<double>(number);
    addText(markup, timeLeft - 8, y + 19, "end",
            "rank " + std::to_string(number));
    std::string tasks = getString(*rank, "tasks");
    for (auto [name, start, time] :
         zip(getTaskNames(tasks), getArray(*rank, "start_microseconds"),
             getArray(*rank, "task_microseconds"))) {
      double begin = start.getAsNumber().value_or(0);
      double duration = time.getAsNumber().value_or(0);
      addRectangle(markup, timeLeft + begin * scale, y,
                   std::max(0.3, duration * scale), 28,
                   ("task " + getTaskPart(name)).str(),
                   ("stage " + name.take_while(isDigit) + ", " + name + ": " +
                    getTimeText(duration) + " from " + getTimeText(begin))
                       .str());
      if (duration * scale > 8 * static_cast<double>(name.size()))
        addText(markup, timeLeft + (begin + duration / 2) * scale, y + 18,
                "middle", name, "task-name");
    }
  }
  addTimeAxis(markup, bottom, length);
  markup.close();
}

static void addPipeline(Markup &markup, const json::Object &pipeline,
                        double length) {
  markup.element("h3", {}, "The pipeline");
  markup.element(
      "p", {},
      formatv("Schedule {0}, {1} microbatches, bubble {2:f1} %: stage, kind "
              "(F forward, B backward, I the gradient of the input, W those of "
              "weights) and microbatch of each task.",
              getString(pipeline, "schedule"),
              getInteger(pipeline, "microbatches"),
              100 * getNumber(pipeline, "bubble"))
          .str());
  markup.open("figure");
  drawPipeline(markup, pipeline, length);
  markup.close();
  openTable(markup, "Ranks of the pipeline",
            {"rank", "busy", "idle", "live microbatches", "memory per device"},
            {1, 2, 3, 4});
  for (auto [number, rank] : enumerate(getObjects(pipeline, "ranks"))) {
    markup.open("tr", {{"class", "rank"}})
        .element("th", {{"scope", "row"}}, std::to_string(number));
    markup.open("td", {{"class", "number"}});
    addMicroseconds(markup, getNumber(*rank, "busy_microseconds"));
    markup.close().element(
        "td", {{"class", "number"}},
        formatv("{0:f1} %", 100 * getNumber(*rank, "idle")).str());
    markup.element("td", {{"class", "number"}},
                   formatv("{0}", getNumber(*rank, "live_microbatches")).str());
    markup.open("td", {{"class", "number"}});
    addBytes(markup, getInteger(*rank, "peak_bytes_per_device"));
    markup.close().close();
  }
  closeTable(markup);
}

/// A point of the roofline: a GEMM.
struct RooflinePoint {
  /// FLOPs for each byte of memory traffic, and FLOP/s by the estimate.
  double intensity, rate;
  std::string title, part;
};

/// "2.5 GFLOP/s".
static std::string getRateText(double rate) {
  static constexpr StringLiteral prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  for (; rate >= 1000 && prefix + 1 < std::size(prefixes); ++prefix)
    rate /= 1000;
  return formatv("{0:f1} {1}FLOP/s", rate, prefixes[prefix]).str();
}

static std::vector<RooflinePoint> getPoints(const json::Object &time) {
  std::vector<RooflinePoint> points;
  for (const json::Object *op : getObjects(time, "ops")) {
    double flops = getNumber(*op, "gemm_flops");
    double bytes = getNumber(*op, "memory_bytes");
    double seconds = getNumber(*op, "microseconds") / 1e6;
    if (flops <= 0 || bytes <= 0 || seconds <= 0)
      continue;
    double rate = flops / seconds;
    points.push_back({flops / bytes, rate,
                      getOpText(*op) + formatv(", {0:f1} FLOPs per byte, {1}",
                                               flops / bytes, getRateText(rate))
                                           .str(),
                      getString(*op, "part")});
  }
  return points;
}

/// Rates over intensity, both in powers of ten.
static void drawRoofline(Markup &markup, const json::Object &time,
                         ArrayRef<RooflinePoint> points) {
  constexpr double left = 110, width = 720, top = 16, height = 240;
  double peak = getNumber(time, "gemm_flops_per_second");
  double bandwidth = getNumber(time, "memory_bytes_per_second");
  double lowX = std::log10(peak / bandwidth), highX = lowX;
  double highY = std::log10(peak), lowY = highY;
  for (const RooflinePoint &point : points) {
    lowX = std::min(lowX, std::log10(point.intensity));
    highX = std::max(highX, std::log10(point.intensity));
    lowY = std::min(lowY, std::log10(point.rate));
  }
  lowX = std::floor(lowX);
  highX = std::ceil(highX + 0.2);
  lowY = std::floor(lowY);
  highY = std::ceil(highY + 0.1);
  auto getX = [&](double intensity) {
    return left + width * (std::log10(intensity) - lowX) / (highX - lowX);
  };
  auto getY = [&](double rate) {
    return top + height * (highY - std::log10(rate)) / (highY - lowY);
  };
  openSvg(markup, left + width + 20, top + height + 44,
          formatv("Roofline: {0} GEMMs below a memory bandwidth of {1} bytes "
                  "per second and {2}",
                  points.size(), bandwidth, getRateText(peak))
              .str(),
          "roofline");
  for (double power = lowY; power <= highY; ++power) {
    double y = getY(std::pow(10, power));
    addLine(markup, left, y, left + width, y, "axis");
    addText(markup, left - 6, y + 4, "end", getRateText(std::pow(10, power)),
            "label");
  }
  for (double power = lowX; power <= highX; ++power)
    addText(markup, getX(std::pow(10, power)), top + height + 18, "middle",
            formatv("{0}", std::pow(10, power)).str(), "label");
  addText(markup, left + width / 2, top + height + 36, "middle",
          "FLOPs per byte of memory traffic", "label");
  // The slope starts at the left edge or at the bottom.
  double start = std::max(std::pow(10, lowX), std::pow(10, lowY) / bandwidth);
  double ridge = peak / bandwidth;
  addLine(markup, getX(start), getY(start * bandwidth), getX(ridge), getY(peak),
          "roof");
  addLine(markup, getX(ridge), getY(peak), left + width, getY(peak), "roof");
  addText(markup, left + width, getY(peak) - 6, "end",
          getRateText(peak) + " at most", "label");
  for (const RooflinePoint &point : points)
    markup
        .open("circle", {{"cx", getCoordinate(getX(point.intensity))},
                         {"cy", getCoordinate(getY(point.rate))},
                         {"r", "5"},
                         {"class", "point " + point.part}})
        .element("title", {}, point.title)
        .close();
  markup.close();
}

void shardc::addTime(const HtmlReportInput &input, Markup &markup) {
  openSection(markup, "time", "The step over time");
  const json::Object *time = input.report.getObject("time");
  const json::Object *pipeline = input.report.getObject("pipeline");
  double length = pipeline ? getNumber(*pipeline, "makespan_microseconds")
                  : time   ? getNumber(*time, "overlapped_microseconds")
                           : 0;
  // What is measured is drawn to the same scale.
  if (input.trace)
    length = std::max(length, input.trace->getMedian().microseconds);
  if (pipeline) {
    addLegend(markup, {{"forward", "forward"},
                       {"backward", "backward"},
                       {"update", "update"}});
    addPipeline(markup, *pipeline, length);
  }
  if (!time || getArray(*time, "ops").empty() ||
      getNumber(*time, "overlapped_microseconds") <= 0) {
    markup.element("p", {}, "The plan has no times of its ops.").close();
    return;
  }
  if (!pipeline) {
    markup.open("p").text("By the estimate for " +
                          shorten(getString(*time, "machine"), 40) +
                          " a step takes ");
    addMicroseconds(markup, getNumber(*time, "overlapped_microseconds"));
    markup.text(". Collectives run beside compute where the machine can do "
                "both; ops of a loop over microbatches are drawn once, with "
                "the time of all.");
    markup.close();
    addLegend(markup, {{"forward", "forward"},
                       {"backward", "backward"},
                       {"update", "update"}});
    markup.open("figure");
    drawStep(markup, *time, length);
    markup.close();
  }
  if (input.trace)
    addMeasured(input, length, markup);
  addLongest(markup, *time);
  std::vector<RooflinePoint> points = getPoints(*time);
  if (!points.empty() && getNumber(*time, "gemm_flops_per_second") > 0 &&
      getNumber(*time, "memory_bytes_per_second") > 0) {
    markup.element("h3", {}, "Roofline of the GEMMs");
    markup.element("p", {{"class", "note"}},
                   "Each point is a GEMM by the estimate, with what is fused "
                   "into it: left of the bend memory limits it, right of it "
                   "arithmetic.");
    markup.open("figure");
    drawRoofline(markup, *time, points);
    markup.close();
  }
  markup.close();
}
