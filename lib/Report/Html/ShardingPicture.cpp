//===- ShardingPicture.cpp - Which device holds which slice ---------------===//

#include "ShardingPicture.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace shardc;

/// The most blocks drawn along one dimension; of more the middle is left out.
static constexpr int64_t maxDrawnBlocks = 8;
/// The most blocks of the dimensions before the last two.
static constexpr size_t maxFacets = 16;
static constexpr int64_t maxDrawnDevices = 512;

namespace {

/// Reads what `toString` of layouts writes.
class LayoutReader {
public:
  LayoutReader(StringRef text, const MeshAxes &mesh) : rest(text), mesh(mesh) {}

  std::optional<Layout> read(size_t rank) {
    Layout layout(static_cast<int64_t>(rank));
    if (!rest.consume_front("["))
      return std::nullopt;
    for (auto [index, dim] : enumerate(layout.dims))
      if ((index && !rest.consume_front(", ")) || !readAxes(dim))
        return std::nullopt;
    if (!rest.consume_front("]"))
      return std::nullopt;
    if (rest.consume_front(" unreduced=")) {
      AxisList axes;
      if (!readAxes(axes) || any_of(axes, isGap))
        return std::nullopt;
      layout.unreduced = getAxisSet(axes);
    }
    return rest.empty() ? std::optional(layout) : std::nullopt;
  }

private:
  /// `{"data", "*2", "model"}`.
  bool readAxes(AxisList &axes) {
    if (!rest.consume_front("{"))
      return false;
    while (!rest.consume_front("}")) {
      if (!axes.empty() && !rest.consume_front(", "))
        return false;
      if (!readAxis(axes))
        return false;
    }
    return true;
  }

  bool readAxis(AxisList &axes) {
    for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
      if (rest.consume_front(("\"" + mesh.getName(axis) + "\"").str())) {
        axes.push_back(axis);
        return true;
      }
    int64_t parts = 0;
    if (!rest.consume_front("\"*") || rest.consumeInteger(10, parts) ||
        parts < 1 || parts > INT32_MAX || !rest.consume_front("\""))
      return false;
    axes.push_back(-static_cast<int>(parts));
    return true;
  }

  StringRef rest;
  const MeshAxes &mesh;
};

/// The blocks of a tensor and their holders. A dimension with a gap has more
/// blocks than shards: a device holds several.
class Blocks {
public:
  Blocks(const PlacedTensor &tensor, const MeshAxes &mesh)
      : tensor(tensor), mesh(mesh) {
    numDevices = 1;
    for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
      numDevices *= mesh.getSize(axis);
    for (auto [dim, axes] : enumerate(tensor.layout.dims)) {
      counts.push_back(mesh.getNumParts(axes));
      sizes.push_back(isStrided(axes)
                          ? ceilDiv(tensor.shape[dim], counts.back())
                          : tensor.localShape[dim]);
    }
  }

  int64_t getCount(size_t dim) const { return counts[dim]; }

  /// "8:16" of block `index` in dimension `dim`.
  std::string getRange(size_t dim, int64_t index) const {
    int64_t begin = std::min(tensor.shape[dim], index * sizes[dim]);
    int64_t end = std::min(tensor.shape[dim], begin + sizes[dim]);
    return std::to_string(begin) + ":" + std::to_string(end);
  }

  /// The devices that hold the block with these indices, ascending.
  std::vector<int64_t> getDevices(ArrayRef<int64_t> block) const {
    // By axis the coordinate that its holders have, or -1.
    SmallVector<int64_t> fixed(mesh.getNumAxes(), -1);
    for (auto [axes, index] : zip_equal(tensor.layout.dims, block)) {
      int64_t rest = index;
      for (int axis : reverse(axes)) {
        int64_t size = isGap(axis) ? -axis : mesh.getSize(axis);
        if (!isGap(axis))
          fixed[axis] = rest % size;
        rest /= size;
      }
    }
    std::vector<int64_t> devices;
    for (int64_t device = 0; device < numDevices; ++device) {
      int64_t rest = device;
      bool holds = true;
      for (int axis = mesh.getNumAxes() - 1; axis >= 0; --axis) {
        holds &= fixed[axis] < 0 || fixed[axis] == rest % mesh.getSize(axis);
        rest /= mesh.getSize(axis);
      }
      if (holds)
        devices.push_back(device);
    }
    return devices;
  }

private:
  const PlacedTensor &tensor;
  const MeshAxes &mesh;
  int64_t numDevices;
  SmallVector<int64_t> counts, sizes;
};

/// Draws one tensor.
class TensorPicture {
public:
  TensorPicture(Markup &markup, const PlacedTensor &tensor,
                const MeshAxes &mesh)
      : markup(markup), blocks(tensor, mesh), rank(tensor.shape.size()),
        isPartial(tensor.layout.unreduced != 0) {
    rows = rank >= 2 ? getDrawn(rank - 2) : SmallVector<int64_t>{0};
    columns = rank >= 1 ? getDrawn(rank - 1) : SmallVector<int64_t>{0};
    SmallVector<int64_t> block(rank, 0);
    addFacets(block, 0);
  }

