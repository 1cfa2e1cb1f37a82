//===- PartitionCheck.h - Checks a partition against its program ----------===//
//
// Translation validation by execution: evaluates a global program and its
// partitioned form together, the latter on all devices of the mesh in lockstep,
// and compares every value as it is made. An op of the partitioned program
// names its value in the global one by `shardc.id`, and the layout of that
// value by `shardc.layout`, which `shardc-partition` keeps and adds. The
// placement of a collective's result is found by moving indices as the
// collective moves elements.
//
// After each comparison the devices continue with the bits of the global value
// and with NaN in all padding. Every op is thus checked alone, from equal
// operands: rounding does not accumulate, comparisons of rounded numbers have
// the same outcome, and the first divergence is reported at its origin.
//
// Stateless; one module at a time, any number of contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_PARTITIONCHECK_H
#define SHARDC_INTERPRETER_PARTITIONCHECK_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace shardc {

/// Gives every op with results in the functions of `global` a number,
/// `shardc.id`, that is unique in the module and the same on every run.
void numberValues(mlir::ModuleOp global);

/// The extent of a check.
struct PartitionSummary {
  /// Results of ops that were compared with the global program's, and how many
  /// of them had to be the same bits rather than within rounding; on integers.
  int64_t values = 0, exact = 0;
  /// Ops of the partitioned programs.
  int64_t ops = 0;
  int64_t devices = 0;
  /// Values that are not finite in the global program: padding that leaks into
  /// them could go unnoticed.
  int64_t nonFinite = 0;
  /// Ranks of the pipeline, whose devices are counted once.
  int64_t ranks = 1;
};

/// Checks every function of `partitioned` against that of the same name in
/// `global`, a numbered module over global tensors, on inputs of every kind. On
/// the first divergence emits an error at its op with the value, its layout,
/// the index, the device and both elements, and fails. Also fails, with an
/// error, on ops that the interpreter does not know.
mlir::FailureOr<PartitionSummary> checkPartition(mlir::ModuleOp global,
                                                 mlir::ModuleOp partitioned);

/// Checks the programs of the ranks of a pipeline, as the phase `schedule`
/// leaves them, against `global`, a numbered module over global tensors: runs
/// the functions of all ranks together, on inputs of every kind. Values of a
/// task are compared with the run of the global loop for its microbatch, sums
/// over microbatches with the sums so far, and results with those of the global
/// program. The errors are those of `checkPartition`, with rank and task, and
/// those of messages: of another rank, received twice or never, waited for
/// forever. Library GEMMs have no number; they are compared in what is made of
/// them.
mlir::FailureOr<PartitionSummary> checkRanks(mlir::ModuleOp global,
                                             mlir::ModuleOp programs);

} // namespace shardc

#endif // SHARDC_INTERPRETER_PARTITIONCHECK_H
