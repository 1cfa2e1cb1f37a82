//===- PhaseInput.h - Checks IR that enters between two phases --*- C++ -*-===//
//
// The first pass of a compilation that begins after a phase.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINES_PHASEINPUT_H
#define SHARDC_PIPELINES_PHASEINPUT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace shardc {

/// A pass that fails unless the module is IR after phase `index`: no later
/// phase has changed it, and the contract of the phase holds. The error names
/// the phase found and the one expected. IR that shows no phase is accepted.
/// The IR stays as it is.
std::unique_ptr<mlir::Pass> createPhaseInputPass(int index);

} // namespace shardc

#endif // SHARDC_PIPELINES_PHASEINPUT_H
