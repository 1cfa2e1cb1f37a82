//===- PhaseEnd.h - The pass after each phase -------------------*- C++ -*-===//

#ifndef SHARDC_LIB_PIPELINES_PHASEEND_H
#define SHARDC_LIB_PIPELINES_PHASEEND_H

#include "shardc/Pipelines/Phases.h"

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace shardc {

/// A pass that checks the contract of phase `index` after MLIR's verifier and,
/// if `dumpDir` is not empty, writes the module to `dumpDir`/NN-NAME.mlir; it
/// makes the directory on demand. The IR stays as it is. Sets
/// `hasBrokenContract` of `state` if the contract is broken.
std::unique_ptr<mlir::Pass> createPhaseEndPass(int index, std::string dumpDir,
                                               CompileState &state);

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_PHASEEND_H
