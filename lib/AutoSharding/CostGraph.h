//===- CostGraph.h - The graph of layouts in flat arrays --------*- C++ -*-===//
//
// The edges of a LayoutGraph with what they cost for one tensor, for bounds
// that follow them very often. Most tensors need only some of the layouts: a
// part has these, numbered anew, as a graph of their own in which distances are
// what they are in the whole. Small graphs are matrices of distances. Remembers
// distances; use one per thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_COSTGRAPH_H
#define SHARDC_LIB_AUTOSHARDING_COSTGRAPH_H

#include "shardc/Reshard/LayoutGraph.h"

#include <memory>

namespace shardc {

/// A number per node; unreachable where there is none.
using LayoutCosts = std::vector<double>;

class CostGraph {
public:
  /// Graphs of at most so many nodes are matrices.
  static constexpr size_t maxMatrix = 128;

  /// All layouts of the table's graph, under their own numbers.
  explicit CostGraph(DistanceTable &table);
  /// The nodes `nodes` of `whole`, ascending. `isClosed`: ways between them
  /// lead through them alone.
  CostGraph(CostGraph &whole, llvm::ArrayRef<int> nodes, bool isClosed);

  int size() const { return layouts.size(); }
  bool isClosed() const { return closed; }
  /// The layouts of the nodes, ascending.
  llvm::ArrayRef<int> getLayouts() const { return layouts; }
  /// The node of a layout, -1 if it has none.
  int getNode(int layout) const { return nodeOf[layout]; }

  /// Lowers each cost to the least of another one and the way from there
  /// (`backward`: to there).
  void relax(LayoutCosts &costs, bool backward);
  /// What it costs to get from node `id` (`backward`: to it) to each other.
  llvm::ArrayRef<double> getDistances(int id, bool backward);
  /// The nodes on ways from some of `sources` to some of `targets`, ascending.
  std::vector<int> getBetween(llvm::ArrayRef<int> sources,
                              llvm::ArrayRef<int> targets) const;

private:
  struct Edge {
    int to;
    double cost;
  };
  using EdgeLists = std::vector<std::vector<Edge>>;
  /// Four edges of a node; of the last ones some lead to itself, out of reach.
  struct Four {
    int to[4];
    double cost[4];
  };
  struct Edges {
    /// Those of node i to lower ones: from start[2 * i] to before
    /// start[2 * i + 1]; those to higher ones: from there to before
    /// start[2 * i + 2].
    std::vector<int> start;
    std::vector<Four> list;

    void set(const EdgeLists &lists);
    /// Calls `use` with where each edge of a node leads and what it costs.
    template <typename Use>
    void forEach(int node, Use use) const {
      for (int four = start[2 * node]; four < start[2 * node + 2]; ++four)
        for (int index = 0; index < 4; ++index)
          if (list[four].cost[index] < unreachable)
            use(list[four].to[index], list[four].cost[index]);
    }
  };
  void setEdges(const EdgeLists &out);
  /// Lowers costs along edges until none is lowered (Bellman, 1958).
  void expand(LayoutCosts &costs, bool backward);
  void mark(llvm::ArrayRef<int> sources, bool backward,
            std::vector<bool> &isMarked) const;

  std::vector<int> layouts;
  std::vector<int> nodeOf;
  /// Unless it is a matrix.
  Edges forward, backward;
  /// Distances from and to nodes; empty: not known yet.
  std::vector<LayoutCosts> from, to;
  bool isMatrix = false, closed = true;
  /// For `expand` and `relax`.
  std::vector<char> isLowered;
  LayoutCosts scratch;
};

/// The graphs of the tables of a problem, and parts of them.
class PriceGraphs {
public:
  CostGraph &getWhole(DistanceTable *table);
  /// The part of `table` with what `isClosed` says of it; see CostGraph.
  CostGraph &getPart(DistanceTable *table, CostGraph &whole,
                     llvm::ArrayRef<int> nodes, bool isClosed);

private:
  std::map<DistanceTable *, std::unique_ptr<CostGraph>> wholes;
  std::map<std::pair<DistanceTable *, std::vector<int>>,
           std::unique_ptr<CostGraph>>
      parts;
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_COSTGRAPH_H
