//===- FlowNetwork.h - Minimum cuts -----------------------------*- C++ -*-===//
//
// A directed graph with capacities, and its minimum cut between two nodes, by
// Dinic's algorithm (1970). Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINESCHEDULES_FLOWNETWORK_H
#define SHARDC_PIPELINESCHEDULES_FLOWNETWORK_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardc {

class FlowNetwork {
public:
  /// The capacity of an edge that no cut may contain.
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max() / 4;

  /// Adds a node and returns its number, counted from 0.
  int addNode();

  /// Adds an edge of `capacity` at least 0.
  void addEdge(int from, int to, int64_t capacity);

  /// Finds a minimum cut between `source` and `sink`, two nodes without a path
  /// of unlimited edges from the first to the second. Returns by node whether
  /// it is on the side of the source. Of all minimum cuts it is the one with
  /// the most nodes on that side. Used once.
  std::vector<bool> cut(int source, int sink);

private:
  struct Edge {
    int to;
    int64_t capacity;
  };

  bool findLevels(int source, int sink);
  int64_t push(int node, int sink, int64_t limit);

  /// Edge 2i+1 is the reverse of edge 2i.
  std::vector<Edge> edges;
  std::vector<std::vector<int>> edgesOf;
  std::vector<int> levels;
  std::vector<size_t> next;
};

} // namespace shardc

#endif // SHARDC_PIPELINESCHEDULES_FLOWNETWORK_H
