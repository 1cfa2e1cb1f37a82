//===- ShardingsView.cpp - Which device holds which slice -----------------===//

#include "Assets.h"
#include "Views.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace shardc;

/// The most pictures of moves on a page, and the most slices in a table beside
/// a picture.
static constexpr size_t maxMoves = 60, maxSlices = 64;

/// `[["data"], []]` as a layout. Axes of size 1 shard nothing.
static Layout readLayout(const json::Array &dims, const MeshAxes &mesh) {
  Layout layout(static_cast<int64_t>(dims.size()));
  for (auto [value, axes] : zip_equal(dims, layout.dims))
    if (const json::Array *names = value.getAsArray())
      for (const json::Value &name : *names)
        if (int axis = mesh.find(name.getAsString().value_or(""));
            axis >= 0 && mesh.getSize(axis) > 1)
          axes.push_back(axis);
  return layout;
}

/// Adds `name` to the picture that is the same, or a new one.
static void addPicture(std::vector<SharedPicture> &pictures,
                       SharedPicture picture, std::string name) {
  auto known = find_if(pictures, [&](const SharedPicture &other) {
    return other.before == picture.before && other.after == picture.after;
  });
  if (known == pictures.end()) {
    pictures.push_back(std::move(picture));
    known = std::prev(pictures.end());
  }
  if (!is_contained(known->names, name))
    known->names.push_back(std::move(name));
}

std::vector<SharedPicture>
shardc::getStoredTensors(const HtmlReportInput &input, const MeshAxes &mesh) {
  std::vector<SharedPicture> pictures;
  for (const json::Object *tensor : getObjects(input.report, "shardings"))
    addPicture(
        pictures,
        {{getIntegers(*tensor, "shape"), getIntegers(*tensor, "local_shape"),
          readLayout(getArray(*tensor, "sharding"), mesh)},
         std::nullopt,
         {}},
        getString(*tensor, "name"));
  return pictures;
}

std::vector<SharedPicture> shardc::getMovedTensors(const HtmlReportInput &input,
                                                   const MeshAxes &mesh) {
  std::vector<SharedPicture> pictures;
  if (!input.explanation || input.explanation->programs.empty())
    return pictures;
  for (const ExplainedCollective &collective :
       input.explanation->programs.front().collectives)
    for (const MovedTensor &tensor : collective.tensors) {
      std::optional<PlacedTensor> before = readPlacedTensor(tensor.shape,
                                                            tensor.from, mesh),
                                  after = readPlacedTensor(tensor.shape,
                                                           tensor.to, mesh);
      if (before && after && !(*before == *after))
        addPicture(pictures, {*before, after, {}}, tensor.name);
    }
  return pictures;
}

/// "w0, w1 and 94 more".
static std::string getNamesText(ArrayRef<std::string> names) {
  constexpr size_t maxNames = 6;
  std::string text;
  for (auto [index, name] : enumerate(names.take_front(maxNames)))
    text += (index ? ", " : "") + shorten(name, 120);
  if (names.size() > maxNames)
    text += " and " + std::to_string(names.size() - maxNames) + " more";
  return text;
}

static std::string getLayoutText(const PlacedTensor &tensor,
                                 const MeshAxes &mesh) {
  return getSizesText(tensor.shape) + "  " + toString(tensor.layout, mesh);
}

static void addPlacedTensor(Markup &markup, const PlacedTensor &tensor,
                            const MeshAxes &mesh, StringRef when) {
  markup.open("div");
  markup.open("p");
  if (!when.empty())
    markup.text(when).text(" ");
  markup.element("code", {}, getLayoutText(tensor, mesh)).close();
  drawPlacedTensor(markup, tensor, mesh,
                   "Devices that hold each slice of a tensor " +
                       shorten(getLayoutText(tensor, mesh), 200));
  std::vector<HeldSlice> slices = getHeldSlices(tensor, mesh, maxSlices + 1);
  markup.open("details").element("summary", {}, "as a table");
  openTable(markup, "Slices and their devices", {"slice", "devices"});
  for (const HeldSlice &slice : ArrayRef(slices).take_front(maxSlices))
    markup.open("tr")
        .element("td", {}, slice.slice)
        .element("td", {}, getRangesText(slice.devices))
        .close();
  closeTable(markup);
  if (slices.size() > maxSlices)
    markup.element("p", {{"class", "note"}},
                   "The first " + std::to_string(maxSlices) +
                       " slices; --json has the sharding.");
  markup.close().close();
}

static void addFigure(Markup &markup, const SharedPicture &picture,
                      const MeshAxes &mesh, size_t number) {
  markup.open("figure", {{"class", "layout"},
                         {"id", "layout-" + std::to_string(number)}});
  markup.open("figcaption")
      .element("code", {}, getNamesText(picture.names))
      .close();
  markup.open("div", {{"class", "pair"}});
  addPlacedTensor(markup, picture.before, mesh, picture.after ? "before" : "");
  if (picture.after)
    addPlacedTensor(markup, *picture.after, mesh, "after");
  markup.close().close();
}

/// What the script needs to offer the tensors of the picture `number`.
static void addChoices(const SharedPicture &picture, StringRef group,
                       size_t number, json::Array &choices) {
  for (const std::string &name : picture.names) {
    std::string label = shorten(name, 80);
    if (!json::isUTF8(label))
      label = json::fixUTF8(label);
    choices.push_back(json::Object{{"group", group},
                                   {"name", label},
                                   {"figure", static_cast<int64_t>(number)}});
  }
}

