//===- EvaluateOp.h - Core ops by their definitions ------------*- C++ -*-===//
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

/// The result of core op `op` on `device`; the global program is one for a
/// single device. Only ops that speak of global indices (`iota`,
/// `random_uniform`, `mask`) look at the device. `random_uniform` gives numbers
/// of another generator than the runtime's, which depend on the same things:
/// step, stream and global index. Emits an error and fails on an op that is not
/// of the core.
mlir::FailureOr<Tensor> evaluateOp(mlir::Operation *op,
                                   llvm::ArrayRef<const Tensor *> operands,
                                   const Devices &devices, int64_t device);

/// Whether `evaluateOp` knows `op`.
bool isCoreOp(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_INTERPRETER_EVALUATEOP_H
