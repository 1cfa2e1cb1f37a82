//===- PhaseInput.h - What phases start from --------------------*- C++ -*-===//
//
// The check of IR with which a compilation begins between two phases.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINES_PHASEINPUT_H
#define SHARDC_PIPELINES_PHASEINPUT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace shardc {

/// A pass that fails with an error unless the module is IR of phase `index`:
/// no later phase has worked on it, and the contract of the phase holds. The
/// error names the phase found and the one expected. Functions that show no
/// phase pass. Changes nothing in the IR.
std::unique_ptr<mlir::Pass> createPhaseInputPass(int index);

} // namespace shardc

#endif // SHARDC_PIPELINES_PHASEINPUT_H
