//===- SearchMoves.h - Moves of one tensor between layouts ------*- C++ -*-===//
//
// The state of an open tensor is a set of layouts: those in which it exists, if
// its producer is known, or else those in which it is wanted. Moves change this
// set at a cost. Results are cached and shared by tensors of the same shape.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_SEARCHMOVES_H
#define SHARDC_LIB_AUTOSHARDING_SEARCHMOVES_H

#include "CostGraph.h"

#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// Numbers sets of layouts.
class SetPool {
public:
  static constexpr int empty = 0;

  SetPool() { getId({}); }
  /// The number of an ascending set.
  int getId(std::vector<int> set);
  /// The number of set `id` with `layout`.
  int add(int id, int layout);
  /// The number of the union of two sets.
  int unite(int lhs, int rhs);
  llvm::ArrayRef<int> get(int id) const { return *sets[id]; }

private:
  std::map<std::vector<int>, int> ids;
  std::vector<const std::vector<int> *> sets;
};

class ValueMoves {
public:
  struct Move {
    int set;
    double cost;
  };

  /// Borrows all. `work` counts the ways of delivery computed; beyond `maxWork`
  /// results mean nothing. A beam search (`isBeam`) looks at only a few ways.
  ValueMoves(CostGraph &graph, SetPool &pool, const SearchOptions &options,
             bool isBeam, size_t maxWork, size_t &work)
      : graph(graph), pool(pool), options(options), isBeam(isBeam),
        maxWork(maxWork), work(work) {}

  /// The ways to deliver a tensor that exists in set `made` to all layouts of
  /// set `wanted`. With `remaining` uses to come, these include detours through
  /// layouts that would cost more to make later. With none, the set afterwards
  /// is irrelevant and empty.
  llvm::ArrayRef<Move> deliver(int made, int wanted, int remaining);

  /// An upper bound of the cost of making all layouts of set `to` from those of
  /// set `from`.
  double getCost(int from, int to);

private:
  using Moves = std::vector<Move>;
  using Key = std::tuple<int, int, int>;

  /// The cost of the cheapest tree from each layout to all of `set` (see
  /// MulticastTrees.h).
  llvm::ArrayRef<double> getTree(int set);
  /// The cost of making `layout` from some layout of `set`.
  double getCostOf(int set, int layout);
  Moves findDeliveries(int made, int wanted, int remaining);
  const Moves &deliverOne(int set, int layout, int remaining);
  Moves findOne(int set, int layout, int remaining);

  CostGraph &graph;
  SetPool &pool;
  const SearchOptions &options;
  bool isBeam;
  size_t maxWork;
  size_t &work;
  std::map<int, LayoutCosts> trees;
  llvm::DenseMap<Key, Moves> deliveries, singles;
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_SEARCHMOVES_H
