//===- PlanEstimate.h - Estimates of compiled plans -------------*- C++ -*-===//
//
// Time and bytes of a plan after all phases, as reports state them. The planner
// compares plans by these numbers. Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TRANSFORMS_PROPAGATE_PLANESTIMATE_H
#define SHARDC_TRANSFORMS_PROPAGATE_PLANESTIMATE_H

#include "shardc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// The estimates of a train step after `memory`: collectives are combined, and
/// ops are in the order of execution.
struct PlanEstimate {
  /// Seconds of a step with communication overlapped with compute, and without
  /// overlap.
  double overlappedSeconds = 0, seconds = 0;
  /// Bytes that a device sends.
  int64_t wireBytes = 0;

  /// Whether this plan is worse than `other` for `objective`: in wire bytes for
  /// "bytes", in seconds with or without overlap for "time".
  bool isWorseThan(const PlanEstimate &other, llvm::StringRef objective) const;
  /// The number that reports state for `objective`: seconds with overlap for
  /// "time", wire bytes for "bytes".
  double getCost(llvm::StringRef objective) const;
};

/// Annotates `step`, whose plan follows the annotations, with its cost `own`
/// and with that of the plan of `--partition=cheapest` (`shardc.cost`).
/// `lowerBound` is a lower bound of all plans, 0 if none is known.
void noteFollowedPlan(mlir::func::FuncOp step, llvm::StringRef objective,
                      const PlanEstimate &own, const PlanEstimate &cheapest,
                      double lowerBound);

/// Estimates `propagated`, a module after `propagate`, by compiling it up to
/// `memory`, and leaves it in an unspecified state. Fails if a phase fails, for
/// example because a contract is broken or memory does not suffice.
using PlanEstimator =
    std::function<llvm::Expected<PlanEstimate>(mlir::ModuleOp propagated)>;

/// Creates the pass `shardc-propagate`, which takes the cheapest plan within
/// `limit` and reports an error at the module if it finds none. With an
/// `estimator`, takes the plan that follows the annotations instead if the
/// estimate of the plan found is worse.
std::unique_ptr<mlir::Pass> createPropagatePass(PropagatePassOptions options,
                                                PeakLimit limit,
                                                PlanEstimator estimator);

} // namespace shardc

#endif // SHARDC_TRANSFORMS_PROPAGATE_PLANESTIMATE_H