static void addTensorTable(const json::Object &report, Markup &markup) {
  openTable(markup, "Tensors as they are stored between steps",
            {"tensor", "role", "type", "sharding", "per device", "bytes"}, {5});
  for (const json::Object *tensor : getObjects(report, "shardings")) {
    std::vector<std::string> dims;
    for (const json::Value &value : getArray(*tensor, "sharding")) {
      std::string dim;
      if (const json::Array *axes = value.getAsArray())
        for (const json::Value &axis : *axes)
          dim += (dim.empty() ? "\"" : ", \"") +
                 axis.getAsString().value_or("").str() + "\"";
      dims.push_back("{" + dim + "}");
    }
    markup.open("tr").open("th", {{"scope", "row"}});
    markup.element("code", {}, getString(*tensor, "name")).close();
    markup.element("td", {}, getString(*tensor, "role"));
    markup.element("td", {},
                   getString(*tensor, "dtype") +
                       getSizesText(getIntegers(*tensor, "shape")));
    markup.open("td").element("code", {}, "[" + join(dims, ", ") + "]").close();
    markup.element("td", {}, getSizesText(getIntegers(*tensor, "local_shape")));
    markup.open("td", {{"class", "number"}});
    addBytes(markup, getInteger(*tensor, "bytes"));
    markup.close().close();
  }
  closeTable(markup);
}

void shardc::addShardings(const HtmlReportInput &input, Markup &markup,
                          json::Object &data) {
  MeshAxes mesh = getMeshAxes(input.report);
  openSection(markup, "shardings", "Mesh and shardings");
  markup.open("figure", {{"id", "mesh"}});
  markup.element("figcaption", {}, "The devices of " + getMeshText(mesh));
  drawMesh(markup, mesh);
  markup.close();
  markup.open("div", {{"class", "pickers"}, {"id", "sharding-pickers"}})
      .close();
  markup.element("p", {{"id", "held"}, {"aria-live", "polite"}}, "");
  std::vector<SharedPicture> stored = getStoredTensors(input, mesh),
                             moved = getMovedTensors(input, mesh);
  json::Array choices;
  size_t number = 0;
  markup.element("h3", {}, "Which device holds which slice, between steps");
  for (const SharedPicture &picture : stored) {
    addChoices(picture, "stored", number, choices);
    addFigure(markup, picture, mesh, number++);
  }
  if (!moved.empty())
    markup.element("h3", {}, "Before and after each move of the train step");
  for (const SharedPicture &picture : ArrayRef(moved).take_front(maxMoves)) {
    addChoices(picture, "moved", number, choices);
    addFigure(markup, picture, mesh, number++);
  }
  if (moved.size() > maxMoves)
    markup.element("p", {{"class", "note"}},
                   std::to_string(moved.size() - maxMoves) +
                       " more moves are in --json.");
  addTensorTable(input.report, markup);
  markup.close();
  data["tensors"] = std::move(choices);
  data["devices"] = getInteger(input.report, "num_devices");
}

/// A file name of `name`, which none of `taken` is.
static std::string getFileName(StringRef name, StringSet<> &taken) {
  std::string stem;
  for (char c : name.take_front(100))
    stem += isAlnum(c) || c == '.' || c == '_' || c == '-' ? c : '_';
  // No hidden file, and no name that is none.
  if (stem.empty() || stem.front() == '.')
    stem.insert(0, "_");
  std::string unique = stem;
  for (int number = 2; !taken.insert(StringRef(unique).lower()).second;
       ++number)
    unique = stem + "-" + std::to_string(number);
  return unique + ".svg";
}

/// A picture as a file of its own has its style in it.
static std::string finishPicture(const std::string &svg) {
  size_t end = svg.find('>') + 1;
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + svg.substr(0, end) +
         "<style>" + pictureStyle.str() + "</style>" + svg.substr(end) + "\n";
}

template <typename Draw>
static std::string drawAlone(Draw draw) {
  std::string svg;
  raw_string_ostream os(svg);
  Markup markup(os);
  draw(markup);
  return svg.empty() ? svg : finishPicture(svg);
}

std::vector<ReportPicture> shardc::drawShardings(const HtmlReportInput &input) {
  MeshAxes mesh = getMeshAxes(input.report);
  std::vector<ReportPicture> pictures;
  StringSet<> taken;
  auto add = [&](StringRef name, StringRef label, const PlacedTensor &tensor) {
    pictures.push_back(
        {getFileName(name, taken), drawAlone([&](Markup &markup) {
           drawPlacedTensor(markup, tensor, mesh,
                            shorten(label, 200) + " " +
                                getLayoutText(tensor, mesh));
         })});
  };
  if (std::string svg = drawAlone([&](Markup &it) { drawMesh(it, mesh); });
      !svg.empty())
    pictures.push_back({getFileName("mesh", taken), std::move(svg)});
  for (const SharedPicture &picture : getStoredTensors(input, mesh))
    for (const std::string &name : picture.names)
      add(name, name, picture.before);
  for (const SharedPicture &picture : getMovedTensors(input, mesh)) {
    const std::string &name = picture.names.front();
    add("move." + name + ".before", name + " before", picture.before);
    add("move." + name + ".after", name + " after", *picture.after);
  }
  return pictures;
}
