//===- FlowNetwork.cpp - Minimum cuts -------------------------------------===//

#include "shardc/PipelineSchedules/FlowNetwork.h"

#include <algorithm>

using namespace shardc;

int FlowNetwork::addNode() {
  edgesOf.emplace_back();
  return static_cast<int>(edgesOf.size()) - 1;
}

void FlowNetwork::addEdge(int from, int to, int64_t capacity) {
  edgesOf[from].push_back(static_cast<int>(edges.size()));
  edges.push_back({to, capacity});
  edgesOf[to].push_back(static_cast<int>(edges.size()));
  edges.push_back({from, 0});
}

/// Breadth-first search along edges with capacity left.
bool FlowNetwork::findLevels(int source, int sink) {
  levels.assign(edgesOf.size(), -1);
  levels[source] = 0;
  std::vector<int> queue = {source};
  for (size_t head = 0; head < queue.size(); ++head)
    for (int edge : edgesOf[queue[head]]) {
      auto [to, capacity] = edges[edge];
      if (capacity > 0 && levels[to] < 0) {
        levels[to] = levels[queue[head]] + 1;
        queue.push_back(to);
      }
    }
  return levels[sink] >= 0;
}

/// Pushes flow of at most `limit` from `node` along one path of rising levels,
/// and returns how much.
int64_t FlowNetwork::push(int node, int sink, int64_t limit) {
  // Paths are long where layers are many: an explicit stack.
  std::vector<int> path;
  int current = node;
  while (current != sink) {
    bool advanced = false;
    for (size_t &position = next[current]; position < edgesOf[current].size();
         ++position) {
      int edge = edgesOf[current][position];
      auto [to, capacity] = edges[edge];
      if (capacity > 0 && levels[to] == levels[current] + 1) {
        path.push_back(edge);
        current = to;
        advanced = true;
        break;
      }
    }
    if (advanced)
      continue;
    if (path.empty())
      return 0;
    // A dead end: back, and on to the next edge there.
    current = edges[path.back() ^ 1].to;
    path.pop_back();
    ++next[current];
  }
  for (int edge : path)
    limit = std::min(limit, edges[edge].capacity);
  for (int edge : path) {
    edges[edge].capacity -= limit;
    edges[edge ^ 1].capacity += limit;
  }
  return limit;
}

std::vector<bool> FlowNetwork::cut(int source, int sink) {
  while (findLevels(source, sink)) {
    next.assign(edgesOf.size(), 0);
    while (push(source, sink, unlimited) > 0) {
    }
  }
  // The nodes from which the sink can still be reached are on its side; all
  // others may be on that of the source.
  std::vector<bool> onSourceSide(edgesOf.size(), true);
  onSourceSide[sink] = false;
  std::vector<int> queue = {sink};
  for (size_t head = 0; head < queue.size(); ++head)
    for (int edge : edgesOf[queue[head]]) {
      int from = edges[edge].to;
      if (edges[edge ^ 1].capacity > 0 && onSourceSide[from]) {
        onSourceSide[from] = false;
        queue.push_back(from);
      }
    }
  return onSourceSide;
}
