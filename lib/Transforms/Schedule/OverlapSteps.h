//===- OverlapSteps.h - What must come before what --------------*- C++ -*-===//

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
  /// Steps that must be done before this one begins: those whose results it
  /// uses, those that read what it overwrites, and for what is gathered again
  /// for the backward pass, where that begins.
  llvm::SmallSetVector<int, 4> needs = {};
};

/// The steps of `block`, whose collectives are starts and waits, in order.
std::vector<OverlapStep> getOverlapSteps(mlir::Block &block);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_SCHEDULE_OVERLAPSTEPS_H
