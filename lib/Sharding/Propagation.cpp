//===- Propagation.cpp - Annotations flow through the rules ---------------===//

#include "shardc/Sharding/Propagation.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
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
  int numAxes = 0;
  for (int axis = 0; axis < graph.mesh.getNumAxes(); ++axis)
    numAxes += graph.mesh.getSize(axis) > 1;
  allowsStrided = numAxes <= maxStridedAxes;
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
    spread(rank, [](const GraphOp &op) { return op.part == Part::Update; });
    spread(rank, [](const GraphOp &) { return true; });
  }
}

void Propagation::spread(int64_t rank,
                         function_ref<bool(const GraphOp &)> isMeant) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (const GraphOp &op : graph.ops)
      changed |= isMeant(op) && propagate(op, rank);
    for (const GraphOp &op : reverse(graph.ops))
      changed |= isMeant(op) && propagate(op, rank);
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
      if (getShardedFactor(op.rule, dim) < 0)
        continue;
      const int *factor = dim.begin();
      int64_t parts = 1;
      int position = 0;
      for (const AxisUse &use : uses) {
        // Behind the axes that leave one index of a factor come those of the
        // next one.
        while (parts == op.rule.factors[*factor].size &&
               factor + 1 != dim.end() &&
               op.rule.factors[factor[1]].kind != FactorKind::Whole) {
          ++factor;
          parts = 1;
          position = 0;
        }
        claims.push_back({use, tensor, *factor, position++});
        parts *= getParts(use.axis);
      }
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
  // Of two factors that an axis could shard with equal right, it shards that of
  // more tensors.
  struct Votes {
    int64_t rank;
    int axis;
    int factor;
    int64_t count;
  };
  SmallVector<Votes, 8> votes;
  for (const Claim &claim : claims) {
    auto same = find_if(votes, [&](const Votes &each) {
      return each.rank == claim.use.rank && each.axis == claim.use.axis &&
             each.factor == claim.factor;
    });
    if (same != votes.end())
      ++same->count;
    else
      votes.push_back({claim.use.rank, claim.use.axis, claim.factor, 1});
  }
  auto isOutvoted = [&](const Claim &claim) {
    int64_t own = 0, most = 0;
    for (const Votes &each : votes)
      if (each.rank == claim.use.rank && each.axis == claim.use.axis) {
        most = std::max(most, each.count);
        if (each.factor == claim.factor)
          own = each.count;
      }
    return own < most;
  };
  AxisSet taken = 0;
  // By tensor and factor: the parts of a tensor by axes that the factor lacks.
  // Gathering these axes leaves strided shards.
  std::map<std::pair<int, int>, int64_t> missing;
  auto isAlone = [&](const Factor &factor) {
    return factor.major < 0 || (!hasGap(factors[factor.major]) &&
                                getParts(factors[factor.major]) ==
                                    op.rule.factors[factor.major].size);
  };
  // A factor waits for its major one, which a weaker claim may shard.
  std::stable_partition(claims.begin(), claims.end(), [&](const Claim &claim) {
    return op.rule.factors[claim.factor].major < 0;
  });
  for (const Claim &claim : claims) {
    int axis = claim.use.axis;
    int64_t &gap =
        missing.try_emplace({claim.tensor, claim.factor}, 1).first->second;
    DimUses &uses = factors[claim.factor];
    bool isHere =
        any_of(uses, [&](const AxisUse &use) { return use.axis == axis; });
    if (isGap(axis) || (taken & axisBit(axis)) || isOutvoted(claim)) {
      if (!isHere)
        gap *= getParts(axis);
      continue;
    }
    // This tensor may have an axis that another one lost.
    if (size_t position = claim.position;
        position < uses.size() &&
        uses[position].axis == -graph.mesh.getSize(axis)) {
      uses[position] = claim.use;
      taken |= axisBit(axis);
      continue;
    }
    const Factor &factor = op.rule.factors[claim.factor];
    if (!isAlone(factor))
      continue;
    int64_t parts = getParts(uses);
    int64_t more = graph.mesh.getSize(axis);
    bool isStrided = gap > 1 && allowsStrided && !op.rule.needsBlocks &&
                     factor.size % (parts * gap * more) == 0;
    if (isStrided) {
      uses.push_back(claim.use);
      uses.back().axis = -gap;
    } else if (!makesSmaller(factor.size, parts, more) ||
               ((factor.mustDivide || hasGap(uses)) &&
                factor.size % (parts * more) != 0)) {
      continue;
    }
    gap = 1;
    uses.push_back(claim.use);
    taken |= axisBit(axis);
  }
  for (auto [factor, uses] : zip_equal(op.rule.factors, factors))
    if (factor.oneEach && getParts(uses) != factor.size)
      uses.clear();
}

