//===- Liveness.h - When values of a schedule are alive ---------*- C++ -*-===//
//
// Steps are the positions of a function's ops, a loop's own before those of its
// body. What comes from outside of a loop is needed until its last step, and
// what a loop sums up from its first. Snapshot of the function at construction;
// thread-safe to read.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_LIVENESS_H
#define SHARDC_ANALYSIS_LIVENESS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// The steps at which values of a function are needed.
class Liveness {
public:
  explicit Liveness(mlir::func::FuncOp function);

  /// Position of an op of the function or of a loop's body.
  int64_t getStep(mlir::Operation *op) const { return steps.lookup(op); }
  /// The step that defines the value; -1 for arguments of the function.
  int64_t getFirst(mlir::Value value) const;
  /// The last step that uses it; the defining one if there is none.
  int64_t getLast(mlir::Value value) const;
  int64_t getNumSteps() const { return steps.size(); }

private:
  /// The last step of an op: of a loop that of its last op.
  int64_t getEnd(mlir::Operation *op) const;

  llvm::DenseMap<mlir::Operation *, int64_t> steps;
};

/// Bytes of a tensor's elements, a bool taking one byte.
int64_t getNumBytes(mlir::Type tensor);

} // namespace shardc

#endif // SHARDC_ANALYSIS_LIVENESS_H
