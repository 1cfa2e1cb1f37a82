//===- DrawSharding.cpp - Pictures of shardings ---------------------------===//

#include "shardc/Report/ShardingsReport.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace shardc;

namespace {

/// The most blocks drawn along one dimension; of more the middle is left out.
constexpr int64_t maxBlocks = 8;
/// The most devices named in one block; of more the rest is counted.
constexpr int64_t maxDevices = 8;

/// Draws one tensor.
class Picture {
public:
  Picture(ArrayRef<int64_t> shape, ArrayRef<int64_t> localShape,
          const Layout &layout, const MeshAxes &mesh)
      : shape(shape), localShape(localShape), layout(layout), mesh(mesh) {
    for (const AxisList &axes : layout.dims)
      counts.push_back(mesh.getNumShards(axes));
  }

  std::string draw() {
    SmallVector<int64_t> block(shape.size(), 0);
    drawLeading(block, 0);
    return std::move(text);
  }

private:
  /// Blocks of dimension `dim` that are drawn; -1 stands for those left out.
  SmallVector<int64_t> getDrawn(size_t dim) const {
    SmallVector<int64_t> drawn;
    int64_t count = counts[dim];
    for (int64_t index = 0; index < count; ++index) {
      if (count > maxBlocks && index == maxBlocks - 2) {
        drawn.push_back(-1);
        index = count - 1;
      }
      drawn.push_back(index);
    }
    return drawn;
  }

  /// "[8:16]" of block `index` in dimension `dim`.
  std::string getRange(size_t dim, int64_t index) const {
    int64_t begin = std::min(shape[dim], index * localShape[dim]);
    int64_t end = std::min(shape[dim], begin + localShape[dim]);
    return std::to_string(begin) + ":" + std::to_string(end);
  }

  /// "0,4" for the devices that hold `block`.
  std::string getDevices(ArrayRef<int64_t> block) const {
    SmallVector<int64_t> coordinates(mesh.getNumAxes(), 0);
    AxisSet fixed = layout.getAxes();
    for (auto [axes, index] : llvm::zip_equal(layout.dims, block)) {
      int64_t rest = index;
      for (int axis : llvm::reverse(axes)) {
        coordinates[axis] = rest % mesh.getSize(axis);
        rest /= mesh.getSize(axis);
      }
    }
    int64_t copies = 1;
    for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
      if (!(fixed & axisBit(axis)))
        copies *= mesh.getSize(axis);
    SmallVector<std::string> names;
    for (int64_t copy = 0; copy < std::min(copies, maxDevices); ++copy) {
      int64_t rest = copy, device = 0, stride = 1;
      for (int axis = mesh.getNumAxes() - 1; axis >= 0; --axis) {
        int64_t size = mesh.getSize(axis);
        int64_t coordinate = coordinates[axis];
        if (!(fixed & axisBit(axis))) {
          coordinate = rest % size;
          rest /= size;
        }
        device += coordinate * stride;
        stride *= size;
      }
      names.push_back(std::to_string(device));
    }
    std::string text = llvm::join(names, ",");
    if (copies > maxDevices)
      text += ",... (" + std::to_string(copies) + ")";
    return text;
  }

  void drawLeading(SmallVector<int64_t> &block, size_t dim) {
    if (dim + 2 >= shape.size())
      return drawGrid(block);
    for (int64_t index : getDrawn(dim)) {
      if (index < 0) {
        text += "...\n";
        continue;
      }
      block[dim] = index;
      drawLeading(block, dim + 1);
    }
  }

  void drawGrid(SmallVector<int64_t> &block) {
    size_t rank = shape.size();
    if (rank > 2) {
      text += "[";
      for (size_t dim = 0; dim + 2 < rank; ++dim)
        text += getRange(dim, block[dim]) + ", ";
      text += ":, :]\n";
    }
    SmallVector<int64_t> rows =
        rank >= 2 ? getDrawn(rank - 2) : SmallVector<int64_t>{0};
    SmallVector<int64_t> columns =
        rank >= 1 ? getDrawn(rank - 1) : SmallVector<int64_t>{0};
    // One line of cells per block of rows, ranges at the edges.
    SmallVector<SmallVector<std::string>> cells;
    SmallVector<std::string> &header = cells.emplace_back();
    header.push_back("");
    for (int64_t column : columns)
      header.push_back(rank == 0    ? ""
                       : column < 0 ? "..."
                                    : getRange(rank - 1, column));
    for (int64_t row : rows) {
      SmallVector<std::string> &line = cells.emplace_back();
      line.push_back(rank < 2 ? "" : row < 0 ? "..." : getRange(rank - 2, row));
      for (int64_t column : columns) {
        if (row < 0 || column < 0) {
          line.push_back("...");
          continue;
        }
        if (rank >= 2)
          block[rank - 2] = row;
        if (rank >= 1)
          block[rank - 1] = column;
        line.push_back(getDevices(block));
      }
    }
    drawCells(cells);
  }

  void drawCells(ArrayRef<SmallVector<std::string>> cells) {
    SmallVector<size_t> widths(cells[0].size(), 0);
    for (ArrayRef<std::string> line : cells)
      for (auto [width, cell] : llvm::zip_equal(widths, line))
        width = std::max(width, cell.size());
    llvm::raw_string_ostream os(text);
    auto drawRule = [&] {
      os.indent(widths[0] + 1) << '+';
      for (size_t width : llvm::drop_begin(widths))
        os << std::string(width + 2, '-') << '+';
      os << '\n';
    };
    for (auto [index, line] : llvm::enumerate(cells)) {
      os << llvm::left_justify(line[0], widths[0]) << (index ? " |" : "  ");
      for (size_t column = 1; column < line.size(); ++column) {
        os << ' ' << line[column];
        // No spaces at the end of a line.
        if (index || column + 1 < line.size())
          os.indent(widths[column] - line[column].size())
              << (index ? " |" : "  ");
      }
      os << '\n';
      drawRule();
    }
  }

  ArrayRef<int64_t> shape, localShape;
  const Layout &layout;
  const MeshAxes &mesh;
  SmallVector<int64_t> counts;
  std::string text;
};

} // namespace

std::string shardc::drawSharding(ArrayRef<int64_t> shape,
                                 ArrayRef<int64_t> localShape,
                                 const Layout &layout, const MeshAxes &mesh) {
  return Picture(shape, localShape, layout, mesh).draw();
}
