//===- ReshardPlannerTest.cpp - Resharding against naive oracles ----------===//
//
// Two oracles: relaxation to a fix-point over all layouts for the cost, and a
// simulation of every device for the meaning of each step, on meshes and sizes
// that do and do not divide.
//
//===----------------------------------------------------------------------===//

#include "shardc/Reshard/ReshardPlanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace shardc;

namespace {

constexpr double padding = NAN;

AxisSet allAxes(const MeshAxes &mesh) {
  return AxisSet(-1) >> (64 - mesh.getNumAxes());
}

/// One device's shard of a matrix.
struct Shard {
  int64_t rows = 0, columns = 0;
  std::vector<double> data;
  double &at(int64_t row, int64_t column) {
    return data[row * columns + column];
  }
};

/// All devices of a mesh, each with its shard of one matrix.
class Simulation {
public:
  Simulation(const MeshAxes &mesh, llvm::ArrayRef<int64_t> shape,
             const Layout &layout)
      : mesh(mesh), shape(shape), layout(layout) {
    for (int64_t device = 0; device < numDevices(); ++device)
      shards.push_back(expected(device, layout, layout.unreduced));
  }

  void run(const ReshardStep &step) {
    std::vector<Shard> next;
    for (int64_t device = 0; device < numDevices(); ++device)
      next.push_back(runOn(device, step));
    shards = std::move(next);
    layout = step.after;
  }

  /// The first device whose valid elements are wrong, or -1.
  int64_t findError(AxisSet unreducedAtStart) {
    for (int64_t device = 0; device < numDevices(); ++device) {
      Shard want = expected(device, layout, unreducedAtStart);
      if (want.rows != shards[device].rows ||
          want.columns != shards[device].columns)
        return device;
      for (size_t i = 0; i < want.data.size(); ++i)
        if (!std::isnan(want.data[i]) &&
            !(want.data[i] == shards[device].data[i]))
          return device;
    }
    return -1;
  }

private:
  int64_t numDevices() const { return mesh.getNumShards(allAxes(mesh)); }

  int64_t coordinate(int64_t device, int axis) const {
    for (int other = mesh.getNumAxes() - 1; other > axis; --other)
      device /= mesh.getSize(other);
    return device % mesh.getSize(axis);
  }

  int64_t indexOver(int64_t device, llvm::ArrayRef<int> axes) const {
    int64_t index = 0;
    for (int axis : axes)
      index = index * mesh.getSize(axis) + coordinate(device, axis);
    return index;
  }

  /// Devices that agree with `device` outside `axes`, in group order.
  std::vector<int64_t> group(int64_t device, llvm::ArrayRef<int> axes) const {
    std::vector<int64_t> members(mesh.getNumShards(axes));
    for (int64_t other = 0; other < numDevices(); ++other) {
      bool same = true;
      for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
        same &= llvm::is_contained(axes, axis) ||
                coordinate(other, axis) == coordinate(device, axis);
      if (same)
        members[indexOver(other, axes)] = other;
    }
    return members;
  }

  /// The value of an element on a device: different along unreduced axes.
  double element(int64_t row, int64_t column, int64_t device,
                 AxisSet unreduced) const {
    double value = row * 97 + column * 13 + 1;
    for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
      if (unreduced & axisBit(axis))
        value = value * 5 + coordinate(device, axis);
    return value;
  }

  Shard expected(int64_t device, const Layout &where, AxisSet start) const {
    auto local = where.getLocalShape(shape, mesh);
    Shard shard{local[0], local[1],
                std::vector<double>(local[0] * local[1], padding)};
    AxisSet reduced = start & ~where.unreduced;
    // The global index of a local one: gaps are digits of it.
    auto globalIndex = [&](int dim, int64_t index) {
      int64_t gaps = 1, rest = local[dim];
      for (int entry : where.dims[dim])
        gaps *= isGap(entry) ? -entry : 1;
      rest /= gaps;
      int64_t global = 0, run = index / rest;
      for (int entry : where.dims[dim]) {
        if (isGap(entry)) {
          gaps /= -entry;
          global = global * -entry + run / gaps;
          run %= gaps;
        } else {
          global = global * mesh.getSize(entry) + coordinate(device, entry);
        }
      }
      return global * rest + index % rest;
    };
    for (int64_t row = 0; row < shard.rows; ++row)
      for (int64_t column = 0; column < shard.columns; ++column) {
        int64_t r = globalIndex(0, row), c = globalIndex(1, column);
        if (r >= shape[0] || c >= shape[1])
          continue;
        double sum = 0;
        for (int64_t member : group(device, mesh.getList(reduced)))
          sum += element(r, c, member, start);
        shard.at(row, column) = sum;
      }
    return shard;
  }

