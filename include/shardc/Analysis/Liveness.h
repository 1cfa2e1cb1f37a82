//===- Liveness.h - Lifetimes of the values of a schedule -------*- C++ -*-===//
//
// Steps are the positions of a function's ops; a loop comes before its body. A
// value from outside of a loop is needed until the loop's last step, and a sum
// of the loop from its first. A collective reads its operands and writes its
// results from its start to its wait. Snapshot of the function at construction;
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
  /// The step that begins to write the value; -1 for arguments of the function.
  int64_t getFirst(mlir::Value value) const;
  /// The last step that uses it; the defining one if there is none.
  int64_t getLast(mlir::Value value) const;
  /// The last step at which `op` reads its operands: its own, that of a loop's
  /// last op, or the wait for the collective that it starts.
  int64_t getEnd(mlir::Operation *op) const;
  int64_t getNumSteps() const { return steps.size(); }

private:
  llvm::DenseMap<mlir::Operation *, int64_t> steps;
};

/// Bytes of a tensor's elements, a bool taking one byte.
int64_t getNumBytes(mlir::Type tensor);

} // namespace shardc

#endif // SHARDC_ANALYSIS_LIVENESS_H
