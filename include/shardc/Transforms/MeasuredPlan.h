//===- MeasuredPlan.h - A plan that is compiled on trial --------*- C++ -*-===//
//
// What passes that choose by the memory of plans learn of a plan. Plain values;
// thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TRANSFORMS_MEASUREDPLAN_H
#define SHARDC_TRANSFORMS_MEASUREDPLAN_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace shardc {

/// What a plan needs.
struct MeasuredPlan {
  /// Bytes of the arena of a device; with a pipeline of one of each rank.
  llvm::SmallVector<int64_t> arenaBytes;
  /// The estimated time of a step, with overlap.
  double seconds = 0;
};

/// Compiles a module up to `memory`; which phase it is after, and what is done
/// with options, is for the giver to say. It leaves the module in an
/// unspecified state.
using PlanMeasurer =
    std::function<llvm::Expected<MeasuredPlan>(mlir::ModuleOp module)>;

} // namespace shardc

#endif // SHARDC_TRANSFORMS_MEASUREDPLAN_H
