//===- PageData.cpp - What the views of the page read ---------------------===//

#include "PageData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace shardc;

int64_t shardc::getInteger(const json::Object &object, StringRef name) {
  return object.getInteger(name).value_or(0);
}

double shardc::getNumber(const json::Object &object, StringRef name) {
  return object.getNumber(name).value_or(0);
}

std::string shardc::getString(const json::Object &object, StringRef name) {
  return object.getString(name).value_or("").str();
}

const json::Array &shardc::getArray(const json::Object &object,
                                    StringRef name) {
  static const json::Array none;
  const json::Array *array = object.getArray(name);
  return array ? *array : none;
}

std::vector<const json::Object *> shardc::getObjects(const json::Object &object,
                                                     StringRef name) {
  std::vector<const json::Object *> objects;
  for (const json::Value &value : getArray(object, name))
    if (const json::Object *member = value.getAsObject())
      objects.push_back(member);
  return objects;
}

std::vector<int64_t> shardc::getIntegers(const json::Object &object,
                                         StringRef name) {
  std::vector<int64_t> integers;
  for (const json::Value &value : getArray(object, name))
    integers.push_back(value.getAsInteger().value_or(0));
  return integers;
}

MeshAxes shardc::getMeshAxes(const json::Object &report) {
  std::vector<std::pair<std::string, int64_t>> axes;
  const json::Object *sizes = report.getObject("mesh");
  for (const json::Value &value : getArray(report, "mesh_axes"))
    if (std::optional<StringRef> name = value.getAsString(); name && sizes)
      axes.emplace_back(name->str(), getInteger(*sizes, *name));
  return MeshAxes(axes);
}

std::string shardc::getMeshText(const MeshAxes &mesh) {
  std::string text;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    text += (axis ? ", " : "") + mesh.getName(axis).str() + "=" +
            std::to_string(mesh.getSize(axis));
  return text;
}

std::string shardc::getBytesText(double bytes) {
  static constexpr StringLiteral units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  return unit == 0 ? formatv("{0:f0} B", bytes).str()
                   : formatv("{0:f1} {1}", bytes, units[unit]).str();
}

std::string shardc::getTimeText(double microseconds) {
  if (microseconds >= 1e6)
    return formatv("{0:f2} s", microseconds / 1e6).str();
  if (microseconds >= 1e3)
    return formatv("{0:f2} ms", microseconds / 1e3).str();
  return formatv("{0:f2} us", microseconds).str();
}

std::string shardc::getSizesText(ArrayRef<int64_t> shape) {
  return "[" +
         join(map_range(shape,
                        [](int64_t size) { return std::to_string(size); }),
              ", ") +
         "]";
}

static void addData(Markup &markup, const std::string &value,
                    const std::string &unit, StringRef text) {
  markup.element("data", {{"value", value}, {"title", value + unit}}, text);
}

void shardc::addBytes(Markup &markup, int64_t bytes) {
  addData(markup, std::to_string(bytes), " bytes",
          getBytesText(static_cast<double>(bytes)));
}

void shardc::addMicroseconds(Markup &markup, double microseconds) {
  // As the JSON has it: every digit that distinguishes it from other doubles.
  addData(markup, formatv("{0}", json::Value(microseconds)).str(),
          " microseconds", getTimeText(microseconds));
}

void shardc::addCount(Markup &markup, int64_t count) {
  std::string digits = std::to_string(count), text;
  for (auto [index, digit] : enumerate(digits)) {
    text += digit;
    size_t left = digits.size() - index - 1;
    if (left && left % 3 == 0 && digit != '-')
      text += ',';
  }
  addData(markup, digits, "", text);
}

void shardc::openTable(Markup &markup, StringRef caption,
                       ArrayRef<StringRef> columns,
                       ArrayRef<unsigned> numbers) {
  markup.open("div", {{"class", "scroll"}, {"tabindex", "0"}}).open("table");
  markup.element("caption", {}, caption);
  markup.open("thead").open("tr");
  for (auto [index, column] : enumerate(columns))
    markup.element("th",
                   {{"scope", "col"},
                    {"class", is_contained(numbers, index) ? "number" : ""}},
                   column);
  markup.close().close().open("tbody");
}

void shardc::closeTable(Markup &markup) { markup.close().close().close(); }

void shardc::addLegend(Markup &markup, ArrayRef<LegendEntry> entries) {
  markup.open("ul", {{"class", "legend"}});
  for (auto [classes, meaning] : entries) {
    markup.open("li");
    markup.open("svg",
                {{"width", "14"}, {"height", "14"}, {"aria-hidden", "true"}});
    addRectangle(markup, 0, 0, 14, 14, classes);
    markup.close().text(meaning).close();
  }
  markup.close();
}

void shardc::openSection(Markup &markup, StringRef id, StringRef heading) {
  markup.open("section",
              {{"id", id.str()}, {"aria-labelledby", id.str() + "-heading"}});
  markup.element("h2", {{"id", id.str() + "-heading"}}, heading);
}
