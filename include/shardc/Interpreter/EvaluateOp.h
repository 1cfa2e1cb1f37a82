//===- EvaluateOp.h - Core ops by their definitions -------------*- C++ -*-===//
//
// Naive on purpose, and independent of the code generator: each op is the loop
// that its description in docs/Dialect.md says it is. Stateless; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_EVALUATEOP_H
#define SHARDC_INTERPRETER_EVALUATEOP_H

#include "shardc/Interpreter/Devices.h"
#include "shardc/Interpreter/Tensor.h"

namespace shardc {

/// Which rows of the batch a microbatch is.
struct MicrobatchRows {
  /// The run of the loop.
  int64_t run = 0;
  /// By row of the microbatch the row of the batch; empty: as the op says.
  llvm::ArrayRef<int64_t> rows = {};
};

/// The result of core op `op` on `device`; the global program is one for a
/// single device. Only ops that speak of global indices (`iota`,
/// `random_uniform`, `mask`) look at the device and the microbatch.
/// `random_uniform` gives numbers of another generator than the runtime's,
/// which depend on the same things: step, stream and global index. Emits an
/// error and fails on an op that is not of the core.
mlir::FailureOr<Tensor> evaluateOp(mlir::Operation *op,
                                   llvm::ArrayRef<const Tensor *> operands,
                                   const Devices &devices, int64_t device,
                                   const MicrobatchRows &microbatch = {});

/// Whether `evaluateOp` knows `op`.
bool isCoreOp(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_INTERPRETER_EVALUATEOP_H