  void draw(StringRef label) {
    double height = 0;
    for (size_t i = 0; i < facets.size(); ++i)
      height += getFacetHeight();
    double width = margin + static_cast<double>(columns.size()) * cellWidth + 4;
    openSvg(markup, width, height + 2, label);
    double top = 0;
    for (SmallVector<int64_t> &facet : facets) {
      drawFacet(facet, top);
      top += getFacetHeight();
    }
    markup.close();
  }

private:
  static constexpr double margin = 92, cellWidth = 76, cellHeight = 34,
                          header = 20;

  double getFacetHeight() const {
    return header * (rank > 2 ? 2 : 1) +
           static_cast<double>(rows.size()) * cellHeight + 4;
  }

  /// Blocks of dimension `dim` that are drawn; -1 stands for those left out.
  SmallVector<int64_t> getDrawn(size_t dim) const {
    SmallVector<int64_t> drawn;
    int64_t count = blocks.getCount(dim);
    for (int64_t index = 0; index < count; ++index) {
      if (count > maxDrawnBlocks && index == maxDrawnBlocks - 2) {
        drawn.push_back(-1);
        index = count - 1;
      }
      drawn.push_back(index);
    }
    return drawn;
  }

  void addFacets(SmallVector<int64_t> &block, size_t dim) {
    if (dim + 2 >= rank) {
      if (facets.size() < maxFacets)
        facets.push_back(block);
      return;
    }
    for (int64_t index : getDrawn(dim))
      if (index >= 0) {
        block[dim] = index;
        addFacets(block, dim + 1);
      }
  }

  void drawFacet(SmallVector<int64_t> &block, double top) {
    if (rank > 2) {
      std::string name = "[";
      for (size_t dim = 0; dim + 2 < rank; ++dim)
        name += blocks.getRange(dim, block[dim]) + ", ";
      addText(markup, margin, top + 14, "start", name + ":, :]", "label");
      top += header;
    }
    for (auto [number, column] : enumerate(columns))
      if (rank >= 1)
        addText(
            markup, margin + (static_cast<double>(number) + 0.5) * cellWidth,
            top + 14, "middle",
            column < 0 ? "..." : blocks.getRange(rank - 1, column), "label");
    top += header;
    for (auto [number, row] : enumerate(rows)) {
      double y = top + static_cast<double>(number) * cellHeight;
      if (rank >= 2)
        addText(markup, margin - 6, y + cellHeight / 2 + 4, "end",
                row < 0 ? "..." : blocks.getRange(rank - 2, row), "label");
      for (auto [place, column] : enumerate(columns)) {
        double x = margin + static_cast<double>(place) * cellWidth;
        if (row < 0 || column < 0) {
          addText(markup, x + cellWidth / 2, y + cellHeight / 2 + 4, "middle",
                  "...", "label");
          continue;
        }
        if (rank >= 2)
          block[rank - 2] = row;
        if (rank >= 1)
          block[rank - 1] = column;
        drawBlock(block, x, y);
      }
    }
  }

  void drawBlock(ArrayRef<int64_t> block, double x, double y) {
    std::vector<int64_t> devices = blocks.getDevices(block);
    std::string slice;
    for (size_t dim = 0; dim < rank; ++dim)
      slice += (dim ? ", " : "") + blocks.getRange(dim, block[dim]);
    std::string names = getRangesText(devices);
    std::string tone = std::to_string(devices.front() % 8);
    markup.open("g",
                {{"class", "block"},
                 {"data-devices",
                  join(map_range(devices,
                                 [](int64_t it) { return std::to_string(it); }),
                       " ")}});
    markup.element("title", {},
                   "[" + slice + "] " + (isPartial ? "(partial sums) " : "") +
                       "on device" + (devices.size() > 1 ? "s " : " ") + names);
    addRectangle(markup, x + 1, y + 1, cellWidth - 2, cellHeight - 2,
                 "shard tone" + tone + (isPartial ? " partial" : ""));
    addText(markup, x + cellWidth / 2, y + cellHeight / 2 + 4, "middle",
            shorten(names, 11), "device");
    markup.close();
  }

  Markup &markup;
  Blocks blocks;
  size_t rank;
  bool isPartial;
  SmallVector<int64_t> rows, columns;
  std::vector<SmallVector<int64_t>> facets;
};

} // namespace

