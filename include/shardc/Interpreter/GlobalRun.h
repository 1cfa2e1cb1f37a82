//===- GlobalRun.h - The global program, evaluated -------------*- C++ -*-===//

#ifndef SHARDC_INTERPRETER_GLOBALRUN_H
#define SHARDC_INTERPRETER_GLOBALRUN_H

#include "shardc/Interpreter/Inputs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// All values of one run of a function over global tensors. Borrows the
/// function.
class GlobalRun {
public:
  /// Evaluates `function`, which has one block, on `makeInput` of `kind`. Emits
  /// an error and fails on ops that are not of the core.
  static mlir::FailureOr<GlobalRun> run(mlir::func::FuncOp function,
                                        InputKind kind);

  const Tensor &get(mlir::Value value) const {
    return values.find(value)->second;
  }
  /// The result of the op with this `shardc.id`; null if there is none.
  mlir::Value find(int64_t id) const { return byId.lookup(id); }

private:
  llvm::DenseMap<mlir::Value, Tensor> values;
  llvm::DenseMap<int64_t, mlir::Value> byId;
};

} // namespace shardc

#endif // SHARDC_INTERPRETER_GLOBALRUN_H
