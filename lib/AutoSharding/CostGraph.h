//===- CostGraph.h - The graph of layouts in flat arrays --------*- C++ -*-===//
//
// The edges of a LayoutGraph with their costs for one tensor, in arrays for
// bounds that relax them very often. Most tensors need only some of the
// layouts. A part is a graph of these alone, numbered anew, that keeps the
// distances of the whole. Small graphs are stored as matrices of distances.
// Caches distances; use one per thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_COSTGRAPH_H
#define SHARDC_LIB_AUTOSHARDING_COSTGRAPH_H

#include "shardc/AutoSharding/SearchOptions.h"
#include "shardc/Reshard/LayoutGraph.h"

#include <memory>

namespace shardc {

/// A cost per node; unreachable where there is none.
using LayoutCosts = std::vector<double>;

class CostGraph {
public:
  /// All layouts of the graph of `table`, under their own numbers. Borrows
  /// `options`.
  CostGraph(DistanceTable &table, const SearchOptions &options);
  /// The subgraph of `nodes` of `whole`, ascending. `isClosed`: all paths
  /// between them stay inside.
  CostGraph(CostGraph &whole, llvm::ArrayRef<int> nodes, bool isClosed);

  int size() const { return layouts.size(); }
  bool isClosed() const { return closed; }
  /// The layouts of the nodes, ascending.
  llvm::ArrayRef<int> getLayouts() const { return layouts; }
  /// The node of a layout, -1 if it has none.
  int getNode(int layout) const { return nodeOf[layout]; }

  /// Lowers each cost to the minimum over all nodes of their cost plus the
  /// distance from there (`isBackward`: to there).
  void relax(LayoutCosts &costs, bool isBackward);
  /// The distances from node `id` (`isBackward`: to it) to all nodes.
  llvm::ArrayRef<double> getDistances(int id, bool isBackward);
  /// The nodes on paths from some of `sources` to some of `targets`, ascending.
  std::vector<int> getBetween(llvm::ArrayRef<int> sources,
                              llvm::ArrayRef<int> targets) const;

private:
  struct Edge {
    int to;
    double cost;
  };
  using EdgeLists = std::vector<std::vector<Edge>>;
  /// Four edges of a node. The last four are padded with unreachable edges to
  /// the node itself.
  struct Four {
    int to[4];
    double cost[4];
  };
  struct Edges {
    /// The edges of node i to lower nodes begin at start[2 * i], and those to
    /// higher nodes at start[2 * i + 1].
    std::vector<int> start;
    std::vector<Four> list;

    void set(const EdgeLists &lists);
    /// Calls `use` with the target and cost of each edge of a node.
    template <typename Use>
    void forEach(int node, Use use) const {
      for (int four = start[2 * node]; four < start[2 * node + 2]; ++four)
        for (int index = 0; index < 4; ++index)
          if (list[four].cost[index] < unreachable)
            use(list[four].to[index], list[four].cost[index]);
    }
  };
  void setEdges(const EdgeLists &out);
  /// Lowers costs along edges until none changes (Bellman, 1958).
  void expand(LayoutCosts &costs, bool isBackward);
  void mark(llvm::ArrayRef<int> sources, bool isBackward,
            std::vector<bool> &isMarked) const;

  const SearchOptions *options;
  std::vector<int> layouts;
  std::vector<int> nodeOf;
  /// Unused in a matrix.
  Edges forward, backward;
  /// Distances from and to nodes; empty: not computed yet.
  std::vector<LayoutCosts> from, to;
  bool isMatrix = false, closed = true;
  /// Scratch space of `expand` and `relax`.
  std::vector<char> isLowered;
  LayoutCosts scratch;
};

/// The graphs of the tables of a problem, and parts of them.
class CostGraphs {
public:
  /// Borrows `options`.
  explicit CostGraphs(const SearchOptions &options) : options(options) {}

  CostGraph &getWhole(DistanceTable *table);
  /// The part of `whole`, a graph of `table`; see CostGraph.
  CostGraph &getPart(DistanceTable *table, CostGraph &whole,
                     llvm::ArrayRef<int> nodes, bool isClosed);

private:
  const SearchOptions &options;
  std::map<DistanceTable *, std::unique_ptr<CostGraph>> wholes;
  std::map<std::pair<DistanceTable *, std::vector<int>>,
           std::unique_ptr<CostGraph>>
      parts;
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_COSTGRAPH_H
