//===- SearchProblem.h - A step as a cost network ---------------*- C++ -*-===//
//
// A step of a program as a cost network. Each op is a variable whose values are
// its sharding strategies. Each tensor links the op that makes it to the ops
// that use it, and costs as much as the cheapest multicast tree that delivers
// it. The storage layout of a parameter or state is a variable as well: an op
// that hands out the argument and takes the result back. Constants are made
// anew at each use and cost nothing. Plain data, which the search borrows.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_SEARCHPROBLEM_H
#define SHARDC_AUTOSHARDING_SEARCHPROBLEM_H

#include "shardc/AutoSharding/CostTerms.h"

#include <memory>

namespace shardc {

/// A tensor that ops make, move and use.
struct SearchValue {
  DistanceTable *table = nullptr;
  /// The op that makes it, and the number of ops that make or use it.
  int producer = -1;
  int numOps = 0;
};

/// A sharding strategy of one op, reduced to its layouts and its cost.
struct SearchStrategy {
  /// Per port the layout, by its number in the graph of the value.
  llvm::SmallVector<int, 4> layouts;
  /// Seconds of the op itself, plus its priced memory (see SearchProblem).
  double cost = 0;
  /// Index into `shardingStrategies`, or the storage layouts, of the op.
  int choice = 0;
};

struct SearchOp {
  /// The values that it uses, `numOperands` of them, then those that it makes.
  /// A value may occur twice.
  llvm::SmallVector<int, 4> ports;
  int numOperands = 0;
  /// Equal ops share one list.
  std::shared_ptr<const std::vector<SearchStrategy>> strategies;
};

/// The ops from `first` to before `end` of a graph, and the storage layouts of
/// their arguments and results.
class SearchProblem {
public:
  /// Storage layouts that are decided already, by graph value.
  using StorageLayouts = std::map<int, Layout>;

  /// Borrows `graph`. The costs leave out latencies. With a positive
  /// `memoryPrice` (a Lagrange multiplier), every op pays that price per byte
  /// of its tensors on a device, so plans that need less memory become cheaper.
  /// `layouts` may be shared with other problems.
  SearchProblem(const ShardingGraph &graph, int first, int end,
                const CollectiveCosts &collectiveCosts,
                const StorageLayouts &known,
                std::shared_ptr<LayoutGraphs> layouts = nullptr,
                double memoryPrice = 0);

  /// Permits all collectives except `collectives` from now on.
  void forbid(const std::set<MergedCollective> &collectives);

  std::vector<SearchOp> ops;
  std::vector<SearchValue> values;

  /// The number of strategies of all ops together.
  int64_t getNumStrategies() const;

  /// The mesh axes of more than one device.
  AxisSet getAxes() const { return scope.axes; }

  /// Writes the decisions of `strategies`, one per op, to `shardingStrategies`
  /// (by graph op) and `stored`.
  void apply(llvm::ArrayRef<int> strategies,
             std::vector<ShardingStrategy> &shardingStrategies,
             StorageLayouts &stored) const;

  /// The cost of the plan of `strategies`, latencies included, with the
  /// collectives permitted now.
  CostTerms getCostTerms(llvm::ArrayRef<int> strategies) const;

private:
  /// The source of an op: an op of the graph, or a stored value.
  struct Origin {
    int graphOp = -1;
    int storedValue = -1;
    /// Equal ops share one list.
    std::shared_ptr<const std::vector<ShardingStrategy>> shardingStrategies;
    std::vector<Layout> layouts;
  };

  /// The size of a tensor, for its table of distances.
  struct Tensor {
    int graphValue;
    /// Multiplied by the iterations of the loop in which the tensor is moved.
    int64_t elementBytes;
  };

  /// The graph values that share one storage layout.
  struct StoredTensors {
    /// The values that functions return there, in their order.
    llvm::SmallVector<int, 1> returned;
    std::set<int> arguments;
  };

  int getValue(int graphValue);
  int addPort(SearchOp &op, int graphValue);
  std::vector<double> getLikeness(const GraphOp &node) const;
  void addCompute(int index);
  void addStored(int root, const StoredTensors &tensors);
  LayoutGraph &getGraph(int rank);

  double getMemoryCost(const GraphOp &node,
                       const ShardingStrategy &shardingStrategy) const;

  const ShardingGraph &graph;
  int first, end;
  double memoryPrice;
  CollectiveCosts collectiveCosts;
  StorageLayouts known;
  std::set<MergedCollective> forbidden;
  LayoutScope scope;
  std::shared_ptr<LayoutGraphs> graphs;
  std::vector<Origin> origins;
  /// The first op of each description (see getLikeness).
  std::map<std::vector<double>, int> likeOps;
  std::map<int, int> valueOf;
  /// By value of the problem.
  std::vector<Tensor> tensors;
  /// By graph value: the part of the step that makes it.
  std::vector<Part> madeIn;
  /// By graph value: whether it is a constant, and whether it is a maximum.
  std::vector<bool> isFree, isMaximum;
  /// The cost models used so far, by their forbidden collectives.
  std::map<std::set<CollectiveCosts::Kind>, CollectiveCosts> variants;
  std::map<std::tuple<const CollectiveCosts *, std::vector<int64_t>, int64_t>,
           DistanceTable>
      tables;
};

/// The storage layout of every value of `graph`: from `stored`, or else from
/// its annotation.
std::vector<Layout>
getStorageLayouts(const ShardingGraph &graph,
                  const SearchProblem::StorageLayouts &stored);

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_SEARCHPROBLEM_H
