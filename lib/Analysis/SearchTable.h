//===- SearchTable.h - What is known of a part of a step -------*- C++ -*-===//
//
// A part is a set of ops. Its table has a row per combination of what is known
// of the tensors that it shares with the rest, with the least that the part
// then costs. Tables are values of their own: where two parts of a program look
// alike they have the same one, up to a constant.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_SEARCHTABLE_H
#define SHARDC_ANALYSIS_SEARCHTABLE_H

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

  auto tie() const { return std::make_tuple(moves, isMade, numOps, remaining); }
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
  /// What was cut off costs at least this much more than the first row.
  double cutOff = unreachable;
};

/// Drops rows that another one makes superfluous (see ShardingSearch.h), and
/// all after the first `maxRows`. Orders the rest by cost and subtracts the
/// least cost from all, which it returns; 0 if there are no rows.
double normalize(SearchTable &table, size_t maxRows);

/// How the open tensors of two tables go together.
struct JoinPlan {
  /// Positions in the first and second table of tensors open in both.
  std::vector<std::pair<int, int>> shared;

  bool operator<(const JoinPlan &o) const { return shared < o.shared; }
};

/// The table of two parts together, not normalized: tensors of the first one
/// that stay open, then those of the second. Rows that cost more than `limit`
/// are left out.
SearchTable join(const SearchTable &first, const SearchTable &second,
                 const JoinPlan &plan, double limit, SetPool &pool);

} // namespace shardc

#endif // SHARDC_ANALYSIS_SEARCHTABLE_H
