//===- MemoryBound.h - The least memory of a step ---------------*- C++ -*-===//

#ifndef SHARDC_LIB_ADVICE_MEMORYBOUND_H
#define SHARDC_LIB_ADVICE_MEMORYBOUND_H

#include "Layers.h"

#include "shardc/Advice/Candidate.h"

namespace shardc {

/// The bytes of `LowerBound::memoryBytes`, for an annotated `loss` with
/// `layers` and a candidate that names its strategy; `modelSize`: the devices
/// along the axis of tensor parallelism; `stages`: those of the layers of a
/// pipeline, or empty.
double getMemoryBound(mlir::func::FuncOp loss, llvm::ArrayRef<Layer> layers,
                      const ModelFacts &facts, const Candidate &candidate,
                      bool isNarrow, double modelSize,
                      llvm::ArrayRef<int64_t> stages);

} // namespace shardc

#endif // SHARDC_LIB_ADVICE_MEMORYBOUND_H
