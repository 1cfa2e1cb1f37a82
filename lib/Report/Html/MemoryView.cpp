//===- MemoryView.cpp - Memory over the step ------------------------------===//

#include "Views.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <array>

using namespace llvm;
using namespace shardc;

/// The kinds of memory from the bottom of the picture up: what lasts first.
static constexpr StringLiteral memoryKinds[] = {"parameters", "optimizer",
                                                "inputs",     "activations",
                                                "gradients",  "workspace"};
static constexpr size_t numKinds = std::size(memoryKinds);
/// The most columns of the picture; one of several steps shows the one with
/// most bytes.
static constexpr int64_t maxColumns = 400;

namespace {

/// The bytes in use over the step, by kind.
class MemoryOverTime {
public:
  /// `width` is that of the bytes in the picture, in units.
  MemoryOverTime(const json::Object &memory, int64_t arenaBytes,
                 double width = wide)
      : width(width), memory(memory), arenaBytes(arenaBytes),
        numSteps(getInteger(memory, "ops")),
        peakStep(getInteger(memory, "peak")) {
    if (numSteps <= 0)
      return;
    std::vector<std::array<int64_t, numKinds>> changes(numSteps + 1);
    for (const json::Object *buffer : getObjects(memory, "buffers")) {
      int64_t first = std::max<int64_t>(0, getInteger(*buffer, "first"));
      int64_t last = std::min(numSteps - 1, getInteger(*buffer, "last"));
      size_t kind = getKind(getString(*buffer, "kind"));
      if (first > last)
        continue;
      changes[first][kind] += getInteger(*buffer, "bytes");
      changes[last + 1][kind] -= getInteger(*buffer, "bytes");
    }
    std::array<int64_t, numKinds> alive{};
    for (int64_t step = 0; step < numSteps; ++step) {
      for (size_t kind = 0; kind < numKinds; ++kind)
        alive[kind] += changes[step][kind];
      bytes.push_back(alive);
    }
  }

  bool isKnown() const { return !bytes.empty(); }

  /// `scale` is the most bytes of the axis, 0 for those of the arena. Without
  /// an `id` the picture is not one of those that follow the mouse.
  void draw(Markup &markup, StringRef id, int64_t scale = 0) const {
    double most =
        static_cast<double>(scale ? scale : std::max(arenaBytes, getPeak()));
    std::string label = formatv(
        "Memory in use over the {0} ops of a step, by kind. The peak of {1} is "
        "at op {2}.",
        numSteps, getBytesText(static_cast<double>(getPeak())), peakStep);
    openSvg(markup, left + width + 16, top + height + 40, label, id);
    auto getY = [&](double value) {
      return top + height - (most > 0 ? value / most * height : 0);
    };
    for (int mark = 0; mark <= 4; ++mark) {
      double value = most * mark / 4;
      addLine(markup, left, getY(value), left + width, getY(value), "axis");
      addText(markup, left - 6, getY(value) + 4, "end", getBytesText(value),
              "label");
    }
    std::vector<int64_t> columns = getColumns();
    std::vector<double> below(columns.size(), 0);
    for (size_t kind = 0; kind < numKinds; ++kind)
      drawKind(markup, kind, columns, below, getY);
    double x = getX(static_cast<double>(peakStep) + 0.5);
    addLine(markup, x, top, x, top + height, "mark");
    bool isLate = x > left + width / 2;
    addText(markup, x + (isLate ? -6 : 6), top - 6, isLate ? "end" : "start",
            "peak: " + getBytesText(static_cast<double>(getPeak())) +
                " at op " + std::to_string(peakStep));
    addText(markup, left, top + height + 18, "start", "op 0", "label");
    addText(markup, left + width, top + height + 18, "end",
            "op " + std::to_string(numSteps - 1), "label");
    addText(markup, left + width / 2, top + height + 34, "middle",
            "ops of the step, in the order of execution", "label");
    markup.close();
  }

  /// For the script: buffers as [name, kind, bytes, first, last, source], where
  /// texts are numbers of `texts`.
  json::Object getData() const {
    json::Array buffers, texts;
    StringMap<int64_t> numbers;
    auto getNumberOf = [&](const std::string &text) {
      auto [it, isNew] =
          numbers.try_emplace(text, static_cast<int64_t>(texts.size()));
      if (isNew)
        texts.push_back(shorten(text, 80));
      return it->second;
    };
    for (const json::Object *buffer : getObjects(memory, "buffers"))
      buffers.push_back(
          json::Array{getNumberOf(getString(*buffer, "name")),
                      static_cast<int64_t>(getKind(getString(*buffer, "kind"))),
                      getInteger(*buffer, "bytes"),
                      getInteger(*buffer, "first"), getInteger(*buffer, "last"),
                      getNumberOf(getString(*buffer, "source"))});
    json::Array kinds;
    for (StringRef kind : memoryKinds)
      kinds.push_back(kind);
    return json::Object{{"steps", numSteps},
                        {"left", left},
                        {"width", width},
                        {"top", top},
                        {"height", height},
                        {"kinds", std::move(kinds)},
                        {"texts", std::move(texts)},
                        {"buffers", std::move(buffers)}};
  }

private:
  static constexpr double left = 80, wide = 860, top = 24, height = 260;

