//===- PhaseEnd.h - What happens between phases -----------------*- C++ -*-===//

#ifndef SHARDC_LIB_PIPELINES_PHASEEND_H
#define SHARDC_LIB_PIPELINES_PHASEEND_H

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace shardc {

/// A pass that checks the contract of phase `index` and, if `dumpDir` is not
/// empty, writes the module to `dumpDir`/NN-NAME.mlir; it makes the directory
/// where needed. Changes nothing.
std::unique_ptr<mlir::Pass> createPhaseEndPass(int index, std::string dumpDir);

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_PHASEEND_H
