//===- Pipeline.h - The stages of a module's pipeline -----------*- C++ -*-===//
//
// What `shardc.pipeline` and the mesh of a module say together. Reads the IR
// only; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_PIPELINE_H
#define SHARDC_DIALECT_SHARDC_IR_PIPELINE_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include <optional>

namespace shardc {

/// The most stages of a rank.
constexpr int64_t maxChunks = int64_t(1) << 20;

struct PipelineSize {
  /// The size of the pipeline's axis.
  int64_t ranks;
  /// The stages of each rank.
  int64_t chunks;

  int64_t getNumStages() const { return ranks * chunks; }
};

/// The size of the pipeline of the module that `op` is or is in. None without a
/// pipeline, or if the module has no legal mesh with its axis.
std::optional<PipelineSize> getPipelineSize(mlir::Operation *op);

/// The stage on which `op` uses its operands, that of its label or the source
/// of a transfer; null without one: all ranks do.
mlir::IntegerAttr getStageOfUse(mlir::Operation *op);

/// The stage on which `op` makes its results, that of its label or the target
/// of a transfer; null without one: all ranks do.
mlir::IntegerAttr getStageOfResults(mlir::Operation *op);

/// Whether `op` adds scalars of several stages, as no stage alone can: an
/// addition without a stage, outside of loops, whose operands are of stages or
/// such sums. Each rank adds what its stages have, and an all_reduce over the
/// pipeline's axis completes the sum.
bool addsOverStages(mlir::Operation *op);

/// Whether `op` is an all_reduce over the axis of the module's pipeline.
bool isOverPipeline(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_PIPELINE_H