std::optional<PlacedTensor> shardc::readPlacedTensor(ArrayRef<int64_t> shape,
                                                     StringRef text,
                                                     const MeshAxes &mesh) {
  std::optional<Layout> layout = LayoutReader(text, mesh).read(shape.size());
  if (!layout)
    return std::nullopt;
  SmallVector<int64_t> local = layout->getLocalShape(shape, mesh);
  return PlacedTensor{shape.vec(), {local.begin(), local.end()}, *layout};
}

std::string shardc::getRangesText(ArrayRef<int64_t> numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    text += (i ? ", " : "") + std::to_string(numbers[i]);
    if (end - i > 2)
      text += "-" + std::to_string(numbers[end - 1]);
    else if (end - i == 2)
      text += ", " + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

std::vector<HeldSlice> shardc::getHeldSlices(const PlacedTensor &tensor,
                                             const MeshAxes &mesh,
                                             size_t limit) {
  Blocks blocks(tensor, mesh);
  std::vector<HeldSlice> slices;
  size_t rank = tensor.shape.size();
  SmallVector<int64_t> block(rank, 0);
  while (slices.size() < limit) {
    std::string slice;
    for (size_t dim = 0; dim < rank; ++dim)
      slice += (dim ? ", " : "") + blocks.getRange(dim, block[dim]);
    slices.push_back({"[" + slice + "]", blocks.getDevices(block)});
    size_t dim = rank;
    while (dim > 0 && ++block[dim - 1] == blocks.getCount(dim - 1))
      block[--dim] = 0;
    if (dim == 0)
      break;
  }
  return slices;
}

void shardc::drawPlacedTensor(Markup &markup, const PlacedTensor &tensor,
                              const MeshAxes &mesh, StringRef label) {
  TensorPicture(markup, tensor, mesh).draw(label);
}

void shardc::drawMesh(Markup &markup, const MeshAxes &mesh) {
  int numAxes = mesh.getNumAxes();
  int64_t columns = numAxes ? mesh.getSize(numAxes - 1) : 1;
  int64_t rows = numAxes > 1 ? mesh.getSize(numAxes - 2) : 1;
  int64_t numDevices = 1;
  for (int axis = 0; axis < numAxes; ++axis)
    numDevices *= mesh.getSize(axis);
  if (numDevices > maxDrawnDevices)
    return;
  constexpr double cell = 46, left = 110, top = 22, gap = 26;
  int64_t facets = numDevices / (rows * columns);
  double facetHeight = static_cast<double>(rows) * 30 + gap;
  openSvg(markup, left + static_cast<double>(columns) * cell + 4,
          top + static_cast<double>(facets) * facetHeight,
          "The devices of the mesh by their coordinates");
  // The coordinate of a device along an axis.
  auto getPlace = [&](int64_t device, int axis) {
    for (int other = numAxes - 1; other > axis; --other)
      device /= mesh.getSize(other);
    return device % mesh.getSize(axis);
  };
  auto getName = [&](int64_t device, int axis) {
    return shorten(mesh.getName(axis), 12) + "=" +
           std::to_string(getPlace(device, axis));
  };
  if (numAxes)
    addText(markup, left, 12, "start", shorten(mesh.getName(numAxes - 1), 40),
            "label");
  for (int64_t device = 0; device < numDevices; ++device) {
    int64_t column = device % columns, row = device / columns % rows;
    int64_t facet = device / (rows * columns);
    double x = left + static_cast<double>(column) * cell;
    double y = top + static_cast<double>(facet) * facetHeight +
               static_cast<double>(row) * 30;
    if (column == 0 && numAxes > 1) {
      std::string name = getName(device, numAxes - 2);
      addText(markup, left - 6, y + 18, "end", name, "label");
    }
    if (row == 0 && column == 0 && numAxes > 2) {
      std::string name;
      for (int axis = 0; axis + 2 < numAxes; ++axis)
        name += (axis ? ", " : "") + getName(device, axis);
      addText(markup, left, y + static_cast<double>(rows) * 30 + 14, "start",
              "above: " + name, "label");
    }
    std::string title = "device " + std::to_string(device);
    for (int axis = 0; axis < numAxes; ++axis)
      title += (axis ? ", " : ": ") + getName(device, axis);
    markup.open("g",
                {{"class", "block"}, {"data-devices", std::to_string(device)}});
    markup.element("title", {}, title);
    addRectangle(markup, x + 1, y + 1, cell - 2, 28,
                 "shard tone" + std::to_string(device % 8));
    addText(markup, x + cell / 2, y + 19, "middle", std::to_string(device),
            "device");
    markup.close();
  }
  markup.close();
}