bool Propagation::hasGap(ArrayRef<AxisUse> uses) {
  return any_of(uses, [](const AxisUse &use) { return isGap(use.axis); });
}

int64_t Propagation::getParts(int entry) const {
  return isGap(entry) ? -entry : graph.mesh.getSize(entry);
}

int64_t Propagation::getParts(ArrayRef<AxisUse> uses) const {
  int64_t parts = 1;
  for (const AxisUse &use : uses)
    parts *= getParts(use.axis);
  return parts;
}

bool Propagation::grow(int value, int64_t dim, const DimUses &goal,
                       int64_t rank) {
  const GraphValue &info = graph.values[value];
  ValueState &state = states[value];
  DimUses &uses = state.dims[dim];
  const GraphDim &annotation = info.dims[dim];
  if (annotation.isClosed || (uses.empty() && !annotation.axes.empty()))
    return false;
  // A weaker class does not decide a storage sharding.
  if (info.isStored &&
      rank % numClasses == static_cast<int64_t>(AnnotationClass::State) &&
      info.annotationClass != AnnotationClass::State)
    return false;
  auto isFree = [&](int axis) {
    return !((state.used | state.reserved | info.forbidden) & axisBit(axis));
  };
  // The goal must begin with the present axes, where axes may fill a gap.
  DimUses grown;
  const AxisUse *then = goal.begin();
  for (const AxisUse &now : uses) {
    int64_t gap = isGap(now.axis) ? -now.axis : 1;
    while (gap > 1 && then != goal.end() && !isGap(then->axis) &&
           isFree(then->axis) && gap % getParts(then->axis) == 0) {
      gap /= getParts(then->axis);
      grown.push_back(*then++);
    }
    if (isGap(now.axis) && gap == 1)
      continue;
    if (then == goal.end() || then->axis != now.axis)
      return false;
    grown.push_back(*then++);
  }
  int64_t parts = getParts(grown);
  for (const AxisUse &use : make_range(then, goal.end())) {
    int64_t more = getParts(use.axis);
    // Storage shardings are blocks; a gap has no effect before an axis follows
    // it.
    if (isGap(use.axis) && (info.isStored || info.isResult))
      break;
    if (!isGap(use.axis) &&
        (!isFree(use.axis) || !makesSmaller(info.shape[dim], parts, more) ||
         (hasGap(grown) && info.shape[dim] % (parts * more) != 0)))
      break;
    grown.push_back(use);
    parts *= more;
  }
  while (!grown.empty() && isGap(grown.back().axis))
    grown.pop_back();
  bool changed = !equal(grown, uses, [](const AxisUse &a, const AxisUse &b) {
    return a.axis == b.axis;
  });
  uses = std::move(grown);
  for (const AxisUse &use : uses)
    if (!isGap(use.axis))
      state.used |= axisBit(use.axis);
  return changed;
}

bool Propagation::propagate(const GraphOp &op, int64_t rank) {
  SmallVector<DimUses, 4> factors;
  resolve(op, factors);
  bool changed = false;
  auto flow = [&](int value, const ShardingRule::TensorFactors &dims) {
    for (auto [index, dim] : enumerate(dims)) {
      if (getShardedFactor(op.rule, dim) < 0)
        continue;
      DimUses goal;
      for (int factor : dim)
        append_range(goal, factors[factor]);
      changed |= grow(value, index, goal, rank);
    }
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
    copy_if(uses, std::back_inserter(origins),
            [](const AxisUse &use) { return !isGap(use.axis); });
  sort(origins, [](const AxisUse &lhs, const AxisUse &rhs) {
    return lhs.axis < rhs.axis;
  });
  return origins;
}
