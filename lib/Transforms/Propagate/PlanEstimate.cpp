//===- PlanEstimate.cpp - Estimates of compiled plans ---------------------===//

#include "shardc/Transforms/Propagate/PlanEstimate.h"

#include "shardc/CostModel/CollectiveCosts.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

using namespace mlir;
using namespace shardc;

bool PlanEstimate::isWorseThan(const PlanEstimate &other,
                               StringRef objective) const {
  if (objective == "bytes")
    return wireBytes > other.wireBytes;
  // Sums of the same numbers in another order are equal.
  auto isMore = [](double left, double right) {
    return left > right * (1 + costTolerance);
  };
  return isMore(overlappedSeconds, other.overlappedSeconds) ||
         isMore(seconds, other.seconds);
}

double PlanEstimate::getCost(StringRef objective) const {
  return objective == "bytes" ? double(wireBytes) : overlappedSeconds;
}

void shardc::noteFollowedPlan(func::FuncOp step, StringRef objective,
                              const PlanEstimate &own,
                              const PlanEstimate &cheapest, double lowerBound) {
  Builder builder(step.getContext());
  step->setAttr(
      costAttrName,
      CostAttr::get(step.getContext(), builder.getStringAttr(objective),
                    builder.getF64FloatAttr(own.getCost(objective)),
                    builder.getF64FloatAttr(lowerBound),
                    builder.getF64FloatAttr(cheapest.getCost(objective)),
                    IntegerAttr()));
}
