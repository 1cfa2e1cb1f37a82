//===- EvaluateOp.h - Core ops by their definitions -------------*- C++ -*-===//
//
// Naive on purpose, and independent of the code generator: each op is the loop
// of its description in docs/Dialect.md. Stateless; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_EVALUATEOP_H
#define SHARDC_INTERPRETER_EVALUATEOP_H

#include "shardc/Interpreter/Devices.h"
#include "shardc/Interpreter/Tensor.h"

namespace shardc {

/// The rows of the batch that a microbatch has.
struct MicrobatchRows {
  /// The run of the loop.
  int64_t run = 0;
  /// The row of the batch for each row of the microbatch; empty: from the op's
  /// attributes.
  llvm::ArrayRef<int64_t> rows = {};
};

/// The result of core op `op` on `device`; the global program runs on a single
/// device. Only ops with global indices (`iota`, `random_uniform`, `mask`)
/// depend on the device and the microbatch. `random_uniform` has another
/// generator than the runtime, with the same inputs: step, stream and global
/// index. Emits an error and fails on an op outside the core.
mlir::FailureOr<Tensor> evaluateOp(mlir::Operation *op,
                                   llvm::ArrayRef<const Tensor *> operands,
                                   const Devices &devices, int64_t device,
                                   const MicrobatchRows &microbatch = {});

/// Whether `evaluateOp` knows `op`.
bool isCoreOp(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_INTERPRETER_EVALUATEOP_H
