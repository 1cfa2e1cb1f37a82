//===- LayoutGraph.h - Shortest ways between layouts ------------*- C++ -*-===//
//
// Layouts of tensors of one rank are numbered nodes; the steps of ReshardSteps
// are the edges, found when first asked for. What an edge costs depends on the
// tensor and on what is minimised: DistanceTable holds the shortest distances
// for tensors of one shape. Both remember what they have computed; use one per
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

/// Larger than every cost: there is no way.
constexpr double unreachable = std::numeric_limits<double>::infinity();

class LayoutGraph;

/// The steps out of layouts on one mesh, for all graphs that have them as
/// edges.
class LayoutSteps {
public:
  explicit LayoutSteps(const MeshAxes &mesh) : mesh(mesh) {}

  /// See getStepsFrom; valid as long as this.
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

/// What the edges of a graph move of tensors of one shape, whatever the price.
class EdgeBytes {
public:
  /// Borrows `graph`.
  EdgeBytes(LayoutGraph &graph, llvm::ArrayRef<int64_t> shape,
            int64_t elementBytes)
      : graph(graph), shape(shape.begin(), shape.end()),
        elementBytes(elementBytes) {}

  /// Per edge out of layout `id`; unreachable where sizes forbid it.
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

  /// The number of `layout`, which uses no axes outside the scope.
  int getId(const Layout &layout);
  const Layout &getLayout(int id) const { return *layouts[id]; }
  int getNumLayouts() const { return layouts.size(); }
  /// The steps out of layout `id`; valid as long as the graph.
  llvm::ArrayRef<Edge> getEdges(int id);
  /// Numbers every layout of the scope.
  void enumerate();
  /// Shared by all that price tensors of one shape.
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

/// The graphs of one mesh, for all that ask for them.
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

/// A shortest way: the sum of the steps' prices, among equal ones the fewest
/// steps, among these the first found.
struct Distance {
  double cost = unreachable;
  int numSteps = 0;
  /// The neighbour on the way, and the edge; -1 at the start.
  int next = -1;
  int edge = -1;

  bool isCloserThan(const Distance &other) const;
};

/// Distances between the layouts of a graph for tensors of one shape.
class DistanceTable {
public:
  /// Borrows `graph` and `prices`.
  DistanceTable(LayoutGraph &graph, const CollectiveCosts &prices,
                llvm::ArrayRef<int64_t> shape, int64_t elementBytes)
      : graph(graph), prices(prices),
        bytes(graph.getBytes(shape, elementBytes)) {}

  /// Distances from layout `id` to all layouts of the graph (by their numbers;
  /// those that have none yet are unreachable).
  const std::vector<Distance> &getFrom(int id);
  /// Distances from all layouts to layout `id`; enumerates the graph.
  const std::vector<Distance> &getTo(int id);
  /// The distance between two layouts.
  double get(int from, int to) { return getFrom(from)[to].cost; }
  /// The steps of a shortest way, which exists.
  llvm::SmallVector<ReshardStep, 2> getPath(int from, int to);
  /// The steps from `from` to `to` that `distances`, relaxed forward from
  /// `from`, tell.
  llvm::SmallVector<ReshardStep, 2>
  getPath(const std::vector<Distance> &distances, int from, int to);

  /// Lowers `distances`, costs per layout of which some are known, to what they
  /// are by way of steps from (`backward`: to) the layouts with known costs.
  /// Stops when that of layout `last` is final (-1: when all are), or after
  /// looking at `maxEdges` steps (-1: all); distances may be too long then.
  void relax(std::vector<Distance> &distances, bool backward, int last = -1,
             int64_t maxEdges = -1);

  LayoutGraph &getGraph() { return graph; }
  /// What the edges out of `id` cost; unreachable where sizes forbid them.
  llvm::ArrayRef<double> getPrices(int id);

private:
  void buildReverse();
  double getPrice(const ReshardStep &step, double moved) const;

  LayoutGraph &graph;
  const CollectiveCosts &prices;
  EdgeBytes &bytes;
  std::deque<std::optional<std::vector<double>>> costs;
  std::map<int, std::vector<Distance>> from, to;
  /// (source, edge) of the edges into each layout.
  std::vector<std::vector<std::pair<int, int>>> reverse;
};

} // namespace shardc

#endif // SHARDC_RESHARD_LAYOUTGRAPH_H
