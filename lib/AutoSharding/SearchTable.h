//===- SearchTable.h - Tables of variable elimination -----------*- C++ -*-===//
//
// A part is a set of ops. Its table has one row per combination of states of
// the tensors that it shares with other parts, with the least cost of the part
// in these states. Equal parts of a program share a table, up to a constant
// cost.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_SEARCHTABLE_H
#define SHARDC_LIB_AUTOSHARDING_SEARCHTABLE_H

#include "DualBound.h"
#include "SearchMoves.h"

namespace shardc {

/// A tensor that ops of the part and ops outside touch.
struct OpenTensor {
  ValueMoves *moves;
  /// Whether the part makes it. Its state is then the set of layouts in which
  /// it exists, or else the set in which the part wants it.
  bool isMade;
  /// The number of ops that touch it, and of those outside the part.
  int numOps;
  int remaining;
  /// Its class, and its ports inside the part; see TensorBound::getRest.
  int valueClass;
  unsigned inside;

  auto tie() const {
    return std::make_tuple(moves, isMade, numOps, remaining, valueClass,
                           inside);
  }
  bool operator==(const OpenTensor &o) const { return tie() == o.tie(); }
  bool operator<(const OpenTensor &o) const { return tie() < o.tie(); }
};

struct SearchRow {
  /// The state of each open tensor: the number of a set of layouts.
  llvm::SmallVector<int, 6> sets;
  double cost = 0;
  /// The rows of the two tables joined; in the table of an op, its strategy and
  /// -1.
  int first = -1;
  int second = -1;
};

struct SearchTable {
  std::vector<OpenTensor> open;
  /// Cheapest first; the first one costs 0.
  std::vector<SearchRow> rows;
};

/// Lower bounds of the cost of completing a row; cached.
class Completion {
public:
  /// Borrows both; the messages of `bound` must not change.
  Completion(DualBound &bound, const SetPool &pool)
      : bound(bound), pool(pool) {}

  /// A lower bound of completing an open tensor in state `set`.
  double getRest(const OpenTensor &tensor, int set);
  /// The sum over the tensors of a row.
  double getRest(const SearchTable &table, const SearchRow &row);

private:
  DualBound &bound;
  const SetPool &pool;
  /// By class, ports inside and set.
  llvm::DenseMap<std::tuple<int, unsigned, int>, double> known;
};

/// Drops dominated rows (see ShardingSearch.h), and all but the `maxRows` rows
/// of the least cost when completed. Sorts the rest by cost, subtracts the
/// least cost from all rows, and returns it; 0 if there are no rows. Adds the
/// pairs of rows compared to `work`; beyond `maxWork` the table means nothing.
double normalize(SearchTable &table, const SearchOptions &options,
                 size_t maxRows, Completion &completion, size_t maxWork,
                 size_t &work);

/// The open tensors that two tables share.
struct JoinPlan {
  /// Positions in the first and second table of tensors open in both.
  std::vector<std::pair<int, int>> shared;

  bool operator<(const JoinPlan &o) const { return shared < o.shared; }
};

/// The table of two parts together, not normalized. Its open tensors are those
/// of the first part that stay open, then those of the second. Rows that cost
/// more than `limit` when completed are left out. A beam search (`isBeam`)
/// considers only the most promising delivery of each tensor. Adds the
/// combinations of rows to `work`; beyond `maxWork` the table means nothing.
SearchTable join(const SearchTable &first, const SearchTable &second,
                 const JoinPlan &plan, double limit, Completion &completion,
                 SetPool &pool, bool isBeam, size_t maxWork, size_t &work);

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_SEARCHTABLE_H
