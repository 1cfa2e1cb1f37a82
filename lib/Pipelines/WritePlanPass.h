//===- WritePlanPass.h - The last phase: writes the plan --------*- C++ -*-===//

#ifndef SHARDC_LIB_PIPELINES_WRITEPLANPASS_H
#define SHARDC_LIB_PIPELINES_WRITEPLANPASS_H

#include "shardc/Pipelines/Phases.h"

#include "mlir/Pass/Pass.h"

namespace shardc {

/// A pass that compiles the functions in @kernels, writes the plan and leaves
/// its bytes in `state.plan`. Changes nothing in the IR.
std::unique_ptr<mlir::Pass> createWritePlanPass(const CompileOptions &options,
                                                CompileState &state);

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_WRITEPLANPASS_H
