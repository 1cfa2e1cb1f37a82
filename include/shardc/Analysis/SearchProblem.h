//===- SearchProblem.h - What an exact search decides ----------*- C++ -*-===//
//
// A step of a program as variables and prices. Each op is a variable whose
// options are its assignments; each tensor links the op that makes it and those
// that use it, at the price of the cheapest tree that delivers it. Where
// tensors rest is a variable as well: an op that hands out arguments and takes
// back results. Values made from nothing are made where they are used and cost
// nothing. Plain data; borrowed by the search.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_SEARCHPROBLEM_H
#define SHARDC_ANALYSIS_SEARCHPROBLEM_H

#include "shardc/Analysis/LayoutGraph.h"
#include "shardc/Analysis/ShardingGraph.h"

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
  std::vector<SearchOption> options;
  Part part = Part::Forward;
};

/// The ops from `first` to before `end` of a graph, and where tensors rest.
class SearchProblem {
public:
  /// Where the value of each graph value at rest lies, if that is decided.
  using AtRest = std::map<int, Layout>;

  /// Borrows `graph` and `prices`.
  SearchProblem(const ShardingGraph &graph, int first, int end,
                const CollectivePrices &prices, const AtRest &known);

  std::vector<SearchOp> ops;
  std::vector<SearchValue> values;

  /// The options of all ops.
  int64_t getNumOptions() const;

  /// Writes the meaning of option `option` of op `op` into `assignments` (by
  /// graph op) or `atRest`.
  void apply(int op, int option, std::vector<Assignment> &assignments,
             AtRest &atRest) const;

private:
  /// What an op stands for.
  struct Origin {
    int graphOp = -1;
    int restValue = -1;
    std::vector<Assignment> assignments;
    std::vector<Layout> layouts;
  };

  int getValue(int graphValue);
  int addPort(SearchOp &op, int graphValue);
  void addCompute(int index);
  void addRest(int root, int first, int end, const AtRest &known);
  LayoutGraph &getGraph(int rank);

  const ShardingGraph &graph;
  const CollectivePrices &prices;
  LayoutScope scope;
  std::map<int, LayoutGraph> graphs;
  std::vector<Origin> origins;
  std::map<int, int> valueOf;
  /// Graph values that are made from nothing, and those that are maxima.
  std::vector<bool> isFree, isMaximum;
  std::map<std::pair<std::vector<int64_t>, int64_t>, DistanceTable> tables;
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_SEARCHPROBLEM_H
