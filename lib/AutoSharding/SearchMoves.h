//===- SearchMoves.h - What can be done with one tensor ---------*- C++ -*-===//
//
// The search knows of a tensor a set of layouts: those in which it exists,
// where its producer is known, or else those in which it is wanted. The moves
// change such a set at a price. What is computed is remembered: tensors of the
// same shape share it.
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
  /// The number of a set, given ascending.
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

  /// Borrows all. `work` counts the ways to deliver that were worked out;
  /// beyond `maxWork` what is returned is of no use. If `isNarrow` only few
  /// ways are looked at.
  ValueMoves(CostGraph &graph, SetPool &pool, bool isNarrow, size_t maxWork,
             size_t &work)
      : graph(graph), pool(pool), isNarrow(isNarrow), maxWork(maxWork),
        work(work) {}

  /// A tensor that exists in set `made` is delivered in all layouts of set
  /// `wanted`. With `remaining` uses to come also by way of layouts that it
  /// then exists in, where making these later would cost more; with none the
  /// set afterwards does not matter and is empty.
  llvm::ArrayRef<Move> deliver(int made, int wanted, int remaining);

  /// At most this much makes every layout of set `to` when those of set `from`
  /// exist.
  double getCost(int from, int to);

private:
  using Moves = std::vector<Move>;
  using Key = std::tuple<int, int, int>;

  /// What the cheapest trees to all of `set` cost from each layout (see
  /// MulticastTrees.h).
  llvm::ArrayRef<double> getTree(int set);
  /// What `layout` costs when `set` exists.
  double getCostOf(int set, int layout);
  Moves findDeliveries(int made, int wanted, int remaining);
  const Moves &deliverOne(int set, int layout, int remaining);
  Moves findOne(int set, int layout, int remaining);

  CostGraph &graph;
  SetPool &pool;
  bool isNarrow;
  size_t maxWork;
  size_t &work;
  std::map<int, LayoutCosts> trees;
  llvm::DenseMap<Key, Moves> deliveries, singles;
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_SEARCHMOVES_H
