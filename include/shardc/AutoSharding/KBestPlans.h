//===- KBestPlans.h - Plans in the order of their cost ----------*- C++ -*-===//
//
// Hands out the plans of a search problem, the cheapest first (Lawler: A
// procedure for computing the K best solutions to discrete optimization
// problems, 1972). When a plan has been handed out, what is left is divided: in
// the first set of plans the first op runs differently, in the second one that
// op runs as in the plan and the second one differently, and so on. Of each set
// the cheapest plan is searched for; the cheapest of these is next. A set is
// searched only once no other one is known to have a plan cheaper than what
// bounds say of it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_KBESTPLANS_H
#define SHARDC_AUTOSHARDING_KBESTPLANS_H

#include "shardc/AutoSharding/CheapestPlan.h"

namespace shardc {

class KBestPlans {
public:
  /// Borrows `problem`, which it changes only while it searches, and `prices`.
  /// `cheapest` is the cheapest plan of all, found within `limits`; each of the
  /// other searches may look at a part of what that may, and there are as many
  /// as look at a part of `maxBranchOptions` options together, but some at
  /// least. Plans closer than the gap come in any order.
  KBestPlans(SearchProblem &problem, const CollectiveCosts &prices,
             const PlanLimits &limits, CheapestPlan cheapest);
  ~KBestPlans();

  /// The next plan. It has no options if there is none below the limit of
  /// `dropAbove`, or if all searches have looked at too much. `lowerBound`: no
  /// plan that was not handed out before costs less.
  CheapestPlan next();
  /// From now on leaves out plans that cost `upper` or more.
  void dropAbove(double upper);
  /// From now on makes at most `number` searches.
  void limitSearches(int64_t number);
  /// No plan that was not handed out costs less.
  double getBound() const;

private:
  std::unique_ptr<class PlanDivisions> divisions;
};

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_KBESTPLANS_H
