//===- SearchTable.h - What is known of a part of a step --------*- C++ -*-===//
//
// A part is a set of ops. Its table has a row per combination of what is known
// of the tensors that it shares with the rest, with the least that the part
// then costs. Tables are values of their own: where two parts of a program look
// alike they have the same one, up to a constant.
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
  /// Whether the part makes it: rows then have the set of layouts in which it
  /// exists, else of those in which the part wants it.
  bool isMade;
  /// How many ops touch it, and how many of these are outside.
  int numOps;
  int remaining;
  /// Its class, and which of its ports are in the part; see
  /// TensorBound::getRest.
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
  /// Per open tensor a set of layouts.
  llvm::SmallVector<int, 6> sets;
  double cost = 0;
  /// The rows of the two tables joined, or of an op the option and -1.
  int first = -1;
  int second = -1;
};

struct SearchTable {
  std::vector<OpenTensor> open;
  /// Cheapest first; the first one costs 0.
  std::vector<SearchRow> rows;
};

/// What completing a row costs at least. Remembers what it has computed.
class Completion {
public:
  /// Borrows both; messages of `bound` stay as they are.
  Completion(DualBound &bound, const SetPool &pool)
      : bound(bound), pool(pool) {}

  /// What the rest of an open tensor, of which the part knows set `set`, costs
  /// at least.
  double getRest(const OpenTensor &tensor, int set);
  /// The sum over the tensors of a row.
  double getRest(const SearchTable &table, const SearchRow &row);

private:
  DualBound &bound;
  const SetPool &pool;
  /// By class, ports inside and set.
  llvm::DenseMap<std::tuple<int, unsigned, int>, double> known;
};

/// Drops rows that another one makes superfluous (see ShardingSearch.h), and
/// all but `maxRows` that cost least when completed. Orders the rest by cost
/// and subtracts the least cost from all, which it returns; 0 if there are no
/// rows. Adds to `work` how many pairs of rows it compared; beyond `maxWork`
/// the table is of no use.
double normalize(SearchTable &table, size_t maxRows, Completion &completion,
                 size_t maxWork, size_t &work);

/// How the open tensors of two tables go together.
struct JoinPlan {
  /// Positions in the first and second table of tensors open in both.
  std::vector<std::pair<int, int>> shared;

  bool operator<(const JoinPlan &o) const { return shared < o.shared; }
};

/// The table of two parts together, not normalized: tensors of the first one
/// that stay open, then those of the second. Rows that cost more than `limit`
/// when completed are left out; if `isNarrow`, only the most promising way to
/// deliver each tensor is taken. Adds to `work` how many combinations it looked
/// at; beyond `maxWork` the table is of no use.
SearchTable join(const SearchTable &first, const SearchTable &second,
                 const JoinPlan &plan, double limit, Completion &completion,
                 SetPool &pool, bool isNarrow, size_t maxWork, size_t &work);

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_SEARCHTABLE_H
