//===- GlobalRun.h - The global program, evaluated --------------*- C++ -*-===//

#ifndef SHARDC_INTERPRETER_GLOBALRUN_H
#define SHARDC_INTERPRETER_GLOBALRUN_H

#include "shardc/Interpreter/EvaluateOp.h"
#include "shardc/Interpreter/Inputs.h"

#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// All values of one run of a function over global tensors; of the body of a
/// loop those of its last run. Borrows the function.
class GlobalRun {
public:
  /// Evaluates `function`, which has one block, on `makeInput` of `kind`. Emits
  /// an error and fails on ops outside the core.
  static mlir::FailureOr<GlobalRun> run(mlir::func::FuncOp function,
                                        InputKind kind);

  /// Evaluates the body of `loop` once more, on these rows of its operands,
  /// which must be the same microbatch for every op of the body. Its values are
  /// then those of this run; the sums stay as they are.
  mlir::LogicalResult runBody(AccumulateOp loop, MicrobatchRows microbatch);

  /// Evaluates `loop`, with these rows of its operands in each run, and
  /// everything after it once more. `rows` has an entry per run, and the
  /// entries together hold each row of the batch once. The semantics of a step
  /// leave the choice of rows open.
  mlir::LogicalResult regroup(AccumulateOp loop,
                              llvm::ArrayRef<llvm::SmallVector<int64_t>> rows);

  const Tensor &get(mlir::Value value) const {
    return values.find(value)->second;
  }
  /// The first result of the op with this `shardc.id`; null if there is none.
  mlir::Value find(int64_t id) const { return byId.lookup(id); }

private:
  mlir::LogicalResult evaluate(mlir::Operation &op, MicrobatchRows microbatch);
  mlir::LogicalResult
  evaluateLoop(AccumulateOp loop,
               llvm::ArrayRef<llvm::SmallVector<int64_t>> rows);

  llvm::DenseMap<mlir::Value, Tensor> values;
  llvm::DenseMap<int64_t, mlir::Value> byId;
};

} // namespace shardc

#endif // SHARDC_INTERPRETER_GLOBALRUN_H
