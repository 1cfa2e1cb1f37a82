//===- RecomputeLimit.h - The memory that recomputation aims at -*- C++ -*-===//
//
// The driver's part of `shardc-recompute`: a limit, and a way to measure plans.
// Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TRANSFORMS_KERNELS_RECOMPUTELIMIT_H
#define SHARDC_TRANSFORMS_KERNELS_RECOMPUTELIMIT_H

#include "shardc/Transforms/MeasuredPlan.h"
#include "shardc/Transforms/Passes.h"

namespace shardc {

struct RecomputeLimit {
  /// Bytes of a device, for the policy "auto"; 0 for no limit.
  int64_t bytes = 0;
  /// The plan is not taken: nothing is measured for reports, and "auto" without
  /// a limit does what "layer" does, which is to say how little may be needed.
  bool isTrial = false;
  /// Takes a module after `collectives`, without a policy of recomputation.
  /// Null: nobody here compiles plans on trial.
  PlanMeasurer measure = {};
};

/// Creates the pass `shardc-recompute`. Its policy "auto" reports an error at
/// the module if there is no limit, or if no choice fits it.
std::unique_ptr<mlir::Pass> createRecomputePass(RecomputePassOptions options,
                                                RecomputeLimit limit);

} // namespace shardc

#endif // SHARDC_TRANSFORMS_KERNELS_RECOMPUTELIMIT_H
