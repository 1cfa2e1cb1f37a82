//===- ReshardPlannerTest.cpp - Resharding against naive oracles ----------===//
//
// Two oracles: relaxation to a fix-point over all layouts for the cost, and a
// simulation of every device for the meaning of each step, on meshes and sizes
// that do and do not divide.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/ReshardPlanner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace shardc;

namespace {

constexpr double padding = NAN;

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
  int64_t numDevices() const {
    return mesh.getNumShards(AxisSet(-1) >> (64 - mesh.getNumAxes()));
  }

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

  /// What an element is on a device: different along unreduced axes.
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
    for (int64_t row = 0; row < shard.rows; ++row)
      for (int64_t column = 0; column < shard.columns; ++column) {
        int64_t r = indexOver(device, where.dims[0]) * shard.rows + row;
        int64_t c = indexOver(device, where.dims[1]) * shard.columns + column;
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

  /// Part `index` of `n` of `from` along `dim`.
  static Shard part(Shard from, int dim, int64_t index, int64_t n) {
    int64_t block = ceilDiv(extent(from, dim), n);
    Shard to = dim == 0 ? make(block, from.columns) : make(from.rows, block);
    for (int64_t row = 0; row < to.rows; ++row)
      for (int64_t column = 0; column < to.columns; ++column) {
        int64_t r = row + (dim == 0 ? index * block : 0);
        int64_t c = column + (dim == 1 ? index * block : 0);
        if (r < from.rows && c < from.columns)
          to.at(row, column) = from.at(r, c);
      }
    return to;
  }

  /// `parts` in order along `dim`, cut to `size`.
  static Shard concatenate(std::vector<Shard> parts, int dim, int64_t size) {
    int64_t block = extent(parts[0], dim);
    Shard to =
        dim == 0 ? make(size, parts[0].columns) : make(parts[0].rows, size);
    for (int64_t row = 0; row < to.rows; ++row)
      for (int64_t column = 0; column < to.columns; ++column) {
        int64_t along = dim == 0 ? row : column;
        to.at(row, column) = parts[along / block].at(
            dim == 0 ? row % block : row, dim == 1 ? column % block : column);
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
      return part(shards[device], step.dim, index, n);
    case ReshardStep::AllReduce:
      return sum(device, step.axes);
    case ReshardStep::ReduceScatter:
      return part(sum(device, step.axes), step.dim, index, n);
    case ReshardStep::AllGather: {
      std::vector<Shard> parts;
      for (int64_t member : group(device, step.axes))
        parts.push_back(shards[member]);
      return concatenate(parts, step.dim, after[step.dim]);
    }
    case ReshardStep::AllToAll: {
      std::vector<Shard> parts;
      for (int64_t member : group(device, step.axes))
        parts.push_back(part(shards[member], step.dim, index, n));
      return concatenate(parts, step.concatDim, after[step.concatDim]);
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

/// The cost of every layout from `from`, by relaxing all steps until nothing
/// changes.
std::map<Layout, int64_t> relax(const ReshardPlanner &planner,
                                const Layout &from, const Layout &to,
                                llvm::ArrayRef<int64_t> shape) {
  std::map<Layout, int64_t> costs = {{from, 0}};
  bool changed = true;
  while (changed) {
    changed = false;
    std::map<Layout, int64_t> known = costs;
    for (const auto &[layout, cost] : known)
      for (const ReshardStep &step : planner.getSteps(layout, to, shape, 4)) {
        auto [it, isNew] = costs.try_emplace(step.after, cost + step.wireBytes);
        if (!isNew && it->second <= cost + step.wireBytes)
          continue;
        it->second = cost + step.wireBytes;
        changed = true;
      }
  }
  return costs;
}

/// Puts each axis in a random place.
Layout randomLayout(const MeshAxes &mesh, std::mt19937 &random,
                    AxisSet mayBeUnreduced) {
  Layout layout(2);
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    axes.push_back(axis);
  std::shuffle(axes.begin(), axes.end(), random);
  for (int axis : axes) {
    int place = random() % 4;
    if (place < 2)
      layout.dims[place].push_back(axis);
    else if (place == 2 && (mayBeUnreduced & axisBit(axis)))
      layout.unreduced |= axisBit(axis);
  }
  return layout;
}

void expectPlan(const MeshAxes &mesh, const Layout &from, const Layout &to,
                llvm::ArrayRef<int64_t> shape, bool checkCost) {
  ReshardPlanner planner(mesh);
  const ReshardPlan &plan = planner.plan(from, to, shape, 4);
  std::string what = toString(from, mesh) + " -> " + toString(to, mesh) +
                     " of " + std::to_string(shape[0]) + "x" +
                     std::to_string(shape[1]);
  Simulation simulation(mesh, shape, from);
  for (const ReshardStep &step : plan.steps) {
    simulation.run(step);
    ASSERT_EQ(simulation.findError(from.unreduced), -1)
        << what << " after " << toString(step.after, mesh);
  }
  if (checkCost) {
    EXPECT_EQ(plan.wireBytes, relax(planner, from, to, shape)[to]) << what;
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

TEST(ReshardPlanner, AgreesWithOraclesOnEveryPairOfSmallMesh) {
  MeshAxes mesh = square();
  std::vector<Layout> layouts;
  for (AxisSet unreduced = 0; unreduced < 4; ++unreduced)
    for (int x = 0; x < 3; ++x)
      for (int y = 0; y < 3; ++y)
        for (bool xFirst : {true, false}) {
          Layout layout = layoutOf({{}, {}}, unreduced);
          auto put = [&](int axis, int place) {
            if (place < 2 && !(unreduced & axisBit(axis)))
              layout.dims[place].push_back(axis);
          };
          put(xFirst ? 0 : 1, xFirst ? x : y);
          put(xFirst ? 1 : 0, xFirst ? y : x);
          if (!llvm::is_contained(layouts, layout))
            layouts.push_back(layout);
        }
  for (const Layout &from : layouts)
    for (const Layout &to : layouts)
      if (!(to.unreduced & ~from.unreduced)) {
        expectPlan(mesh, from, to, {8, 4}, /*checkCost=*/true);
        expectPlan(mesh, from, to, {5, 3}, /*checkCost=*/true);
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
    expectPlan(mesh, from, to, shape, /*checkCost=*/round % 10 == 0);
  }
}

TEST(ReshardPlanner, TreeServesTheWiderLayoutFromTheNarrowerOne) {
  ReshardPlanner planner(MeshAxes({{"a", 4}}));
  Layout partial = layoutOf({{}, {}}, 1);
  Layout wanted[] = {layoutOf({{}, {}}), layoutOf({{0}, {}})};
  // The sum is scattered once; the whole is gathered from the shards, or the
  // shards cut from the whole, but never reduced twice.
  auto sources = planner.planTree(partial, wanted, {8, 8}, 4);
  EXPECT_EQ(llvm::count(sources, -1), 1);
}

} // namespace