  static size_t getKind(StringRef name) {
    const StringLiteral *it = find(memoryKinds, name);
    return it == std::end(memoryKinds) ? numKinds - 1 : it - memoryKinds;
  }

  double getX(double step) const {
    return left + width * step / static_cast<double>(numSteps);
  }

  int64_t getSum(int64_t step) const {
    int64_t sum = 0;
    for (int64_t each : bytes[step])
      sum += each;
    return sum;
  }

  int64_t getPeak() const { return peakStep < numSteps ? getSum(peakStep) : 0; }

  /// The steps that the columns show.
  std::vector<int64_t> getColumns() const {
    int64_t count = std::min(maxColumns, numSteps);
    std::vector<int64_t> columns;
    for (int64_t column = 0; column < count; ++column) {
      int64_t shown = column * numSteps / count;
      for (int64_t step = shown; step < (column + 1) * numSteps / count; ++step)
        if (getSum(step) > getSum(shown))
          shown = step;
      columns.push_back(shown);
    }
    return columns;
  }

  /// Draws the area of `kind` on top of `below`, and adds it to that.
  template <typename GetY>
  void drawKind(Markup &markup, size_t kind, ArrayRef<int64_t> columns,
                std::vector<double> &below, GetY getY) const {
    size_t count = columns.size();
    auto getEdge = [&](size_t column) {
      return getCoordinate(left + width * static_cast<double>(column) /
                                      static_cast<double>(count));
    };
    std::string path, back;
    bool isEmpty = true;
    for (size_t column = 0; column < count; ++column) {
      double value = static_cast<double>(bytes[columns[column]][kind]);
      isEmpty &= value == 0;
      std::string x = getEdge(column), end = getEdge(column + 1);
      path += (column ? "V" : "M" + x + " ") +
              getCoordinate(getY(below[column] + value)) + "H" + end;
      back = "V" + getCoordinate(getY(below[column])) + "H" + x + back;
      below[column] += value;
    }
    if (!isEmpty)
      markup
          .open("path",
                {{"d", path + back + "Z"}, {"class", memoryKinds[kind].str()}})
          .element("title", {}, memoryKinds[kind])
          .close();
  }

  const double width;
  const json::Object &memory;
  /// With the gaps between buffers.
  int64_t arenaBytes;
  int64_t numSteps, peakStep;
  std::vector<std::array<int64_t, numKinds>> bytes;
};

} // namespace

static void addMemoryTables(const json::Object &memory, Markup &markup) {
  openTable(markup,
            "At the peak, by kind; workspace has the gaps of the arena too",
            {"kind", "bytes"}, {1});
  for (StringRef kind : memoryKinds) {
    markup.open("tr").element("th", {{"scope", "row"}}, kind);
    markup.open("td", {{"class", "number"}});
    addBytes(markup, getInteger(memory, kind));
    markup.close().close();
  }
  closeTable(markup);
  openTable(markup, "The largest buffers at the peak",
            {"buffer", "bytes", "kind", "place in the model"}, {1});
  for (const json::Object *buffer : getObjects(memory, "largest")) {
    markup.open("tr").open("th", {{"scope", "row"}});
    markup.element("code", {}, getString(*buffer, "name")).close();
    markup.open("td", {{"class", "number"}});
    addBytes(markup, getInteger(*buffer, "bytes"));
    markup.close().element("td", {}, getString(*buffer, "kind"));
    markup.open("td")
        .element("code", {}, getString(*buffer, "source"))
        .close()
        .close();
  }
  closeTable(markup);
}

/// The memory of one device, whose arena has these bytes; `heading` says of
/// which.
static void addMemoryOf(const json::Object &memory, int64_t arenaBytes,
                        StringRef heading, Markup &markup, json::Array &data) {
  if (!heading.empty())
    markup.element("h3", {}, heading);
  if (const json::Object *buffers = memory.getObject("over_time")) {
    MemoryOverTime overTime(*buffers, arenaBytes);
    if (overTime.isKnown()) {
      markup.open("figure", {{"class", "memory"}});
      overTime.draw(markup, "memory-" + std::to_string(data.size()));
      markup.close();
      data.push_back(overTime.getData());
    }
  }
  addMemoryTables(memory, markup);
}

