//===- FunctionCheck.h - One function, checked ------------------*- C++ -*-===//

#ifndef SHARDC_LIB_INTERPRETER_FUNCTIONCHECK_H
#define SHARDC_LIB_INTERPRETER_FUNCTIONCHECK_H

#include "ValueCheck.h"

namespace shardc {

/// Evaluates a function and its global program and compares, op by op; see
/// checkPartition. Used once. Emits an error on every failure.
class FunctionCheck : private ValueCheck {
public:
  FunctionCheck(mlir::func::FuncOp global, mlir::func::FuncOp partitioned,
                const Devices &devices, PartitionSummary &summary)
      : ValueCheck(global, devices, summary), partitioned(partitioned) {}

  /// Evaluates on inputs of `kind` and adds to the summary.
  mlir::LogicalResult run(InputKind kind);

private:
  mlir::LogicalResult checkSignature();
  /// The ops of a block, in run `run` of the loop whose body it is.
  mlir::LogicalResult runBlock(mlir::Block &block, int64_t run);
  /// A loop, run by run: in each the global program takes the rows that the
  /// devices take.
  mlir::LogicalResult runLoop(AccumulateOp loop);
  mlir::LogicalResult checkResults();

  mlir::func::FuncOp partitioned;
};

} // namespace shardc

#endif // SHARDC_LIB_INTERPRETER_FUNCTIONCHECK_H
