//===- StridedGaps.cpp - Gaps of strided shards on a small mesh -----------===//

#include "StridedGaps.h"

#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Reshard/ReshardSteps.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;
using namespace shardc;

/// The most axes that shard on a mesh that may represent a larger one.
static constexpr int maxAxes = 10;

StridedGaps::StridedGaps(ModuleOp module, const MeshAxes &mesh) : mesh(mesh) {
  if (AxisSet all = getShardingAxes(mesh); llvm::popcount(all) <= maxAxes)
    for (AxisSet group = all; group != 0; group = (group - 1) & all)
      groups.push_back(group);
  module.walk([&](Operation *op) {
    StrategyAttr strategy = getStrategyAttr(op);
    if (!strategy)
      return;
    for (DimShardingAttr factor : strategy.getFactors()) {
      AxisList list;
      for (StringAttr entry : factor.getAxes()) {
        int64_t gap = DimShardingAttr::getGapSize(entry);
        list.push_back(gap ? -gap : mesh.find(entry.getValue()));
      }
      if (isStrided(list))
        add(list);
    }
  });
}

/// Makes `all` have each element at least as often as `some` has.
template <typename T>
static void include(const SmallVector<T> &some, SmallVector<T> &all) {
  for (T element : some)
    if (llvm::count(some, element) > llvm::count(all, element))
      all.push_back(element);
}

void StridedGaps::add(ArrayRef<int> list) {
  SmallVector<int64_t> factors;
  SmallVector<int> axes;
  for (int entry : list) {
    if (!isGap(entry))
      continue;
    int64_t gap = -entry;
    const AxisSet *group = llvm::find_if(
        groups, [&](AxisSet group) { return mesh.getNumShards(group) == gap; });
    gaps[gap] = group == groups.end() ? 0 : *group;
    llvm::append_range(axes, mesh.getList(gaps[gap]));
    for (int64_t prime = 2; gap > 1; ++prime)
      for (; gap % prime == 0; gap /= prime)
        factors.push_back(prime);
  }
  // Dimensions are cut independently: the maximum over dimensions is enough.
  include(factors, primes);
  // A list with gaps of axes that have left it cuts the dimension as these axes
  // together would.
  if (!groups.empty() && !LayoutScope{getShardingAxes(mesh)}.allows(list, mesh))
    include(axes, repeated);
}

bool StridedGaps::canMoveTo(const MeshAxes &other) const {
  for (auto [gap, axes] : gaps) {
    if (axes == 0)
      return false;
    for (AxisSet group : groups)
      if (mesh.getNumShards(group) == gap &&
          other.getNumShards(group) != other.getNumShards(axes))
        return false;
  }
  return true;
}

bool StridedGaps::compareAlike(const MeshAxes &other) const {
  for (auto [gap, axes] : gaps) {
    int64_t newGap = other.getNumShards(axes);
    for (AxisSet group : groups) {
      int64_t parts = mesh.getNumShards(group);
      int64_t newParts = other.getNumShards(group);
      if ((gap < parts) != (newGap < newParts) ||
          (gap > parts) != (newGap > newParts))
        return false;
    }
  }
  return true;
}

void StridedGaps::moveTo(const MeshAxes &other, ModuleOp module) const {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](StringAttr entry) -> Attribute {
    auto it = gaps.find(DimShardingAttr::getGapSize(entry));
    if (it == gaps.end())
      return entry;
    return DimShardingAttr::getGap(other.getNumShards(it->second),
                                   entry.getContext());
  });
  module.walk([&](Operation *op) {
    if (StrategyAttr strategy = getStrategyAttr(op))
      setStrategyAttr(op, cast<StrategyAttr>(replacer.replace(strategy)));
  });
}
