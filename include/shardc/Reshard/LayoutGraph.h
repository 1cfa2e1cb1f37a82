//===- LayoutGraph.h - Shortest paths between layouts -----------*- C++ -*-===//
//
// The nodes are the layouts of tensors of one rank, numbered; the edges are the
// steps of ReshardSteps, found on first use. The weight of an edge depends on
// the tensor's shape and on the objective. DistanceTable holds the shortest
// distances for tensors of one shape (Dijkstra: A note on two problems in
// connexion with graphs, 1959). Both classes cache their results; use one per
// thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RESHARD_LAYOUTGRAPH_H
#define SHARDC_RESHARD_LAYOUTGRAPH_H

#include "shardc/CostModel/CollectiveCosts.h"
#include "shardc/Reshard/ReshardSteps.h"

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>

namespace shardc {

/// The distance to a layout that no path reaches; larger than every cost.
constexpr double unreachable = std::numeric_limits<double>::infinity();

class LayoutGraph;

/// The steps out of the layouts of one mesh, shared by all graphs with these
/// edges.
class LayoutSteps {
public:
  explicit LayoutSteps(const MeshAxes &mesh) : mesh(mesh) {}

  /// See getStepsFrom; valid for the life of this object.
  llvm::ArrayRef<ReshardStep> getFrom(const Layout &layout,
                                      const LayoutScope &scope);
  const MeshAxes &getMesh() const { return mesh; }

private:
  using ByLayout =
      std::unordered_map<Layout, std::vector<ReshardStep>, LayoutHash>;

  MeshAxes mesh;
  /// By the members of the scope.
  std::map<std::tuple<AxisSet, bool, std::vector<AxisList>>, ByLayout> known;
};

/// The wire bytes of a graph's edges for tensors of one shape. They do not
/// depend on the cost model.
class EdgeBytes {
public:
  /// Borrows `graph`.
  EdgeBytes(LayoutGraph &graph, llvm::ArrayRef<int64_t> shape,
            int64_t elementBytes)
      : graph(graph), shape(shape.begin(), shape.end()),
        elementBytes(elementBytes) {}

  /// Per edge out of layout `id`; `unreachable` where the sizes forbid it.
  llvm::ArrayRef<double> get(int id);

private:
  LayoutGraph &graph;
  llvm::SmallVector<int64_t> shape;
  int64_t elementBytes;
  std::vector<std::optional<std::vector<double>>> known;
};

class LayoutGraph {
public:
  struct Edge {
    const ReshardStep *step;
    int to;
  };

  /// Layouts of rank `rank`.
  LayoutGraph(std::shared_ptr<LayoutSteps> steps, LayoutScope scope, int rank)
      : steps(std::move(steps)), scope(scope), rank(rank) {}

  /// The number of `layout`, whose axes are all in the scope.
  int getId(const Layout &layout);
  const Layout &getLayout(int id) const { return *layouts[id]; }
  int getNumLayouts() const { return layouts.size(); }
  /// The steps out of layout `id`; valid for the life of the graph.
  llvm::ArrayRef<Edge> getEdges(int id);
  /// Numbers every layout of the scope.
  void enumerate();
  /// Shared by all cost models of tensors of one shape.
  EdgeBytes &getBytes(llvm::ArrayRef<int64_t> shape, int64_t elementBytes) {
    return bytes
        .try_emplace({shape.vec(), elementBytes}, *this, shape, elementBytes)
        .first->second;
  }

  const MeshAxes &getMesh() const { return steps->getMesh(); }
  const LayoutScope &getScope() const { return scope; }

private:
  std::shared_ptr<LayoutSteps> steps;
  LayoutScope scope;
  int rank;
  bool isEnumerated = false;
  std::unordered_map<Layout, int, LayoutHash> ids;
  /// The keys of `ids`.
  std::vector<const Layout *> layouts;
  std::deque<std::optional<std::vector<Edge>>> edges;
  std::map<std::pair<std::vector<int64_t>, int64_t>, EdgeBytes> bytes;
};

/// The graphs of one mesh, by scope and rank.
class LayoutGraphs {
public:
  /// `steps`, of the same mesh, may be shared with others.
  explicit LayoutGraphs(const MeshAxes &mesh,
                        std::shared_ptr<LayoutSteps> steps = nullptr)
      : steps(steps ? std::move(steps) : std::make_shared<LayoutSteps>(mesh)) {}

  LayoutGraph &get(const LayoutScope &scope, int rank) {
    return graphs
        .try_emplace({scope.axes, scope.allowsStrided, scope.bundles, rank},
                     steps, scope, rank)
        .first->second;
  }

private:
  std::shared_ptr<LayoutSteps> steps;
  std::map<std::tuple<AxisSet, bool, std::vector<AxisList>, int>, LayoutGraph>
      graphs;
};

/// The end of a shortest path: the sum of the steps' costs, at equal costs the
/// fewest steps, and then the first path found.
struct Distance {
  double cost = unreachable;
  int numSteps = 0;
  /// The neighbour on the path, and the edge; -1 at its start.
  int next = -1;
  int edge = -1;

  bool isCloserThan(const Distance &other) const;
};

/// Distances between the layouts of a graph for tensors of one shape.
class DistanceTable {
public:
  /// Borrows `graph` and `collectiveCosts`.
  DistanceTable(LayoutGraph &graph, const CollectiveCosts &collectiveCosts,
                llvm::ArrayRef<int64_t> shape, int64_t elementBytes)
      : graph(graph), collectiveCosts(collectiveCosts),
        bytes(graph.getBytes(shape, elementBytes)) {}

  /// Distances from layout `id` to all layouts of the graph, by number. Layouts
  /// that have no number yet are unreachable.
  const std::vector<Distance> &getFrom(int id);
  /// Distances from all layouts to layout `id`; enumerates the graph.
  const std::vector<Distance> &getTo(int id);
  /// The distance between two layouts.
  double get(int from, int to) { return getFrom(from)[to].cost; }
  /// The steps of a shortest path, which exists.
  llvm::SmallVector<ReshardStep, 2> getPath(int from, int to);
  /// The steps of the path from `from` to `to` in `distances`, the result of a
  /// forward `relax` from `from`.
  llvm::SmallVector<ReshardStep, 2>
  getPath(const std::vector<Distance> &distances, int from, int to);

  /// Dijkstra's algorithm from several sources: the layouts with a known cost
  /// in `distances`. Lowers each cost to the cheapest path from (`backward`:
  /// to) a source. Stops when the cost of layout `last` is final (-1: when all
  /// are), or after `maxEdges` edges (-1: no limit), when costs may still be
  /// too high.
  void relax(std::vector<Distance> &distances, bool backward, int last = -1,
             int64_t maxEdges = -1);

  LayoutGraph &getGraph() { return graph; }
  /// The costs of the edges out of `id`; `unreachable` where sizes or the cost
  /// model forbid one.
  llvm::ArrayRef<double> getEdgeCosts(int id);

private:
  void buildReverse();
  double getStepCost(const ReshardStep &step, double moved) const;

  LayoutGraph &graph;
  const CollectiveCosts &collectiveCosts;
  EdgeBytes &bytes;
  std::deque<std::optional<std::vector<double>>> costs;
  std::map<int, std::vector<Distance>> from, to;
  /// (source, edge) of the edges into each layout.
  std::vector<std::vector<std::pair<int, int>>> reverse;
};

} // namespace shardc

#endif // SHARDC_RESHARD_LAYOUTGRAPH_H
