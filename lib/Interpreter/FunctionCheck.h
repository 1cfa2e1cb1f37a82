//===- FunctionCheck.h - One function, checked ------------------*- C++ -*-===//

#ifndef SHARDC_LIB_INTERPRETER_FUNCTIONCHECK_H
#define SHARDC_LIB_INTERPRETER_FUNCTIONCHECK_H

#include "shardc/Interpreter/GlobalRun.h"
#include "shardc/Interpreter/PartitionCheck.h"
#include "shardc/Interpreter/Placement.h"
#include "shardc/Interpreter/RoundingBound.h"

namespace shardc {

/// The counterpart of a local value in the global program.
struct Tracked {
  /// Of the global program.
  mlir::Value value;
  Placement placement;
  RoundingBound bound;
};

/// Evaluates a function and its global program and compares, op by op; see
/// checkPartition. Used once. Emits an error on every failure.
class FunctionCheck {
public:
  FunctionCheck(mlir::func::FuncOp global, mlir::func::FuncOp partitioned,
                const Devices &devices, PartitionSummary &summary)
      : global(global), partitioned(partitioned), devices(devices),
        summary(summary) {}

  /// Evaluates on inputs of `kind` and adds to the summary.
  mlir::LogicalResult run(InputKind kind);

private:
  mlir::LogicalResult checkSignature();
  /// Gives every device its shards of an argument.
  mlir::LogicalResult feed(mlir::BlockArgument argument);
  Placement place(ShardingAttr sharding, mlir::Value source);

  /// The ops of a block; `run` is that of the loop whose body it is.
  mlir::LogicalResult runBlock(mlir::Block &block, int64_t run);
  mlir::LogicalResult runCollective(mlir::Operation *op);
  /// Checks that a reduction has no reduced operand, which it would count once
  /// per device.
  mlir::LogicalResult checkReduction(mlir::Operation *op,
                                     const Tracked &operand);
  mlir::LogicalResult runCore(mlir::Operation *op, int64_t run);
  /// Ops that partitioning adds. Masks, and ops that only relabel local
  /// elements, keep the global value of their operand; others are not compared.
  mlir::LogicalResult follow(mlir::Operation *op);
  /// Checks that operands are partial sums only where the result is, and that
  /// their elements belong to those of the result.
  mlir::LogicalResult checkOperands(mlir::Operation *op, const Tracked &result);
  RoundingBound getBound(mlir::Operation *op, mlir::Value source);

  /// A loop, run by run: in each the global program takes the rows that the
  /// devices take.
  mlir::LogicalResult runLoop(AccumulateOp loop);
  /// By run the rows of the batch that the devices take, or an error unless
  /// they take each row once. `source` is the loop of the global program.
  mlir::FailureOr<llvm::SmallVector<llvm::SmallVector<int64_t>>>
  findRows(AccumulateOp loop, AccumulateOp source);
  /// Gives every device the rows of run `run`, [first, last), of the operands.
  mlir::LogicalResult feedRows(AccumulateOp loop, AccumulateOp source,
                               llvm::ArrayRef<int64_t> local,
                               llvm::ArrayRef<int64_t> rows);

  /// Compares `result`, made by `op`, and lets the devices continue with the
  /// bits of the global value.
  mlir::LogicalResult check(mlir::Operation *op, mlir::Value result,
                            Tracked tracked);
  mlir::LogicalResult report(mlir::Operation *op, const Tracked &tracked,
                             const Divergence &divergence, double tolerance);
  mlir::LogicalResult checkResults();

  mlir::func::FuncOp global, partitioned;
  const Devices &devices;
  PartitionSummary &summary;
  GlobalRun reference;
  llvm::DenseMap<mlir::Value, DeviceTensors> tensors;
  llvm::DenseMap<mlir::Value, Tracked> values;
};

} // namespace shardc

#endif // SHARDC_LIB_INTERPRETER_FUNCTIONCHECK_H
