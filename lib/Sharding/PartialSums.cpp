//===- PartialSums.cpp - Where ops may work on partial sums ---------------===//
//
// The greatest fix-point: first every op runs on all partial sums that its
// operands may be; then ops are taken out until every partial value has only
// users that can take it. The remaining partial sums are then cut back where an
// earlier reduction moves no more bytes.
//
//===----------------------------------------------------------------------===//

#include "shardc/Sharding/PartialSums.h"

#include "llvm/ADT/SmallSet.h"

using namespace llvm;
using namespace shardc;

namespace {

class Analysis {
public:
  Analysis(const ShardingGraph &graph, ArrayRef<FactorAxes> factors,
           ArrayRef<Layout> layouts)
      : graph(graph), factors(factors), layouts(layouts),
        runs(graph.ops.size(), 0), produced(graph.values.size(), 0),
        kept(graph.values.size(), 0), definitions(graph.values.size(), -1),
        users(graph.values.size()) {
    for (auto [index, op] : enumerate(graph.ops)) {
      if (op.kind != GraphOp::Return)
        for (int result : op.results)
          definitions[result] = index;
      for (int operand : op.operands)
        if (users[operand].empty() ||
            users[operand].back() != static_cast<int>(index))
          users[operand].push_back(index);
    }
  }

  std::vector<PartialAxes> run() {
    for (size_t op = 0; op < graph.ops.size(); ++op) {
      AxisSet sums = getSums(op);
      runs[op] = getUpperBound(op);
      for (int result : graph.ops[op].results)
        if (definitions[result] == static_cast<int>(op))
          produced[result] = kept[result] = sums | runs[op];
    }
    shrink();
    if (cutBack())
      shrink();
    std::vector<PartialAxes> partial;
    for (auto [op, axes] : zip_equal(graph.ops, runs)) {
      AxisSet second = 0;
      if (op.rule.partial == PartialRule::Multilinear)
        second = axes & kept[op.operands[1]] & ~kept[op.operands[0]];
      partial.push_back({axes & ~second, second});
    }
    return partial;
  }

private:
  AxisSet getSums(int op) const {
    return getAxesOf(graph.ops[op].rule, factors[op], FactorKind::Sum);
  }

  AxisSet getFactorAxes(int op) const {
    AxisSet set = 0;
    for (const AxisList &axes : factors[op])
      for (int axis : axes)
        if (!isGap(axis))
          set |= axisBit(axis);
    return set;
  }

  /// The axes over which the op could run if all its operands stayed partial
  /// sums.
  AxisSet getUpperBound(int index) const {
    const GraphOp &op = graph.ops[index];
    if (op.operands.empty() || op.kind == GraphOp::Return)
      return 0;
    AxisSet first = kept[op.operands[0]];
    AxisSet sharded = getFactorAxes(index);
    bool isElementwise = op.rule.results.size() == 1;
    for (const ShardingRule::TensorFactors &dims : op.rule.operands)
      isElementwise &= dims == op.rule.results[0];
    switch (op.rule.partial) {
    case PartialRule::Never:
      return 0;
    case PartialRule::Additive:
      for (int operand : drop_begin(op.operands))
        first &= kept[operand];
      // An op cannot work on partial sums over the axes of its shards, since
      // that would undo the shards.
      return isElementwise ? first : first & ~sharded;
    case PartialRule::Multilinear: {
      AxisSet second = kept[op.operands[1]];
      AxisSet one = first ^ second;
      if (!isElementwise)
        return one & ~sharded;
      // The other operand must not be sharded over the axis.
      AxisSet conflict = (first & layouts[op.operands[1]].getAxes()) |
                         (second & layouts[op.operands[0]].getAxes());
      return one & ~conflict;
    }
    case PartialRule::FirstOperand:
      return first &
             ~(kept[op.operands[1]] | layouts[op.operands[1]].getAxes());
    }
    return 0;
  }

