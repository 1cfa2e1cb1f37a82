//===- ValueCheck.h - The values of local ops, checked ----------*- C++ -*-===//

#ifndef SHARDC_LIB_INTERPRETER_VALUECHECK_H
#define SHARDC_LIB_INTERPRETER_VALUECHECK_H

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
  /// The run of the loop that the value is of, in a program that has a copy of
  /// the loop's body for each run; -1 for values outside of the loop. A sum of
  /// the loop is in run m the sum up to this run, and -1 that over all runs.
  int64_t run = -1;
};

/// Evaluates ops on all devices and compares their results with the values of
/// the global program; the base of the checks of whole programs. Emits an error
/// on every failure.
class ValueCheck {
protected:
  ValueCheck(mlir::func::FuncOp global, const Devices &devices,
             PartitionSummary &summary)
      : global(global), devices(devices), summary(summary) {}
  virtual ~ValueCheck() = default;

  /// The value in the global program with which `tracked` is compared.
  virtual const Tensor &getExpected(const Tracked &tracked) const {
    return reference.get(tracked.value);
  }
  /// The run of the loop that a value of the op being evaluated is of, if the
  /// global program makes it in `source`.
  virtual int64_t getRunOf(mlir::Operation *source) const { return -1; }

  /// An error at `op`, with the place in the program that it belongs to.
  mlir::InFlightDiagnostic emitError(mlir::Operation *op) const {
    return op->emitOpError() << place;
  }

  /// Gives every device its shards of `argument` of `function`, which is
  /// `source` in the global program.
  mlir::LogicalResult feed(mlir::func::FuncOp function,
                           mlir::BlockArgument argument, mlir::Value source);
  Placement getPlacementOf(ShardingAttr sharding, mlir::Value source);

  /// Evaluates a collective or a core op and checks its results.
  mlir::LogicalResult runCollective(mlir::Operation *op);
  mlir::LogicalResult runCore(mlir::Operation *op);
  /// What an op of the global program became, against its value there.
  mlir::LogicalResult checkNumbered(mlir::Operation *op);
  /// Ops that compilation adds. Masks, and ops that only relabel local elements
  /// or round them, keep the global value of their operand; others are not
  /// compared.
  virtual mlir::LogicalResult follow(mlir::Operation *op);

  /// Gives every device the rows `local` of `whole`, which is operand `index`
  /// of `source`, the loop of the global program: `result`, the microbatch of
  /// run `run`, which is the rows `rows` of the batch. Errors are at `op`.
  mlir::LogicalResult takeRows(mlir::Operation *op, mlir::Value whole,
                               mlir::Value result, AccumulateOp source,
                               unsigned index, llvm::ArrayRef<int64_t> local,
                               llvm::ArrayRef<int64_t> rows, int64_t run);
  /// By run the rows of the batch that the devices take, if each of them takes
  /// the next `localRows` rows of `whole`, which is operand `index` of
  /// `source`, the loop of the global program. An error at `op` unless the runs
  /// together take each row once.
  mlir::FailureOr<llvm::SmallVector<llvm::SmallVector<int64_t>>>
  findRows(mlir::Operation *op, mlir::Value whole, AccumulateOp source,
           unsigned index, int64_t localRows);

  /// Compares `result`, made by `op`, and lets the devices continue with the
  /// bits of the global value.
  mlir::LogicalResult check(mlir::Operation *op, mlir::Value result,
                            Tracked tracked);
  /// Compares `operand` of terminator `op` with `source`, a value of the global
  /// program, laid out by `sharding`.
  mlir::LogicalResult checkResult(mlir::Operation *op, mlir::Value operand,
                                  mlir::Value source, ShardingAttr sharding);

  mlir::func::FuncOp global;
  const Devices &devices;
  PartitionSummary &summary;
  GlobalRun reference;
  llvm::DenseMap<mlir::Value, DeviceTensors> tensors;
  llvm::DenseMap<mlir::Value, Tracked> values;
  /// The run of the loop that ops are evaluated in.
  int64_t currentRun = 0;
  /// For errors: "in task 0F1 of rank 0 ", or empty.
  std::string place;

private:
  /// Checks that a reduction has no reduced operand, which it would count once
  /// per device.
  mlir::LogicalResult checkReduction(mlir::Operation *op,
                                     const Tracked &operand);
  /// Checks that operands are partial sums only where the result is, and that
  /// their elements belong to those of the result.
  mlir::LogicalResult checkOperands(mlir::Operation *op, const Tracked &result);
  RoundingBound getBound(mlir::Operation *op, mlir::Value source,
                         const Tensor &expected);
  mlir::LogicalResult report(mlir::Operation *op, const Tracked &tracked,
                             const Divergence &divergence, double tolerance);
};

/// The rows that a device takes of a batch in run `run`, of `rows` each.
llvm::SmallVector<int64_t> getLocalRows(int64_t rows, int64_t run);

} // namespace shardc

#endif // SHARDC_LIB_INTERPRETER_VALUECHECK_H
