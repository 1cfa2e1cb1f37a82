//===- PriceGraph.h - The graph of layouts in flat arrays ------*- C++ -*-===//
//
// The edges of a LayoutGraph with what they cost for one tensor, for bounds
// that follow them very often. Remembers distances; use one per thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_PRICEGRAPH_H
#define SHARDC_ANALYSIS_PRICEGRAPH_H

#include "shardc/Analysis/LayoutGraph.h"

namespace shardc {

/// A number per layout; unreachable where there is none.
using LayoutCosts = std::vector<double>;

class PriceGraph {
public:
  explicit PriceGraph(DistanceTable &table);

  int size() const { return forward.start.size() - 1; }
  /// Lowers each cost to the least of another one and the way from there
  /// (`backward`: to there).
  void relax(LayoutCosts &costs, bool backward);
  /// The same for `targets` alone; all others are unreachable afterwards.
  void relaxAt(LayoutCosts &costs, bool backward, llvm::ArrayRef<int> targets);
  /// What it costs to get from layout `id` (`backward`: to it) to each other.
  const LayoutCosts &getDistances(int id, bool backward);

private:
  struct Edge {
    int to;
    double cost;
  };
  /// The edges of layout i: from start[i] to before start[i + 1].
  struct Edges {
    std::vector<int> start;
    std::vector<Edge> list;
  };
  /// Lowers costs along edges until none is lowered (Bellman, 1958).
  static void expand(LayoutCosts &costs, const Edges &edges);

  Edges forward, backward;
  /// Distances from and to layouts; empty: not known yet.
  std::vector<LayoutCosts> from, to;
};

/// Of each table of a problem.
using PriceGraphs = std::map<DistanceTable *, PriceGraph>;

} // namespace shardc

#endif // SHARDC_ANALYSIS_PRICEGRAPH_H
