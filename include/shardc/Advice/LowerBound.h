//===- LowerBound.h - What no plan of a candidate is below ------*- C++ -*-===//
//
// Two bounds. The first one is a formula of the sizes of the model, and takes
// no compilation; of a pipeline whose stages are known, it follows its
// schedule. The second one, of a pipeline, is of a step at the phase `kernels`,
// where its loop over microbatches has not been unrolled. Pure functions of the
// IR: thread-safe on distinct modules.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ADVICE_LOWERBOUND_H
#define SHARDC_ADVICE_LOWERBOUND_H

#include "shardc/Advice/Candidate.h"
#include "shardc/CostModel/MachineModel.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// What no plan of a candidate can be below.
struct LowerBound {
  /// Parameters and optimizer states of a device, of the average rank.
  double stateBytes = 0;
  /// Of all that is in the memory of a device when the first backward pass of
  /// the step begins: these, the inputs of GEMMs and of the step, gathered
  /// weights, and sums of gradients over microbatches. In a pipeline of the
  /// rank that needs most, when it has most microbatches in flight, however the
  /// layers are divided.
  double memoryBytes = 0;
  /// Of a step: the work of a device (the arithmetic of the GEMMs, those that
  /// are repeated included, what they read and write, and the update; in a
  /// pipeline, with its bubble, also the sums of tensor parallelism and the
  /// gathers of each microbatch) or its communication (the reduction of
  /// gradients, and those sums and gathers), whichever takes longer; where
  /// nothing overlaps, what comes to both. In a pipeline also the work of the
  /// rank that has the most, however its layers are divided. If its stages are
  /// known, the time in which the tasks of its ranks run in the order of the
  /// schedule. On a measured computer that virtual devices share, the
  /// arithmetic of the model alone.
  double seconds = 0;
};

/// The first bound, for `source`, a source module annotated as `candidate`
/// says, on `machine` as a device of its mesh sees it; `isNarrow`: it computes
/// in bf16. `stages`: those of the layers of a pipeline, or empty.
LowerBound getLowerBound(mlir::ModuleOp source, const ModelFacts &facts,
                         const Candidate &candidate, const Machine &machine,
                         bool isNarrow, llvm::ArrayRef<int64_t> stages = {});

/// The stages of the GEMMs with a parameter in the loss function of `imported`,
/// at the phase `import`; empty if one has none, or they are not in order.
std::vector<int64_t> getStagesOfLayers(mlir::ModuleOp imported);

/// The second bound, in seconds, for `module` at the phase `kernels`. Every op
/// of a task runs once for each microbatch on the rank of its stage, and others
/// on that of theirs once; ranks run one op after the other. The bubble is that
/// of the first bound. 0 without a pipeline, and on a measured computer.
double getTaskBound(mlir::ModuleOp module, const Candidate &candidate,
                    const Machine &machine);

} // namespace shardc

#endif // SHARDC_ADVICE_LOWERBOUND_H
