//===- OverlapSteps.h - Dependence graph of a block -------------*- C++ -*-===//
//
// The steps that shardc-overlap-collectives orders, and the dependences between
// them. Thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_SCHEDULE_OVERLAPSTEPS_H
#define SHARDC_LIB_TRANSFORMS_SCHEDULE_OVERLAPSTEPS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "llvm/ADT/SetVector.h"

#include <vector>

namespace shardc {

/// A step of the given order of a block: an op, or the start of a collective.
struct OverlapStep {
  mlir::Operation *op;
  /// The wait of a collective; null for other ops.
  mlir::Operation *wait = nullptr;
  /// The step is an all_reduce.
  bool worksInPlace = false;
  /// The distinct values of its block that the op uses.
  llvm::SmallSetVector<mlir::Value, 4> operands = {};
  /// The steps that must be done before this one begins: the producers of its
  /// operands, the readers of the buffers that it overwrites and, for
  /// rematerialised all-gathers, the first step of the backward pass.
  llvm::SmallSetVector<int, 4> needs = {};
};

/// Returns the steps of `block`, whose collectives are starts and waits, in the
/// order of the block.
std::vector<OverlapStep> getOverlapSteps(mlir::Block &block);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_SCHEDULE_OVERLAPSTEPS_H