/// What the peak would be with another choice, where the compiler knows it.
static void addOtherPeaks(const HtmlReportInput &input, Markup &markup) {
  const json::Object &report = input.report;
  int64_t peak = getInteger(report, "peak_bytes_per_device");
  std::vector<std::pair<std::string, int64_t>> choices = {{"this plan", peak}};
  for (const OtherPlan &other : input.others)
    choices.emplace_back(other.name,
                         getInteger(other.report, "peak_bytes_per_device"));
  auto add = [&](const json::Object *choice, StringRef name) {
    int64_t bytes = choice ? getInteger(*choice, "other_peak_bytes") : 0;
    if (bytes && none_of(input.others, [&](const OtherPlan &other) {
          return other.name == name;
        }))
      choices.emplace_back(name, bytes);
  };
  if (const json::Object *regather = report.getObject("regather"))
    add(regather, regather->getBoolean("taken").value_or(false)
                      ? "without --regather"
                      : "with --regather");
  add(report.getObject("recompute"), "without --recompute");
  if (choices.size() == 1)
    return;
  openTable(markup, "The peak of other choices", {"plan", "memory per device"},
            {1});
  for (const auto &[name, bytes] : choices) {
    markup.open("tr").element("th", {{"scope", "row"}}, name);
    markup.open("td", {{"class", "number"}});
    addBytes(markup, bytes);
    markup.close().close();
  }
  closeTable(markup);
}

/// This plan and those with other choices side by side, to one scale.
static void addOtherPictures(const HtmlReportInput &input, Markup &markup) {
  constexpr double narrow = 380;
  markup.raw("\n");
  if (input.others.empty())
    return;
  std::vector<std::pair<std::string, const json::Object *>> plans = {
      {"this plan", &input.report}};
  int64_t most = 0;
  for (const OtherPlan &other : input.others)
    plans.emplace_back(other.name, &other.report);
  for (const auto &[name, report] : plans)
    most = std::max(most, getInteger(*report, "peak_bytes_per_device"));
  markup.open("div", {{"class", "others"}});
  markup.element("h3", {}, "Beside other choices");
  markup.open("div", {{"class", "pair"}});
  for (const auto &[name, report] : plans) {
    const json::Object *memory = report->getObject("memory");
    const json::Object *buffers =
        memory ? memory->getObject("over_time") : nullptr;
    if (!buffers)
      continue;
    MemoryOverTime overTime(
        *buffers, getInteger(*report, "peak_bytes_per_device"), narrow);
    if (!overTime.isKnown())
      continue;
    markup.open("figure", {{"class", "choice"}})
        .open("figcaption")
        .text(name + ": ");
    addBytes(markup, getInteger(*report, "peak_bytes_per_device"));
    markup.close();
    overTime.draw(markup, "", most);
    markup.close();
  }
  markup.close().close().raw("\n");
}

void shardc::addMemory(const HtmlReportInput &input, Markup &markup,
                       json::Object &data) {
  openSection(markup, "memory", "Memory over the step");
  markup.open("p").text("The arena of a device has ");
  addBytes(markup, getInteger(input.report, "peak_bytes_per_device"));
  markup.text(". Move over the picture, or focus it and use the arrow keys, to "
              "see the buffers that are alive.");
  markup.close();
  std::vector<LegendEntry> kinds;
  for (StringRef kind : memoryKinds)
    kinds.emplace_back(kind, kind);
  addLegend(markup, kinds);
  addOtherPeaks(input, markup);
  json::Array pictures;
  const json::Object *pipeline = input.report.getObject("pipeline");
  if (!pipeline) {
    if (const json::Object *memory = input.report.getObject("memory"))
      addMemoryOf(*memory, getInteger(input.report, "peak_bytes_per_device"),
                  "", markup, pictures);
    addOtherPictures(input, markup);
  } else {
    for (auto [rank, object] : enumerate(getObjects(*pipeline, "ranks")))
      if (const json::Object *memory = object->getObject("memory"))
        addMemoryOf(
            *memory, getInteger(*object, "peak_bytes_per_device"),
            "Pipeline rank " + std::to_string(rank) + ": " +
                getBytesText(getNumber(*object, "peak_bytes_per_device")),
            markup, pictures);
  }
  markup.close();
  data["memory"] = std::move(pictures);
}
