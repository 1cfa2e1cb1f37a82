//===- KBestPlans.h - Plans in the order of their cost ----------*- C++ -*-===//
//
// Enumerates the plans of a search problem in the order of their cost: k-best
// search (Lawler: A procedure for computing the K best solutions to discrete
// optimization problems, 1972). After a plan has been returned, the remaining
// plans are divided into disjoint sets. In the first set, the first op runs
// differently; in the second, that op runs as in the plan and the second op
// runs differently; and so on. The cheapest of the best plans of all sets is
// next. A set is searched only if its lower bound is below the cost of every
// plan found.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_KBESTPLANS_H
#define SHARDC_AUTOSHARDING_KBESTPLANS_H

#include "shardc/AutoSharding/CheapestPlan.h"

namespace shardc {

class KBestPlans {
public:
  /// Borrows `problem`, which it changes only during a search, and
  /// `collectiveCosts`. `cheapest` is the cheapest plan of all, found with
  /// `options`. Every further search is limited to a part of the work of that
  /// one (KBestOptions). Plans whose costs differ by less than the gap come in
  /// any order.
  KBestPlans(SearchProblem &problem, const CollectiveCosts &collectiveCosts,
             const SearchOptions &options, CheapestPlan cheapest);
  ~KBestPlans();

  /// The next plan. It has no strategies if none costs less than the limit of
  /// `dropAbove`, or if the searches have exhausted their work. Its
  /// `lowerBound` holds for all plans not returned before.
  CheapestPlan next();
  /// From now on leaves out plans that cost `upper` or more.
  void dropAbove(double upper);
  /// From now on makes at most `number` searches.
  void limitSearches(int64_t number);
  /// A lower bound of the plans not returned yet.
  double getBound() const;

private:
  std::unique_ptr<class PlanDivisions> divisions;
};

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_KBESTPLANS_H
