//===- RunView.cpp - The metrics of a run ---------------------------------===//

#include "Views.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;
using namespace shardc;

/// The most points of a line; of more every so many are drawn.
static constexpr size_t maxPoints = 500;

/// A line over steps, of the field `field` of each record.
struct MetricLine {
  StringLiteral field, heading, classes;
};

static constexpr MetricLine metricLines[] = {
    {"loss", "loss", "loss"},
    {"accuracy", "accuracy", "loss"},
    {"samples_per_s", "samples per second", "rate"},
    {"communication_share", "share of time in communication", "share"}};

/// Steps and values of a field; records without it are left out.
static std::vector<std::pair<double, double>>
getValues(const json::Array &records, StringRef field) {
  std::vector<std::pair<double, double>> values;
  for (const json::Value &value : records)
    if (const json::Object *record = value.getAsObject())
      if (std::optional<double> number = record->getNumber(field);
          number && std::isfinite(*number))
        values.emplace_back(getNumber(*record, "step"), *number);
  return values;
}

static std::string printNumber(double value) {
  std::string text;
  raw_string_ostream(text) << format("%.4g", value);
  return text;
}

/// Where `value` lies from `low`, which is 0, to `high`, which is 1. Both may
/// be so large that their distance is no finite number.
static double getShare(double low, double high, double value) {
  double scale = std::max(std::abs(low), std::abs(high));
  low /= scale;
  return (value / scale - low) / (high / scale - low);
}

static void drawLine(Markup &markup, const MetricLine &line,
                     ArrayRef<std::pair<double, double>> values) {
  constexpr double left = 70, width = 400, top = 26, height = 140;
  double low = values.front().second, high = low;
  for (const auto &[step, value] : values) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double firstStep = values.front().first, lastStep = values.back().first;
  openSvg(markup, left + width + 14, top + height + 28,
          line.heading.str() + " over steps: from " +
              printNumber(values.front().second) + " to " +
              printNumber(values.back().second),
          ("run-" + line.field).str());
  addText(markup, left, 14, "start", line.heading);
  auto getX = [&](double step) {
    return left + (lastStep > firstStep
                       ? width * getShare(firstStep, lastStep, step)
                       : 0);
  };
  auto getY = [&](double value) {
    return top + height * (high > low ? getShare(high, low, value) : 0.5);
  };
  for (double value : {low, high}) {
    addLine(markup, left, getY(value), left + width, getY(value), "axis");
    addText(markup, left - 6, getY(value) + 4, "end", printNumber(value),
            "label");
    if (low == high)
      break;
  }
  size_t stride = (values.size() + maxPoints - 1) / maxPoints;
  std::string points;
  for (size_t i = 0; i < values.size(); i += stride)
    points += (i ? " " : "") + getCoordinate(getX(values[i].first)) + "," +
              getCoordinate(getY(values[i].second));
  markup.empty("polyline",
               {{"points", points}, {"class", ("line " + line.classes).str()}});
  addText(markup, left, top + height + 20, "start",
          "step " + printNumber(firstStep), "label");
  addText(markup, left + width, top + height + 20, "end",
          "step " + printNumber(lastStep), "label");
  markup.close();
}

void shardc::addRun(const HtmlReportInput &input, Markup &markup) {
  openSection(markup, "run", "A run");
  markup.open("p").text("Metrics of ");
  addCount(markup, static_cast<int64_t>(input.metrics->size()));
  markup.text(" steps, as shardc-run --metrics wrote them.").close();
  markup.open("figure").open("div", {{"class", "pair"}});
  for (const MetricLine &line : metricLines)
    if (auto values = getValues(*input.metrics, line.field); !values.empty())
      drawLine(markup, line, values);
  markup.close().close();
  openTable(markup, "First and last step", {"", "first", "last"}, {1, 2});
  for (const MetricLine &line : metricLines)
    if (auto values = getValues(*input.metrics, line.field); !values.empty()) {
      markup.open("tr", {{"class", "metric"}})
          .element("th", {{"scope", "row"}}, line.heading);
      for (double value : {values.front().second, values.back().second})
        markup.open("td", {{"class", "number"}})
            .element("data",
                     {{"value", formatv("{0}", json::Value(value)).str()}},
                     printNumber(value))
            .close();
      markup.close();
    }
  closeTable(markup);
  markup.close();
}
