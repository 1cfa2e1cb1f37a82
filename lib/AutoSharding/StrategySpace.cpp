//===- StrategySpace.cpp - All ways to shard one op -----------------------===//

#include "shardc/AutoSharding/StrategySpace.h"

#include <map>

using namespace llvm;
using namespace shardc;

static AxisSet setOf(ArrayRef<int> axes) {
  AxisSet set = 0;
  for (int axis : axes)
    if (!isGap(axis))
      set |= axisBit(axis);
  return set;
}

/// Whether each axis after the first `numGiven` makes shards of `size` smaller.
static bool makesSmaller(int64_t size, ArrayRef<int> axes, size_t numGiven,
                         const MeshAxes &mesh) {
  int64_t shards = 1;
  for (auto [index, axis] : llvm::enumerate(axes)) {
    int64_t more = shards * mesh.getSize(axis);
    if (index >= numGiven && ceilDiv(size, more) >= ceilDiv(size, shards))
      return false;
    shards = more;
  }
  return true;
}

/// Whether a factor may be sharded over `axes`.
static bool isAllowed(const Factor &factor, ArrayRef<int> axes,
                      bool needsBlocks, const MeshAxes &mesh) {
  if (axes.empty())
    return true;
  if (factor.kind == FactorKind::Whole)
    return false;
  int64_t parts = mesh.getNumParts(axes);
  if (isStrided(axes))
    return !needsBlocks && factor.size % parts == 0;
  return makesSmaller(factor.size, axes, 0, mesh) &&
         (!factor.mustDivide || factor.size % parts == 0) &&
         (!factor.oneEach || factor.size == parts);
}

bool shardc::isContraction(const ShardingRule &rule) {
  return rule.partial == PartialRule::Multilinear &&
         rule.operands[0] != rule.operands[1];
}

bool shardc::usesEveryAxis(const ShardingRule &rule,
                           const ShardingStrategy &strategy, AxisSet axes,
                           const MeshAxes &mesh) {
  AxisSet used = 0;
  for (const AxisList &list : strategy.factors)
    used |= setOf(list);
  for (int axis : mesh.getList(axes & ~used))
    for (auto [factor, list] :
         llvm::zip_equal(rule.factors, strategy.factors)) {
      int64_t shards = mesh.getNumShards(list);
      if (factor.kind != FactorKind::Whole &&
          ceilDiv(factor.size, shards * mesh.getSize(axis)) <
              ceilDiv(factor.size, shards))
        return false;
    }
  return true;
}

namespace {

class StrategyEnumerator {
public:
  StrategyEnumerator(const ShardingRule &rule, const LayoutScope &scope,
                     const MeshAxes &mesh)
      : rule(rule), scope(scope), mesh(mesh) {
    // The axis lists that each factor may have, by their set of axes.
    std::vector<AxisList> lists =
        getAxisLists(scope.axes, scope.allowsStrided, mesh);
    for (const Factor &factor : rule.factors) {
      auto &known = allowed.emplace_back();
      for (const AxisList &list : lists)
        if (isAllowed(factor, list, rule.needsBlocks, mesh))
          known[setOf(list)].push_back(list);
    }
  }

  std::vector<ShardingStrategy> run() {
    current.factors.resize(rule.factors.size());
    placeFactor(0, scope.axes);
    return std::move(strategies);
  }

private:
  /// Assigns axis lists over axes of `free` to the factors from `index` on.
  void placeFactor(size_t index, AxisSet free) {
    if (index == rule.factors.size())
      return placePartial(free);
    const Factor &factor = rule.factors[index];
    for (const auto &[axes, lists] : allowed[index]) {
      if (axes & ~free)
        continue;
      if (axes && !followsMajor(factor, rule, current.factors, mesh))
        continue;
      for (const AxisList &list : lists) {
        current.factors[index] = list;
        placeFactor(index + 1, free & ~axes);
      }
    }
    current.factors[index].clear();
  }

  void placePartial(AxisSet free) {
    if (isContraction(rule) && !usesEveryAxis(rule, current, scope.axes, mesh))
      return;
    AxisSet first = rule.partial == PartialRule::Never ? 0 : free;
    forEachSubset(first, [&](AxisSet operands) {
      AxisSet second =
          rule.partial == PartialRule::Multilinear ? free & ~operands : 0;
      forEachSubset(second, [&](AxisSet rhs) {
        current.partial = {operands, rhs};
        strategies.push_back(current);
      });
    });
  }

  static void forEachSubset(AxisSet set, function_ref<void(AxisSet)> use) {
    for (AxisSet subset = 0;; subset = (subset - set) & set) {
      use(subset);
      if (subset == set)
        return;
    }
  }

  const ShardingRule &rule;
  const LayoutScope &scope;
  const MeshAxes &mesh;
  std::vector<std::map<AxisSet, std::vector<AxisList>>> allowed;
  ShardingStrategy current;
  std::vector<ShardingStrategy> strategies;
};

} // namespace

std::vector<ShardingStrategy> shardc::getStrategies(const ShardingRule &rule,
                                                    const LayoutScope &scope,
                                                    const MeshAxes &mesh) {
  return StrategyEnumerator(rule, scope, mesh).run();
}

std::vector<Layout> shardc::getAnnotatedLayouts(const GraphValue &value,
                                                const LayoutScope &scope,
                                                const MeshAxes &mesh) {
  AxisSet annotated = 0;
  for (const GraphDim &dim : value.dims)
    annotated |= setOf(dim.axes);
  std::vector<Layout> layouts;
  Layout current(value.shape.size());
  auto place = [&](auto &&self, size_t dim, AxisSet free) -> void {
    if (dim == value.dims.size()) {
      layouts.push_back(current);
      return;
    }
    const GraphDim &given = value.dims[dim];
    for (const AxisList &more :
         getAxisLists(given.isClosed ? 0 : free, /*allowGaps=*/false, mesh)) {
      AxisList list = given.axes;
      list.append(more.begin(), more.end());
      if (!makesSmaller(value.shape[dim], list, given.axes.size(), mesh))
        continue;
      current.dims[dim] = list;
      self(self, dim + 1, free & ~setOf(more));
    }
  };
  place(place, 0, scope.axes & ~annotated & ~value.forbidden);
  return layouts;
}
