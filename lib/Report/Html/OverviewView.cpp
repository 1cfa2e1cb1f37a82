//===- OverviewView.cpp - The totals of a step ----------------------------===//

#include "Views.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace shardc;

static void openFact(Markup &markup, StringRef name) {
  markup.open("div").element("dt", {}, name).open("dd");
}

static void closeFact(Markup &markup) { markup.close().close(); }

static void addTextFact(Markup &markup, StringRef name, StringRef text) {
  openFact(markup, name);
  markup.text(text);
  closeFact(markup);
}

static void addCountFact(Markup &markup, StringRef name, int64_t count) {
  openFact(markup, name);
  addCount(markup, count);
  closeFact(markup);
}

static void addBytesFact(Markup &markup, StringRef name, int64_t bytes) {
  openFact(markup, name);
  addBytes(markup, bytes);
  closeFact(markup);
}

/// One of the costs that are compared.
struct ComparedCost {
  StringRef name;
  double value;
  StringRef classes;
};

/// By objective bytes a cost is an integer, by time it is in seconds.
static std::string getCostText(double cost, bool isTime) {
  return isTime ? getTimeText(cost * 1e6) : getBytesText(cost);
}

/// The cost of the plan beside those of the cheapest and the least possible.
static void addCosts(const json::Object &cost, Markup &markup) {
  bool isTime = getString(cost, "objective") == "time";
  std::vector<ComparedCost> costs = {
      {"this plan", getNumber(cost, "cost"), "activations"}};
  if (cost.getNumber("cheapest"))
    costs.push_back(
        {"the cheapest plan found", getNumber(cost, "cheapest"), "optimizer"});
  if (cost.getNumber("at_least"))
    costs.push_back(
        {"no plan costs less", getNumber(cost, "at_least"), "workspace"});
  double most = 0;
  for (const ComparedCost &each : costs)
    most = std::max(most, each.value);
  if (most <= 0)
    return;
  markup.element("h3", {},
                 isTime ? "A step beside the cheapest plan"
                        : "Bytes on the wire beside the cheapest plan");
  constexpr double left = 170, scale = 560, row = 30;
  std::string label = "Costs:";
  for (const ComparedCost &each : costs)
    label += formatv(" {0} {1};", each.name, getCostText(each.value, isTime));
  markup.open("div", {{"class", "scroll"}});
  openSvg(markup, 860, row * static_cast<double>(costs.size()), label, "costs");
  double y = 0;
  for (const ComparedCost &each : costs) {
    double width = std::max(1.0, scale * each.value / most);
    addText(markup, left - 8, y + 19, "end", each.name);
    addRectangle(markup, left, y + 4, width, row - 10, each.classes);
    addText(markup, left + width + 6, y + 19, "start",
            getCostText(each.value, isTime));
    y += row;
  }
  markup.close().close();
  std::string note = "Compile with --partition=cheapest to get the cheapest "
                     "plan.";
  if (getString(cost, "plan") == "searched")
    note = formatv("The plan was searched for; the part by which the least of "
                   "all may be lower is {0:f4}.",
                   getNumber(cost, "gap"));
  if (int64_t within = getInteger(cost, "within"))
    note += formatv(" Plans that need more than {0} of memory do not count.",
                    getBytesText(static_cast<double>(within)));
  markup.element("p", {{"class", "note"}}, note);
}

void shardc::addOverview(const HtmlReportInput &input, Markup &markup) {
  const json::Object &report = input.report;
  const json::Object *pipeline = report.getObject("pipeline");
  openSection(markup, "overview", "Overview");
  markup.open("dl", {{"class", "facts"}});
  addTextFact(markup, "mesh", getMeshText(getMeshAxes(report)));
  addCountFact(markup, "devices", getInteger(report, "num_devices"));
  addCountFact(markup, "batch size", getInteger(report, "batch_size"));
  if (const json::Object *time = report.getObject("time")) {
    openFact(markup, "a step, estimated on " +
                         shorten(getString(*time, "machine"), 40));
    addMicroseconds(markup, pipeline
                                ? getNumber(*pipeline, "step_microseconds")
                                : getNumber(*time, "overlapped_microseconds"));
    closeFact(markup);
  }
  addBytesFact(markup, "memory per device",
               getInteger(report, "peak_bytes_per_device"));
  addBytesFact(markup, "sent by a device",
               getInteger(report, "wire_bytes_per_device"));
  addCountFact(markup, "FLOPs of matmuls per device",
               getInteger(report, "matmul_flops_per_device"));
  if (report.getInteger("redundant_matmul_flops_per_device"))
    addCountFact(markup, "of these redundant",
                 getInteger(report, "redundant_matmul_flops_per_device"));
  markup.close();
  if (const json::Object *time = report.getObject("time")) {
    openTable(markup,
              pipeline ? "Estimated time of a step, without overlap and waits, "
                         "on the pipeline rank that sends most"
                       : "Estimated time of a step, without overlap",
              {"part", "time"}, {1});
    auto addPart = [&](StringRef part, StringRef key) {
      markup.open("tr").element("th", {{"scope", "row"}}, part);
      markup.open("td", {{"class", "number"}});
      addMicroseconds(markup, getNumber(*time, key));
      markup.close().close();
    };
    addPart("compute", "compute_microseconds");
    addPart("memory", "memory_microseconds");
    addPart("communication", "communication_microseconds");
    if (time->get("input_microseconds"))
      addPart("inputs from the host, beside these", "input_microseconds");
    closeTable(markup);
  }
  if (const json::Object *cost = report.getObject("cost"))
    addCosts(*cost, markup);
  markup.close();
}
