//===- FlowNetworkTest.cpp - Minimum cuts against all cuts ----------------===//

#include "shardc/PipelineSchedules/FlowNetwork.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {

struct Edge {
  int from, to;
  int64_t capacity;
};

int64_t getCapacity(const std::vector<Edge> &edges,
                    const std::vector<bool> &onSourceSide) {
  int64_t sum = 0;
  for (const Edge &edge : edges)
    if (onSourceSide[edge.from] && !onSourceSide[edge.to])
      sum += edge.capacity;
  return sum;
}

} // namespace

TEST(FlowNetwork, FindsTheLargestMinimumCut) {
  unsigned state = 7;
  auto draw = [&](int below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>((state >> 8) % below);
  };
  for (int trial = 0; trial < 400; ++trial) {
    int nodes = 2 + draw(6);
    FlowNetwork network;
    for (int node = 0; node < nodes; ++node)
      EXPECT_EQ(network.addNode(), node);
    std::vector<Edge> edges;
    for (int count = draw(14); count > 0; --count)
      edges.push_back({draw(nodes), draw(nodes), draw(4)});
    for (const Edge &edge : edges)
      network.addEdge(edge.from, edge.to, edge.capacity);
    std::vector<bool> found = network.cut(0, 1);
    ASSERT_TRUE(found[0]);
    ASSERT_FALSE(found[1]);
    int64_t least = FlowNetwork::unlimited;
    std::vector<bool> largest(nodes, false);
    for (int side = 0; side < 1 << nodes; ++side) {
      std::vector<bool> onSourceSide(nodes);
      for (int node = 0; node < nodes; ++node)
        onSourceSide[node] = side >> node & 1;
      if (!onSourceSide[0] || onSourceSide[1])
        continue;
      int64_t capacity = getCapacity(edges, onSourceSide);
      if (capacity < least)
        least = capacity, largest.assign(nodes, false);
      // The union of minimum cuts is one, too.
      if (capacity == least)
        for (int node = 0; node < nodes; ++node)
          largest[node] = largest[node] || onSourceSide[node];
    }
    EXPECT_EQ(getCapacity(edges, found), least);
    EXPECT_EQ(found, largest);
  }
}

TEST(FlowNetwork, LongPaths) {
  FlowNetwork network;
  constexpr int length = 200000;
  for (int node = 0; node <= length; ++node)
    network.addNode();
  for (int node = 0; node < length; ++node)
    network.addEdge(node, node + 1, node == 1000 ? 1 : 2);
  std::vector<bool> side = network.cut(0, length);
  EXPECT_TRUE(side[1000]);
  EXPECT_FALSE(side[1001]);
}
