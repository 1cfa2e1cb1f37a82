//===- CommunicationView.cpp - Collectives, their causes and remedies -----===//

#include "Views.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <tuple>

using namespace llvm;
using namespace shardc;

namespace {

/// Collectives that are alike, as those of layers that repeat.
struct CollectiveGroup {
  std::string kind, axes, part;
  /// Of all together.
  int64_t count = 0, wireBytes = 0;
  double microseconds = 0;
  /// Places in the model.
  std::vector<std::string> sources;
  /// The first one; null without an explanation.
  const ExplainedCollective *first = nullptr;
  /// Of the first one.
  std::string cause;
};

} // namespace

/// Up to this number of collectives each has a line of its own.
static constexpr size_t maxAlone = 24;

using GroupKey =
    std::tuple<std::string, std::string, std::string, int64_t, size_t>;

static std::string getAxesText(ArrayRef<std::string> axes) {
  return join(axes, ",");
}

/// Adds one collective; those of the same key are one group if `merges`.
static void addToGroups(std::vector<CollectiveGroup> &groups,
                        std::map<GroupKey, size_t> &known, bool merges,
                        size_t numTensors, CollectiveGroup one) {
  GroupKey key{one.kind, one.axes, one.part, one.wireBytes, numTensors};
  auto [it, isNew] = known.try_emplace(key, groups.size());
  if (isNew || !merges) {
    groups.push_back(std::move(one));
    return;
  }
  CollectiveGroup &group = groups[it->second];
  group.count += one.count;
  group.wireBytes += one.wireBytes;
  group.microseconds += one.microseconds;
  append_range(group.sources, one.sources);
}

/// The collectives of the train step as the explanation has them; without one
/// those of the report.
static std::vector<CollectiveGroup> getGroups(const HtmlReportInput &input,
                                              const ExplainedProgram *program) {
  std::vector<CollectiveGroup> groups;
  std::map<GroupKey, size_t> known;
  if (program) {
    bool merges = program->collectives.size() > maxAlone;
    for (const ExplainedCollective &collective : program->collectives)
      addToGroups(groups, known, merges, collective.tensors.size(),
                  {collective.kind,
                   getAxesText(collective.axes),
                   collective.part,
                   1,
                   collective.wireBytes,
                   collective.seconds * 1e6,
                   {collective.guilty},
                   &collective,
                   collective.cause});
    return groups;
  }
  std::vector<const json::Object *> lines =
      getObjects(input.report, "collectives");
  for (const json::Object *line : lines) {
    std::vector<std::string> axes;
    for (const json::Value &axis : getArray(*line, "axes"))
      axes.push_back(axis.getAsString().value_or("").str());
    addToGroups(groups, known, lines.size() > maxAlone, 0,
                {getString(*line, "kind"),
                 getAxesText(axes),
                 getString(*line, "part"),
                 1,
                 getInteger(*line, "wire_bytes"),
                 getNumber(*line, "microseconds"),
                 {getString(*line, "source")},
                 nullptr,
                 getString(*line, "cause")});
  }
  return groups;
}

static std::string getGroupName(const CollectiveGroup &group) {
  return group.kind + " over " + shorten(group.axes, 24) + ", " + group.part +
         (group.count > 1 ? formatv(" ({0} alike)", group.count).str() : "");
}

/// A bar by time and one by bytes for each group.
static void drawBars(Markup &markup, ArrayRef<CollectiveGroup> groups) {
  constexpr double row = 26, left = 330, scale = 250, second = 680;
  double mostTime = 1e-9, mostBytes = 1;
  for (const CollectiveGroup &group : groups) {
    mostTime = std::max(mostTime, group.microseconds);
    mostBytes = std::max(mostBytes, static_cast<double>(group.wireBytes));
  }
  openSvg(markup, 1030, 24 + row * static_cast<double>(groups.size()),
          "Time and bytes of the collectives; the table below has the numbers",
          "collectives");
  addText(markup, left, 14, "start", "estimated time", "label");
  addText(markup, second, 14, "start", "bytes that a device sends", "label");
  for (auto [number, group] : enumerate(groups)) {
    double y = 24 + row * static_cast<double>(number);
    double time = scale * group.microseconds / mostTime;
    double bytes = scale * static_cast<double>(group.wireBytes) / mostBytes;
    markup.open("a", {{"href", formatv("#collective-{0}", number)}});
    markup.element("title", {},
                   getGroupName(group) + "\n" + shorten(group.cause, 300));
    addText(markup, left - 8, y + 16, "end", getGroupName(group));
    addRectangle(markup, left, y + 3, std::max(1.0, time), row - 8, group.kind);
    addText(markup, left + time + 5, y + 16, "start",
            getTimeText(group.microseconds));
    addRectangle(markup, second, y + 3, std::max(1.0, bytes), row - 8,
                 group.kind);
    addText(markup, second + bytes + 5, y + 16, "start",
            getBytesText(static_cast<double>(group.wireBytes)));
    markup.close();
  }
  markup.close();
}

