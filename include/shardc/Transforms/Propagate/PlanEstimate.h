//===- PlanEstimate.h - What a plan takes after all phases ------*- C++ -*-===//
//
// The numbers that the report prints of a plan, for a planner that compares
// plans by them. Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TRANSFORMS_PROPAGATE_PLANESTIMATE_H
#define SHARDC_TRANSFORMS_PROPAGATE_PLANESTIMATE_H

#include "shardc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// What the report says of a train step: collectives are merged and ops are in
/// the order in which they run.
struct PlanEstimate {
  /// Of a step, with communication beside compute, and one after the other.
  double overlappedSeconds = 0, seconds = 0;
  /// Sent per device.
  int64_t wireBytes = 0;

  /// Whether it is worse than `other` by a number that `objective` ("time" or
  /// "bytes") is about: by time with or without overlap.
  bool isWorseThan(const PlanEstimate &other, llvm::StringRef objective) const;
  /// The number that reports give for `objective`: seconds with overlap, or
  /// bytes.
  double getCost(llvm::StringRef objective) const;
};

/// Notes on `step` (`shardc.cost`) that its plan follows the annotations, takes
/// `own`, and would take `cheapest` with `--partition=cheapest`. `lowerBound`
/// of all plans is 0 if none is known.
void noteFollowedPlan(mlir::func::FuncOp step, llvm::StringRef objective,
                      const PlanEstimate &own, const PlanEstimate &cheapest,
                      double lowerBound);

/// Compiles `propagated`, a module after `propagate`, to find that out, and
/// leaves it in any state. Fails if a phase does, for example because a
/// contract is broken or memory does not suffice.
using PlanEstimator =
    std::function<llvm::Expected<PlanEstimate>(mlir::ModuleOp propagated)>;

/// `propagate` that takes the cheapest plan within `limit`; an error at the
/// module if none of those that it tried is. With an `estimator`, the plan that
/// follows the annotations is taken if the plan found is worse by it.
std::unique_ptr<mlir::Pass> createPropagatePass(PropagatePassOptions options,
                                                PeakLimit limit,
                                                PlanEstimator estimator);

} // namespace shardc

#endif // SHARDC_TRANSFORMS_PROPAGATE_PLANESTIMATE_H
