//===- Picture.cpp - Which device holds which slice -----------------------===//

#include "PlanText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace llvm;
using namespace shardc;
namespace fb = shardc::rt::fb;

/// The block of each dimension that `device` holds.
static SmallVector<int64_t>
getBlock(const fb::Plan &plan, const fb::Sharding &sharding, int64_t device) {
  const auto &axes = *plan.mesh()->axes();
  SmallVector<int64_t> coordinates(axes.size());
  for (int64_t i = axes.size() - 1; i >= 0; --i) {
    coordinates[i] = device % axes.Get(i)->size();
    device /= axes.Get(i)->size();
  }
  SmallVector<int64_t> block;
  for (const fb::DimSharding *dim : *sharding.dims()) {
    int64_t index = 0;
    if (dim->axes())
      for (uint16_t axis : *dim->axes())
        index = index * axes.Get(axis)->size() + coordinates[axis];
    block.push_back(index);
  }
  return block;
}

/// "0-3,6" from ascending numbers.
static std::string getRangesText(ArrayRef<int64_t> numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
      ++last;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (last > i)
      text += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

/// "0..3", or "empty" for a block beyond the end.
static std::string getRangeText(int64_t size, int64_t count, int64_t block) {
  int64_t length = (size + count - 1) / count;
  int64_t first = block * length;
  int64_t last = std::min(size, first + length) - 1;
  if (last < first)
    return "empty";
  if (first == last)
    return std::to_string(first);
  return std::to_string(first) + ".." + std::to_string(last);
}

std::string shardc::getPictureText(const fb::Plan &plan,
                                   ArrayRef<int64_t> shape,
                                   const fb::Sharding &sharding) {
  std::map<std::vector<int64_t>, SmallVector<int64_t>> holders;
  int64_t numDevices = getNumDevices(plan);
  for (int64_t device = 0; device < numDevices; ++device) {
    SmallVector<int64_t> block = getBlock(plan, sharding, device);
    holders[{block.begin(), block.end()}].push_back(device);
  }
  if (shape.empty())
    return "    devices " + getRangesText(holders.begin()->second) + "\n";

  SmallVector<int64_t> counts = getShardCounts(plan, sharding);
  size_t rank = shape.size();
  size_t numOuter = rank > 2 ? rank - 2 : 0;
  int64_t numRows = rank > 1 ? counts[rank - 2] : 1;
  int64_t numColumns = counts[rank - 1];
  int64_t numGrids = 1;
  for (size_t dim = 0; dim < numOuter; ++dim)
    numGrids *= counts[dim];

  std::string text;
  for (int64_t grid = 0; grid < numGrids; ++grid) {
    std::vector<int64_t> block(numOuter);
    int64_t rest = grid;
    for (size_t dim = numOuter; dim-- > 0; rest /= counts[dim])
      block[dim] = rest % counts[dim];
    if (numOuter) {
      text += "    at";
      for (size_t dim = 0; dim < numOuter; ++dim)
        text += " " + getRangeText(shape[dim], counts[dim], block[dim]);
      text += "\n";
    }
    std::vector<std::vector<std::string>> rows(1, {"  "});
    for (int64_t column = 0; column < numColumns; ++column)
      rows[0].push_back(getRangeText(shape[rank - 1], numColumns, column));
    for (int64_t row = 0; row < numRows; ++row) {
      rows.push_back({rank > 1
                          ? "  " + getRangeText(shape[rank - 2], numRows, row)
                          : std::string("  ")});
      for (int64_t column = 0; column < numColumns; ++column) {
        std::vector<int64_t> key = block;
        if (rank > 1)
          key.push_back(row);
        key.push_back(column);
        rows.back().push_back(getRangesText(holders[key]));
      }
    }
    text += getTableText(rows, {});
  }
  return text;
}