  /// The operands that are partial over `axis` for op `index`.
  SmallVector<int, 2> getPartialOperands(int index, AxisSet axis) const {
    SmallVector<int, 2> partial;
    for (int operand : graph.ops[index].operands)
      if ((produced[operand] & axis) && !is_contained(partial, operand))
        partial.push_back(operand);
    return partial;
  }

  /// Takes out ops and values until they agree.
  void shrink() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t value = 0; value < graph.values.size(); ++value) {
        AxisSet keep = kept[value] & produced[value];
        if (users[value].empty())
          keep = 0;
        for (int user : users[value])
          keep &= runs[user];
        changed |= keep != kept[value];
        kept[value] = keep;
      }
      for (size_t op = 0; op < graph.ops.size(); ++op) {
        AxisSet run = runs[op] ? runs[op] & getBound(op) : 0;
        changed |= run != runs[op];
        runs[op] = run;
        for (int result : graph.ops[op].results)
          if (definitions[result] == static_cast<int>(op))
            produced[result] = getSums(op) | run;
      }
    }
  }

  /// As getUpperBound, for the ops kept so far; of two factors of a GEMM the
  /// partial one does not change.
  AxisSet getBound(int index) const {
    const GraphOp &op = graph.ops[index];
    AxisSet first = kept[op.operands[0]];
    if (op.rule.partial == PartialRule::Additive)
      for (int operand : drop_begin(op.operands))
        first &= kept[operand];
    if (op.rule.partial == PartialRule::Multilinear)
      first |= kept[op.operands[1]];
    return first;
  }

  /// Bytes of a step that reduces `value` over `axis`; scattering is half of
  /// reducing.
  double getReductionBytes(int value, AxisSet axis) const {
    const GraphValue &info = graph.values[value];
    Layout layout = layouts[value];
    bool scatters = layout.getAxes() & axis;
    for (AxisList &axes : layout.dims)
      erase_if(axes, [&](int candidate) {
        return !isGap(candidate) && (axisBit(candidate) & axis);
      });
    double bytes =
        layout.getLocalElements(info.shape, graph.mesh) * info.elementBytes;
    return info.repeats * (scatters ? bytes : 2 * bytes);
  }

  /// Moves reductions to operands where that costs no more. Goes from the last
  /// value to the first: `costs` has the cost below a value that stays partial.
  bool cutBack() {
    bool changed = false;
    for (int axis = 0; axis < graph.mesh.getNumAxes(); ++axis) {
      AxisSet bit = axisBit(axis);
      std::vector<double> costs(graph.values.size(), 0);
      for (int op = graph.ops.size() - 1; op >= 0; --op)
        for (int value : graph.ops[op].results)
          if (definitions[value] == op && (produced[value] & bit))
            changed |= cutBack(value, bit, costs);
    }
    return changed;
  }

  bool cutBack(int value, AxisSet bit, std::vector<double> &costs) {
    double here = getReductionBytes(value, bit);
    if (!(kept[value] & bit)) {
      costs[value] = here;
      return false;
    }
    double below = 0;
    for (int user : users[value])
      for (int result : graph.ops[user].results)
        below += costs[result] / getPartialOperands(user, bit).size();
    costs[value] = std::min(here, below);
    if (here > below)
      return false;
    kept[value] &= ~bit;
    return true;
  }

  const ShardingGraph &graph;
  ArrayRef<FactorAxes> factors;
  ArrayRef<Layout> layouts;
  /// Per op: axes over which it works on partial sums.
  std::vector<AxisSet> runs;
  /// Per value: axes over which it is produced, and handed on, as partial sums.
  std::vector<AxisSet> produced, kept;
  std::vector<int> definitions;
  std::vector<SmallVector<int, 2>> users;
};

} // namespace

std::vector<PartialAxes> shardc::findPartialSums(const ShardingGraph &graph,
                                                 ArrayRef<FactorAxes> factors,
                                                 ArrayRef<Layout> layouts) {
  return Analysis(graph, factors, layouts).run();
}
