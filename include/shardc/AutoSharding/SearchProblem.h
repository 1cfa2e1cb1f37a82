//===- SearchProblem.h - What an exact search decides -----------*- C++ -*-===//
//
// A step of a program as variables and prices. Each op is a variable whose
// options are its assignments; each tensor links the op that makes it and those
// that use it, at the price of the cheapest tree that delivers it. Where
// tensors rest is a variable as well: an op that hands out arguments and takes
// back results. Values made from nothing are made where they are used and cost
// nothing. Plain data; borrowed by the search.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_SEARCHPROBLEM_H
#define SHARDC_AUTOSHARDING_SEARCHPROBLEM_H

#include "shardc/AutoSharding/CostTerms.h"

#include <memory>

namespace shardc {

/// A tensor that is moved.
struct SearchValue {
  DistanceTable *table = nullptr;
  /// The op that makes it, and how many ops make or use it.
  int producer = -1;
  int numOps = 0;
};

/// One way to run an op.
struct SearchOption {
  /// The layout, by its number in the value's graph, of each port.
  llvm::SmallVector<int, 4> layouts;
  /// What running the op this way costs by itself.
  double cost = 0;
  /// Index into the assignments, or the layouts at rest, of the op.
  int choice = 0;
};

struct SearchOp {
  /// The values that it takes, then those that it makes; `numOperands` of the
  /// former. A value may occur twice.
  llvm::SmallVector<int, 4> ports;
  int numOperands = 0;
  /// Shared by ops that are alike.
  std::shared_ptr<const std::vector<SearchOption>> options;
};

/// The ops from `first` to before `end` of a graph, and where tensors rest.
class SearchProblem {
public:
  /// Where the value of each graph value at rest lies, if that is decided.
  using AtRest = std::map<int, Layout>;

  /// Borrows `graph`. Starts of collectives are not in the costs. `memoryPrice`
  /// is paid for each byte of the tensors that an op works on, on a device: the
  /// higher it is the less memory plans need. `layouts` may be shared with
  /// others.
  SearchProblem(const ShardingGraph &graph, int first, int end,
                const CollectiveCosts &prices, const AtRest &known,
                std::shared_ptr<LayoutGraphs> layouts = nullptr,
                double memoryPrice = 0);

  /// From now on all collectives may be used but `starts`; if `paysEachStart`,
  /// every use of one pays for a start.
  void forbid(const std::set<CollectiveStart> &starts,
              bool paysEachStart = false);

  std::vector<SearchOp> ops;
  std::vector<SearchValue> values;

  /// The options of all ops.
  int64_t getNumOptions() const;

  /// The axes of more than one device.
  AxisSet getAxes() const { return scope.axes; }

  /// Writes what `options`, one per op, mean into `assignments` (by graph op)
  /// and `atRest`.
  void apply(llvm::ArrayRef<int> options, std::vector<Assignment> &assignments,
             AtRest &atRest) const;

  /// What the plan of `options` costs, starts of collectives and all, if none
  /// of those that it has now forbidden are used.
  CostTerms price(llvm::ArrayRef<int> options) const;

private:
  /// What an op stands for.
  struct Origin {
    int graphOp = -1;
    int restValue = -1;
    /// Shared by ops that are alike.
    std::shared_ptr<const std::vector<Assignment>> assignments;
    std::vector<Layout> layouts;
  };

  /// A tensor as tables know it.
  struct Tensor {
    int graphValue;
    /// Times the runs of the loop in which it is moved.
    int64_t elementBytes;
  };

  /// The graph values that rest where another one does.
  struct RestingTensors {
    /// What functions return there, in their order.
    llvm::SmallVector<int, 1> returned;
    std::set<int> arguments;
  };

  int getValue(int graphValue);
  int addPort(SearchOp &op, int graphValue);
  std::vector<double> getLikeness(const GraphOp &node) const;
  void addCompute(int index);
  void addRest(int root, const RestingTensors &tensors);
  LayoutGraph &getGraph(int rank);

  double getMemoryPrice(const GraphOp &node,
                        const Assignment &assignment) const;

  const ShardingGraph &graph;
  int first, end;
  double memoryPrice;
  CollectiveCosts prices;
  AtRest known;
  std::set<CollectiveStart> forbidden;
  LayoutScope scope;
  std::shared_ptr<LayoutGraphs> graphs;
  std::vector<Origin> origins;
  /// By likeness the first op that is so.
  std::map<std::vector<double>, int> likeOps;
  std::map<int, int> valueOf;
  /// By value of the problem.
  std::vector<Tensor> tensors;
  /// By graph value the part of the step that makes it.
  std::vector<Part> madeIn;
  /// Graph values that are made from nothing, and those that are maxima.
  std::vector<bool> isFree, isMaximum;
  /// What was asked for so far, by what it forbids.
  std::map<std::pair<bool, std::set<CollectiveCosts::Kind>>, CollectiveCosts>
      variants;
  std::map<std::tuple<const CollectiveCosts *, std::vector<int64_t>, int64_t>,
           DistanceTable>
      tables;
};

/// Where every value of `graph` rests: as `atRest` says, or else as it is
/// annotated.
std::vector<Layout> getLayoutsAtRest(const ShardingGraph &graph,
                                     const SearchProblem::AtRest &atRest);

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_SEARCHPROBLEM_H