  static int64_t &extent(Shard &shard, int dim) {
    return dim == 0 ? shard.rows : shard.columns;
  }

  static Shard make(int64_t rows, int64_t columns) {
    return {rows, columns, std::vector<double>(rows * columns, padding)};
  }

  /// Part `index` of `n` of each of the `runs` of `from` along `dim`.
  static Shard part(Shard from, int dim, int64_t runs, int64_t index,
                    int64_t n) {
    int64_t inner = extent(from, dim) / runs, block = ceilDiv(inner, n);
    Shard to = dim == 0 ? make(runs * block, from.columns)
                        : make(from.rows, runs * block);
    for (int64_t row = 0; row < to.rows; ++row)
      for (int64_t column = 0; column < to.columns; ++column) {
        int64_t along = dim == 0 ? row : column;
        int64_t inRun = index * block + along % block;
        if (inRun >= inner)
          continue;
        int64_t source = along / block * inner + inRun;
        to.at(row, column) =
            from.at(dim == 0 ? source : row, dim == 1 ? source : column);
      }
    return to;
  }

  /// The runs of `parts` in order along `dim`, cut to `size`.
  static Shard concatenate(std::vector<Shard> parts, int dim, int64_t runs,
                           int64_t size) {
    int64_t block = extent(parts[0], dim) / runs, inner = size / runs;
    Shard to =
        dim == 0 ? make(size, parts[0].columns) : make(parts[0].rows, size);
    for (int64_t row = 0; row < to.rows; ++row)
      for (int64_t column = 0; column < to.columns; ++column) {
        int64_t along = dim == 0 ? row : column;
        int64_t inRun = along % inner;
        int64_t source = along / inner * block + inRun % block;
        to.at(row, column) = parts[inRun / block].at(
            dim == 0 ? source : row, dim == 1 ? source : column);
      }
    return to;
  }

  Shard sum(int64_t device, llvm::ArrayRef<int> axes) {
    Shard total = shards[device];
    std::fill(total.data.begin(), total.data.end(), 0);
    for (int64_t member : group(device, axes))
      for (size_t i = 0; i < total.data.size(); ++i)
        total.data[i] += shards[member].data[i];
    return total;
  }

  Shard runOn(int64_t device, const ReshardStep &step) {
    int64_t n = mesh.getNumShards(step.axes);
    int64_t index = indexOver(device, step.axes);
    auto after = step.after.getLocalShape(shape, mesh);
    switch (step.kind) {
    case ReshardStep::Slice:
      return part(shards[device], step.dim, step.dimRuns, index, n);
    case ReshardStep::AllReduce:
      return sum(device, step.axes);
    case ReshardStep::ReduceScatter:
      return part(sum(device, step.axes), step.dim, step.dimRuns, index, n);
    case ReshardStep::AllGather: {
      std::vector<Shard> parts;
      for (int64_t member : group(device, step.axes))
        parts.push_back(shards[member]);
      return concatenate(parts, step.dim, step.dimRuns, after[step.dim]);
    }
    case ReshardStep::AllToAll: {
      std::vector<Shard> parts;
      for (int64_t member : group(device, step.axes))
        parts.push_back(part(shards[member], step.dim, step.dimRuns, index, n));
      return concatenate(parts, step.concatDim, step.concatRuns,
                         after[step.concatDim]);
    }
    case ReshardStep::CollectivePermute:
      for (int64_t member : group(device, step.axes))
        if (indexOver(member, step.axes) == indexOver(device, step.targetAxes))
          return shards[member];
    }
    return {};
  }

