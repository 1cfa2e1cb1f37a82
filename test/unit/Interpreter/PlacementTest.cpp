//===- PlacementTest.cpp - Which elements a device holds ------------------===//

#include "InterpreterTest.h"

#include "shardc/Interpreter/Placement.h"

#include <cmath>

using namespace shardc;
using Elements = std::vector<double>;
using Indices = std::vector<int64_t>;

namespace {

const MeshAxes mesh({{"a", 2}, {"b", 3}});

TEST(Devices, GroupsAreMajorToMinor) {
  Devices devices(mesh);
  EXPECT_EQ(devices.getNumDevices(), 6);
  EXPECT_EQ(devices.getIndex(5, {0}), 1);
  EXPECT_EQ(devices.getIndex(4, {1, 0}), 3);
  using Groups = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(devices.getGroups({0}), (Groups{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ(devices.getGroups({1, 0}), (Groups{{0, 3, 1, 4, 2, 5}}));
  EXPECT_EQ(devices.getGroups({}).size(), 6u);
  EXPECT_EQ(devices.toString(4), "4 (a=1, b=1)");
}

TEST(Devices, ElementsOfBlocksAndOfStridedShards) {
  Devices devices(mesh);
  EXPECT_EQ(devices.getElements(4, {}, 2), (Indices{0, 1}));
  EXPECT_EQ(devices.getElements(4, {1, 0}, 2), (Indices{6, 7}));
  // Of each half of twelve the second third.
  EXPECT_EQ(devices.getElements(4, {-2, 1}, 4), (Indices{2, 3, 8, 9}));
}

TEST(Placement, PaddingIsNoElement) {
  Devices devices(mesh);
  Layout layout(1);
  layout.dims[0] = {1};
  Placement placement = getPlacement(layout, {4}, devices);
  EXPECT_EQ(placement.indices[0].data, (Elements{0, 1}));
  EXPECT_EQ(placement.indices[5].data, (Elements{-1, -1}));
  Tensor global({4}, 0);
  global.data = {5, 6, 7, 8};
  DeviceTensors shards = scatter(global, placement);
  EXPECT_EQ(shards[4].data, (Elements{7, 8}));
  EXPECT_TRUE(std::isnan(shards[2].data[0]));
  EXPECT_FALSE(findDivergence(global, shards, placement, 0, devices));
}

TEST(Placement, Divergences) {
  Devices devices(mesh);
  Tensor global({2}, 0);
  global.data = {5, 6};
  Placement replicated = getPlacement(Layout(1), {2}, devices);
  DeviceTensors shards = scatter(global, replicated);
  shards[3].data[1] = 6.5;
  auto divergence = findDivergence(global, shards, replicated, 0, devices);
  ASSERT_TRUE(divergence);
  EXPECT_EQ(divergence->device, 3);
  EXPECT_EQ(divergence->index, 1);
  EXPECT_EQ(divergence->expected, 6);
  EXPECT_EQ(divergence->actual, 6.5);
  EXPECT_EQ(describe(*divergence, global, replicated, 0, devices),
            "has at index [1] 6.5 on device 3 (a=1, b=0), expected 6");
  // Within the tolerance, but replicas must be the same bits.
  EXPECT_TRUE(findDivergence(global, shards, replicated, 1, devices));
  for (Tensor &shard : shards)
    shard.data[1] = 6.5;
  EXPECT_FALSE(findDivergence(global, shards, replicated, 1, devices));

  Layout sharded(1);
  sharded.dims[0] = {0};
  Placement placement = getPlacement(sharded, {2}, devices);
  for (Tensor &indices : placement.indices)
    indices.data[0] = 0;
  divergence =
      findDivergence(global, scatter(global, placement), placement, 0, devices);
  ASSERT_TRUE(divergence);
  EXPECT_EQ(divergence->device, -1);
  EXPECT_EQ(divergence->index, 1);
}

TEST(Placement, PartialSumsAreAdded) {
  Devices devices(mesh);
  Layout layout(1);
  layout.unreduced = axisBit(1);
  Placement placement = getPlacement(layout, {1}, devices);
  Tensor global({1}, 6);
  DeviceTensors shards(6, Tensor({1}, 2));
  EXPECT_FALSE(findDivergence(global, shards, placement, 0, devices));
  shards[4].data[0] = 3;
  EXPECT_TRUE(findDivergence(global, shards, placement, 0, devices));
  placement.reduction = ReductionKind::Max;
  global.data[0] = 3;
  EXPECT_TRUE(findDivergence(global, shards, placement, 0, devices));
  shards[2].data[0] = 3;
  EXPECT_FALSE(findDivergence(global, shards, placement, 0, devices));
}

} // namespace
