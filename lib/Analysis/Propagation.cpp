//===- Propagation.cpp - Annotations flow through the rules ---------------===//

#include "shardc/Analysis/Propagation.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace llvm;
using namespace shardc;

static constexpr int64_t numClasses = 4;

/// Whether shards over `shards * more` are smaller than those over `shards`.
static bool makesSmaller(int64_t size, int64_t shards, int64_t more) {
  return ceilDiv(size, shards * more) < ceilDiv(size, shards);
}

Propagation::Propagation(const ShardingGraph &graph)
    : graph(graph), states(graph.values.size()) {
  for (auto [value, state] : zip_equal(graph.values, states)) {
    state.dims.resize(value.dims.size());
    for (const GraphDim &dim : value.dims)
      for (int axis : dim.axes)
        state.reserved |= axisBit(axis);
  }
}

int64_t Propagation::getRank(const GraphValue &value,
                             const GraphDim &dim) const {
  return dim.priority * numClasses +
         static_cast<int64_t>(value.annotationClass);
}

void Propagation::run() {
  std::set<int64_t> ranks;
  for (const GraphValue &value : graph.values)
    for (const GraphDim &dim : value.dims)
      if (!dim.axes.empty())
        ranks.insert(getRank(value, dim));
  for (int64_t rank : ranks) {
    activate(rank);
    bool changed = true;
    while (changed) {
      changed = false;
      for (const GraphOp &op : graph.ops)
        changed |= propagate(op, rank);
      for (const GraphOp &op : reverse(graph.ops))
        changed |= propagate(op, rank);
    }
  }
}

void Propagation::activate(int64_t rank) {
  for (auto [index, value] : enumerate(graph.values)) {
    ValueState &state = states[index];
    for (auto [dim, uses] : zip_equal(value.dims, state.dims)) {
      if (dim.axes.empty() || getRank(value, dim) != rank)
        continue;
      for (int axis : dim.axes) {
        uses.push_back({axis, rank, static_cast<int>(index)});
        state.used |= axisBit(axis);
      }
    }
  }
}

void Propagation::resolve(const GraphOp &op,
                          SmallVectorImpl<DimUses> &factors) const {
  factors.assign(op.rule.factors.size(), {});
  struct Claim {
    AxisUse use;
    int tensor;
    int factor;
    int position;
  };
  SmallVector<Claim, 8> claims;
  int tensor = 0;
  auto collect = [&](int value, const ShardingRule::TensorFactors &dims) {
    for (auto [dim, uses] : zip_equal(dims, states[value].dims)) {
      int factor = getShardedFactor(op.rule, dim);
      if (factor < 0)
        continue;
      for (auto [position, use] : enumerate(uses))
        claims.push_back({use, tensor, factor, static_cast<int>(position)});
    }
    ++tensor;
  };
  for (auto [value, dims] : zip_equal(op.operands, op.rule.operands))
    collect(value, dims);
  for (auto [value, dims] : zip_equal(op.results, op.rule.results))
    collect(value, dims);

  stable_sort(claims, [](const Claim &lhs, const Claim &rhs) {
    return std::tie(lhs.use.rank, lhs.tensor, lhs.factor, lhs.position) <
           std::tie(rhs.use.rank, rhs.tensor, rhs.factor, rhs.position);
  });
  AxisSet taken = 0;
  for (const Claim &claim : claims) {
    int axis = claim.use.axis;
    if (taken & axisBit(axis))
      continue;
    const Factor &factor = op.rule.factors[claim.factor];
    DimUses &uses = factors[claim.factor];
    int64_t shards = 1;
    for (const AxisUse &use : uses)
      shards *= graph.mesh.getSize(use.axis);
    int64_t more = graph.mesh.getSize(axis);
    if (!makesSmaller(factor.size, shards, more) ||
        (factor.mustDivide && factor.size % (shards * more) != 0))
      continue;
    uses.push_back(claim.use);
    taken |= axisBit(axis);
  }
}

bool Propagation::grow(int value, int64_t dim, const DimUses &goal,
                       int64_t rank) {
  const GraphValue &info = graph.values[value];
  ValueState &state = states[value];
  DimUses &uses = state.dims[dim];
  const GraphDim &annotation = info.dims[dim];
  if (uses.size() >= goal.size() || annotation.isClosed ||
      (uses.empty() && !annotation.axes.empty()))
    return false;
  // A weaker class does not decide where something rests.
  if (info.isAtRest &&
      rank % numClasses == static_cast<int64_t>(AnnotationClass::State) &&
      info.annotationClass != AnnotationClass::State)
    return false;
  int64_t shards = 1;
  for (auto [now, then] : zip(uses, goal)) {
    if (now.axis != then.axis)
      return false;
    shards *= graph.mesh.getSize(now.axis);
  }
  bool changed = false;
  for (const AxisUse &use : drop_begin(goal, uses.size())) {
    AxisSet bit = axisBit(use.axis);
    int64_t more = graph.mesh.getSize(use.axis);
    if ((state.used | state.reserved | info.forbidden) & bit ||
        !makesSmaller(info.shape[dim], shards, more))
      break;
    uses.push_back(use);
    state.used |= bit;
    shards *= more;
    changed = true;
  }
  return changed;
}

bool Propagation::propagate(const GraphOp &op, int64_t rank) {
  SmallVector<DimUses, 4> factors;
  resolve(op, factors);
  bool changed = false;
  auto flow = [&](int value, const ShardingRule::TensorFactors &dims) {
    for (auto [index, dim] : enumerate(dims))
      if (int factor = getShardedFactor(op.rule, dim); factor >= 0)
        changed |= grow(value, index, factors[factor], rank);
  };
  for (auto [value, dims] : zip_equal(op.results, op.rule.results))
    flow(value, dims);
  for (auto [value, dims] : zip_equal(op.operands, op.rule.operands))
    flow(value, dims);
  return changed;
}

Layout Propagation::getLayout(int value) const {
  Layout layout(states[value].dims.size());
  for (auto [uses, axes] : zip_equal(states[value].dims, layout.dims))
    for (const AxisUse &use : uses)
      axes.push_back(use.axis);
  return layout;
}

FactorAxes Propagation::getFactors(int index) const {
  const GraphOp &op = graph.ops[index];
  FactorAxes factors(op.rule.factors.size());
  if (op.kind != GraphOp::Compute) {
    Layout layout = getLayout(op.results[0]);
    for (auto [dim, axes] : zip_equal(op.rule.results[0], layout.dims))
      factors[dim[0]] = axes;
    return factors;
  }
  SmallVector<DimUses, 4> resolved;
  resolve(op, resolved);
  for (auto [uses, axes] : zip_equal(resolved, factors))
    for (const AxisUse &use : uses)
      axes.push_back(use.axis);
  return factors;
}

SmallVector<AxisUse> Propagation::getOrigins(int op) const {
  SmallVector<DimUses, 4> resolved;
  if (graph.ops[op].kind == GraphOp::Compute)
    resolve(graph.ops[op], resolved);
  else
    append_range(resolved, states[graph.ops[op].results[0]].dims);
  SmallVector<AxisUse> origins;
  for (const DimUses &uses : resolved)
    origins.append(uses.begin(), uses.end());
  sort(origins, [](const AxisUse &lhs, const AxisUse &rhs) {
    return lhs.axis < rhs.axis;
  });
  return origins;
}