  const MeshAxes &mesh;
  llvm::ArrayRef<int64_t> shape;
  Layout layout;
  std::vector<Shard> shards;
};

using Costs = std::map<Layout, double>;

/// The cost of every layout from those in `costs`, by relaxing all steps until
/// nothing changes.
Costs relax(const MeshAxes &mesh, Costs costs, LayoutScope scope,
            llvm::ArrayRef<int64_t> shape) {
  bool changed = true;
  while (changed) {
    changed = false;
    Costs known = costs;
    for (const auto &[layout, cost] : known)
      for (const ReshardStep &step : getStepsFrom(layout, scope, mesh)) {
        auto bytes = getStepBytes(step, layout, shape, 4, mesh);
        if (!bytes)
          continue;
        auto [it, isNew] = costs.try_emplace(step.after, cost + *bytes);
        if (!isNew && it->second <= cost + *bytes)
          continue;
        it->second = cost + *bytes;
        changed = true;
      }
  }
  return costs;
}

/// Puts each axis in a random place, and leaves some with only a gap.
Layout randomLayout(const MeshAxes &mesh, std::mt19937 &random,
                    AxisSet mayBeUnreduced, bool mayBeStrided = false) {
  Layout layout(2);
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    axes.push_back(axis);
  std::shuffle(axes.begin(), axes.end(), random);
  for (int axis : axes) {
    int place = random() % (mayBeStrided ? 6 : 4);
    if (place < 2)
      layout.dims[place].push_back(axis);
    else if (place == 2 && (mayBeUnreduced & axisBit(axis)))
      layout.unreduced |= axisBit(axis);
    else if (place > 3)
      layout.dims[place - 4].push_back(-mesh.getSize(axis));
  }
  for (AxisList &dim : layout.dims)
    normalizeGaps(dim);
  return layout;
}

void expectPlan(const MeshAxes &mesh, const Layout &from, const Layout &to,
                llvm::ArrayRef<int64_t> shape, bool checkCost,
                bool usesAllAxes) {
  ReshardPlanner planner(mesh, usesAllAxes);
  ReshardPlan plan = planner.plan(from, to, shape, 4);
  std::string what = toString(from, mesh) + " -> " + toString(to, mesh) +
                     " of " + std::to_string(shape[0]) + "x" +
                     std::to_string(shape[1]);
  Simulation simulation(mesh, shape, from);
  for (const ReshardStep &step : plan.steps) {
    simulation.run(step);
    ASSERT_EQ(simulation.findError(from.unreduced), -1)
        << what << " after " << toString(step.after, mesh);
  }
  EXPECT_EQ(plan.steps.empty() ? from : plan.steps.back().after, to) << what;
  if (checkCost) {
    LayoutScope scope{allAxes(mesh)};
    if (!usesAllAxes && !from.isStrided() && !to.isStrided())
      scope.axes = from.getAxes() | from.unreduced | to.getAxes();
    double best = relax(mesh, {{from, 0}}, scope, shape)[to];
    // Every step is rounded up to whole bytes.
    EXPECT_GE(plan.wireBytes, best - 1e-6) << what;
    EXPECT_LE(plan.wireBytes, best + plan.steps.size()) << what;
  }
}

MeshAxes square() { return MeshAxes({{"x", 2}, {"y", 2}}); }

Layout layoutOf(llvm::ArrayRef<AxisList> dims, AxisSet unreduced = 0) {
  Layout layout;
  layout.dims.assign(dims.begin(), dims.end());
  layout.unreduced = unreduced;
  return layout;
}

std::vector<ReshardStep::Kind> kindsOf(const ReshardPlan &plan) {
  std::vector<ReshardStep::Kind> kinds;
  for (const ReshardStep &step : plan.steps)
    kinds.push_back(step.kind);
  return kinds;
}

TEST(ReshardPlanner, SameLayoutNeedsNothing) {
  ReshardPlanner planner(square());
  Layout layout = layoutOf({{0}, {1}});
  EXPECT_TRUE(planner.plan(layout, layout, {8, 8}, 4).steps.empty());
}

// Row 24 of the scenarios.
TEST(ReshardPlanner, UnitCases) {
  ReshardPlanner planner(square());
  using Kinds = std::vector<ReshardStep::Kind>;
  int64_t shape[] = {16, 16};
  EXPECT_EQ(
      kindsOf(planner.plan(layoutOf({{0}, {}}), layoutOf({{}, {0}}), shape, 4)),
      Kinds{ReshardStep::AllToAll});
  EXPECT_EQ(
      kindsOf(planner.plan(layoutOf({{0}, {}}), layoutOf({{1}, {}}), shape, 4)),
      Kinds{ReshardStep::CollectivePermute});
  EXPECT_EQ(kindsOf(planner.plan(layoutOf({{0, 1}, {}}), layoutOf({{1, 0}, {}}),
                                 shape, 4)),
            Kinds{ReshardStep::CollectivePermute});
  EXPECT_EQ(planner.plan(layoutOf({{}, {}}), layoutOf({{0}, {1}}), shape, 4)
                .wireBytes,
            0);
  EXPECT_EQ(kindsOf(planner.plan(layoutOf({{}, {}}, 3), layoutOf({{1}, {}}),
                                 shape, 4)),
            (Kinds{ReshardStep::ReduceScatter, ReshardStep::AllReduce}));
}

/// Every layout of a matrix over `mesh`, strided ones too.
std::vector<Layout> allLayouts(const MeshAxes &mesh) {
  LayoutGraph graph(std::make_shared<LayoutSteps>(mesh), {allAxes(mesh)}, 2);
  graph.enumerate();
  std::vector<Layout> layouts;
  for (int id = 0; id < graph.getNumLayouts(); ++id)
    layouts.push_back(graph.getLayout(id));
  return layouts;
}

// Two axes on two dimensions: each in one of four places makes 16, two of them
// with both axes on one dimension, in either order: 18. With a gap of 2 before
// one axis, which has two dimensions, the other axis in one of the three places
// that remain: 12 more, and one axis behind a gap on each dimension: 2 more.
TEST(ReshardPlanner, NumberOfLayouts) {
  EXPECT_EQ(allLayouts(square()).size(), 32u);
}

TEST(ReshardPlanner, AgreesWithOraclesOnEveryPairOfSmallMesh) {
  MeshAxes mesh = square();
  std::vector<Layout> layouts = allLayouts(mesh);
  for (const Layout &from : layouts)
    for (const Layout &to : layouts)
      if (!(to.unreduced & ~from.unreduced)) {
        expectPlan(mesh, from, to, {8, 4}, /*checkCost=*/true, false);
        expectPlan(mesh, from, to, {8, 4}, /*checkCost=*/true, true);
        if (!from.isStrided() && !to.isStrided())
          expectPlan(mesh, from, to, {5, 3}, /*checkCost=*/true, false);
      }
}

TEST(ReshardPlanner, AgreesWithOraclesOnRandomPairs) {
  std::mt19937 random(7);
  const MeshAxes meshes[] = {MeshAxes({{"a", 4}, {"b", 2}}),
                             MeshAxes({{"a", 3}, {"b", 2}}),
                             MeshAxes({{"a", 2}, {"b", 3}, {"c", 2}}),
                             MeshAxes({{"a", 2}, {"b", 2}, {"c", 2}})};
  for (int round = 0; round < 200; ++round) {
    const MeshAxes &mesh = meshes[random() % 4];
    Layout from = randomLayout(mesh, random, AxisSet(-1));
    Layout to = randomLayout(mesh, random, from.unreduced);
    int64_t shape[] = {int64_t(random() % 13 + 1), int64_t(random() % 25 + 1)};
    expectPlan(mesh, from, to, shape, /*checkCost=*/round % 10 == 0, false);
  }
}

TEST(ReshardPlanner, AgreesWithOraclesOnRandomStridedPairs) {
  std::mt19937 random(11);
  const MeshAxes meshes[] = {MeshAxes({{"a", 4}, {"b", 2}}),
                             MeshAxes({{"a", 2}, {"b", 3}, {"c", 2}})};
  for (int round = 0; round < 60; ++round) {
    const MeshAxes &mesh = meshes[random() % 2];
    Layout from = randomLayout(mesh, random, AxisSet(-1), true);
    Layout to = randomLayout(mesh, random, from.unreduced, true);
    expectPlan(mesh, from, to, {24, 48}, /*checkCost=*/round % 15 == 0, true);
  }
}

/// The cheapest tree by trying, over all layouts, every way to fork.
double naiveTree(const MeshAxes &mesh, const Layout &from,
                 llvm::ArrayRef<Layout> wanted, llvm::ArrayRef<int64_t> shape,
                 int numForks) {
  LayoutScope scope{allAxes(mesh)};
  std::vector<Layout> places = allLayouts(mesh);
  std::map<Layout, Costs> distances;
  for (const Layout &place : places)
    distances[place] = relax(mesh, {{place, 0}}, scope, shape);
  auto get = [&](const Layout &a, const Layout &b) {
    auto it = distances[a].find(b);
    return it == distances[a].end() ? INFINITY : it->second;
  };
  // Make some layouts that nobody wants, then each wanted one, in any order.
  double best = INFINITY;
  auto deliver = [&](auto &&self, std::vector<Layout> made,
                     std::vector<Layout> open, int forks, double cost) -> void {
    if (cost >= best)
      return;
    if (open.empty()) {
      best = cost;
      return;
    }
    auto add = [&](const Layout &layout, std::vector<Layout> rest, int left) {
      double price = INFINITY;
      for (const Layout &source : made)
        price = std::min(price, get(source, layout));
      std::vector<Layout> next = made;
      next.push_back(layout);
      self(self, next, std::move(rest), left, cost + price);
    };
    for (size_t i = 0; i < open.size(); ++i) {
      std::vector<Layout> rest = open;
      rest.erase(rest.begin() + i);
      add(open[i], rest, forks);
    }
    if (forks > 0)
      for (const Layout &place : places)
        add(place, open, forks - 1);
  };
  deliver(deliver, {from}, std::vector<Layout>(wanted.begin(), wanted.end()),
          numForks, 0);
  return best;
}

TEST(ReshardPlanner, TreesAgreeWithOracle) {
  MeshAxes mesh = square();
  std::mt19937 random(3);
  std::vector<Layout> layouts = allLayouts(mesh);
  int64_t shape[] = {8, 16};
  for (int round = 0; round < 40; ++round) {
    Layout from = layouts[random() % layouts.size()];
    std::vector<Layout> wanted;
    int count = 2 + round % 2;
    while (static_cast<int>(wanted.size()) < count) {
      const Layout &layout = layouts[random() % layouts.size()];
      if (!(layout.unreduced & ~from.unreduced) && layout != from &&
          !llvm::is_contained(wanted, layout))
        wanted.push_back(layout);
    }
    ReshardPlanner planner(mesh, /*usesAllAxes=*/true);
    double cost = 0;
    auto tree = planner.planTree(from, wanted, shape, 4);
    for (const Delivery &delivery : tree)
      cost +=
          planner
              .plan(delivery.source < 0 ? from : tree[delivery.source].layout,
                    delivery.layout, shape, 4)
              .wireBytes;
    EXPECT_EQ(cost, naiveTree(mesh, from, wanted, shape, count - 1));
  }
}

TEST(ReshardPlanner, TreeServesTheWiderLayoutFromTheNarrowerOne) {
  ReshardPlanner planner(MeshAxes({{"a", 4}}));
  Layout partial = layoutOf({{}, {}}, 1);
  Layout wanted[] = {layoutOf({{}, {}}), layoutOf({{0}, {}})};
  // The sum is scattered once; the whole is gathered from the shards, or the
  // shards cut from the whole, but never reduced twice.
  int fromStart = 0;
  for (const Delivery &delivery : planner.planTree(partial, wanted, {8, 8}, 4))
    fromStart += delivery.source < 0;
  EXPECT_EQ(fromStart, 1);
}

/// A mesh of `count` axes of two devices.
MeshAxes manyAxes(int count) {
  std::vector<std::pair<std::string, int64_t>> axes;
  for (int axis = 0; axis < count; ++axis)
    axes.push_back({"a" + std::to_string(axis), 2});
  return MeshAxes(axes);
}

TEST(ReshardPlanner, AxesThatMoveTogetherCostNoSearch) {
  constexpr int count = 20;
  MeshAxes mesh = manyAxes(count);
  ReshardPlanner planner(mesh);
  AxisList all;
  for (int axis = 0; axis < count; ++axis)
    all.push_back(axis);
  AxisSet sums = getAxisSet(all);
  int64_t shape[] = {int64_t(1) << count, int64_t(1) << count};
  Layout whole = layoutOf({{}, {}}), rows = layoutOf({all, {}}),
         columns = layoutOf({{}, all}), partial = layoutOf({{}, {}}, sums);
  using Kind = ReshardStep::Kind;
  using testing::ElementsAre;
  EXPECT_THAT(kindsOf(planner.plan(partial, whole, shape, 4)),
              ElementsAre(Kind::AllReduce));
  EXPECT_THAT(kindsOf(planner.plan(partial, rows, shape, 4)),
              ElementsAre(Kind::ReduceScatter));
  EXPECT_THAT(kindsOf(planner.plan(rows, whole, shape, 4)),
              ElementsAre(Kind::AllGather));
  EXPECT_THAT(kindsOf(planner.plan(rows, columns, shape, 4)),
              ElementsAre(Kind::AllToAll));
  EXPECT_THAT(kindsOf(planner.plan(whole, rows, shape, 4)),
              ElementsAre(Kind::Slice));
}

TEST(ReshardPlanner, BundlesOfManyAxesAreMovedCorrectly) {
  MeshAxes mesh = manyAxes(5);
  const std::pair<Layout, Layout> cases[] = {
      {layoutOf({{0, 1}, {2, 3}}, axisBit(4)), layoutOf({{0, 1, 2, 3}, {}})},
      {layoutOf({{0, 1, 2, 3, 4}, {}}), layoutOf({{0, 1}, {2, 3, 4}})},
      {layoutOf({{3, 4}, {0, 1, 2}}), layoutOf({{0, 1, 2}, {3, 4}})},
      {layoutOf({{}, {}}, 31), layoutOf({{0, 1, 2}, {3, 4}})},
      // Nothing moves together.
      {layoutOf({{0, 1, 2}, {3, 4}}), layoutOf({{4, 2, 0}, {3, 1}})},
  };
  for (const auto &[from, to] : cases)
    expectPlan(mesh, from, to, {32, 32}, /*checkCost=*/false, false);
}

TEST(ReshardPlanner, RandomPairsOverManyAxesAreMovedCorrectly) {
  std::mt19937 random(29);
  MeshAxes mesh = manyAxes(5);
  for (int round = 0; round < 12; ++round) {
    bool isStrided = round % 2 == 1;
    Layout from = randomLayout(mesh, random, AxisSet(-1), isStrided);
    Layout to = randomLayout(mesh, random, from.unreduced, isStrided);
    expectPlan(mesh, from, to, {32, 32}, /*checkCost=*/false, round % 3 == 0);
  }
}

// Axes 1, 2 and 4 are in no layout, but only one of them can have left the gap.
TEST(ReshardPlanner, GapsNarrowerThanWhatMovesTogetherAreReached) {
  MeshAxes mesh = manyAxes(5);
  Layout strided = layoutOf({{0, -2, 3}, {}}), whole = layoutOf({{}, {}});
  expectPlan(mesh, whole, strided, {8, 4}, /*checkCost=*/false, false);
  expectPlan(mesh, strided, whole, {8, 4}, /*checkCost=*/false, false);
}

TEST(ReshardPlanner, AnyLayoutOfManyAxesIsReached) {
  constexpr int count = 12;
  MeshAxes mesh = manyAxes(count);
  Layout from(2), to(2);
  for (int axis = 0; axis < count; ++axis) {
    from.dims[axis % 2].push_back(axis);
    to.dims[axis % 3 != 0].push_back(count - 1 - axis);
  }
  ReshardPlan plan = ReshardPlanner(mesh).plan(from, to, {4096, 4096}, 4);
  ASSERT_FALSE(plan.steps.empty());
  EXPECT_EQ(plan.steps.back().after, to);
}

// Eight rows on four devices are blocks of two, and on 36 blocks of one: no way
// of few axes at a time leads from one to the other.
TEST(ReshardPlanner, LayoutsThatNoFewAxesLeadToAreReached) {
  MeshAxes mesh({{"a", 2}, {"b", 2}, {"c", 3}, {"d", 3}});
  Layout whole = layoutOf({{}, {}}), rows = layoutOf({{0, 1, 2, 3}, {}});
  ReshardPlanner planner(mesh);
  ReshardPlan plan = planner.plan(whole, rows, {8, 4}, 4);
  ASSERT_FALSE(plan.steps.empty());
  EXPECT_EQ(plan.steps.back().after, rows);
  std::vector<Layout> wanted = {rows, layoutOf({{}, {0, 1}})};
  for (const Delivery &delivery : planner.planTree(whole, wanted, {8, 4}, 4))
    EXPECT_TRUE(llvm::is_contained(wanted, delivery.layout));
}

} // namespace