static void addGroupTable(Markup &markup, ArrayRef<CollectiveGroup> groups) {
  openTable(markup, "Collectives of the train step",
            {"collective", "over", "part", "number", "wire bytes", "time",
             "line to look at"},
            {3, 4, 5});
  for (auto [number, group] : enumerate(groups)) {
    markup.open("tr", {{"class", "collective"}})
        .open("th", {{"scope", "row"}})
        .element("a", {{"href", formatv("#collective-{0}", number)}},
                 group.kind)
        .close();
    markup.open("td").element("code", {}, group.axes).close();
    markup.element("td", {}, group.part);
    markup.open("td", {{"class", "number"}});
    addCount(markup, group.count);
    markup.close().open("td", {{"class", "number"}});
    addBytes(markup, group.wireBytes);
    markup.close().open("td", {{"class", "number"}});
    addMicroseconds(markup, group.microseconds);
    markup.close().open("td");
    markup.element("code", {}, getShortSource(group.sources.front()));
    if (group.sources.size() > 1)
      markup.text(formatv(" and {0} more", group.sources.size() - 1).str());
    markup.close().close();
  }
  closeTable(markup);
}

/// The causes and the remedy, in the words of --explain.
static void addCauses(Markup &markup, const CollectiveGroup &group,
                      const ExplainedProgram *program, size_t number) {
  markup.open("details", {{"id", formatv("collective-{0}", number)}});
  markup.open("summary").text(getGroupName(group) + ": ");
  addBytes(markup, group.wireBytes);
  markup.text(", ");
  addMicroseconds(markup, group.microseconds);
  markup.close();
  if (group.count > 1)
    markup.element(
        "p", {{"class", "note"}},
        "Alike; here is the first of them. The others: " +
            shorten(join(map_range(drop_begin(group.sources), getShortSource),
                         ", "),
                    600));
  std::vector<std::string> lines = {"  because   " + group.cause};
  if (group.first)
    lines = getParagraphLines(*group.first, *program);
  markup.element("pre", {}, join(lines, "\n"));
  markup.close();
}

void shardc::addCommunication(const HtmlReportInput &input, Markup &markup) {
  const ExplainedProgram *program = nullptr;
  if (input.explanation && !input.explanation->programs.empty())
    program = &input.explanation->programs.front();
  std::vector<CollectiveGroup> groups = getGroups(input, program);
  openSection(markup, "communication", "Communication");
  markup.open("p").text("A device sends ");
  addBytes(markup, getInteger(input.report, "wire_bytes_per_device"));
  markup.text(" in a step");
  if (const json::Object *time = input.report.getObject("time")) {
    markup.text(", which takes ");
    addMicroseconds(markup, getNumber(*time, "communication_microseconds"));
    markup.text(" by the estimate");
  }
  markup.text(input.report.getObject("pipeline")
                  ? " on the pipeline rank that sends most."
                  : ".");
  markup.close();
  if (groups.empty()) {
    markup.element("p", {}, "No collective: nothing is sent.").close();
    return;
  }
  markup.open("figure", {{"class", "bars"}});
  drawBars(markup, groups);
  markup.close();
  addGroupTable(markup, groups);
  markup.element("h3", {}, "Causes and remedies");
  markup.element("p", {{"class", "note"}},
                 "As --explain has them: the tensors that move, the chain of "
                 "annotations and ops, and the change that removes the "
                 "collective with its price, compiled on trial: its times are "
                 "those before kernels are formed.");
  for (auto [number, group] : enumerate(groups))
    addCauses(markup, group, program, number);
  markup.close();
}
