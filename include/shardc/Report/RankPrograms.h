//===- RankPrograms.h - The programs of a pipeline's ranks ------*- C++ -*-===//
//
// From `schedule` on a program of a pipeline is a function for each rank. Reads
// the IR only.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_RANKPROGRAMS_H
#define SHARDC_REPORT_RANKPROGRAMS_H

#include "shardc/CostModel/MachineModel.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/PipelineSchedules/SimulateSchedule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

namespace shardc {

/// The functions of program `name` ("train_step") in `module`, in the order of
/// ranks; none if it has no pipeline, or has not been scheduled.
llvm::SmallVector<mlir::func::FuncOp> getRankPrograms(mlir::ModuleOp module,
                                                      llvm::StringRef name);

/// The seconds of each task of `rank`, by its name: its ops one after the
/// other, each for its time by `getSerialSeconds`.
llvm::StringMap<double> getTaskSeconds(mlir::func::FuncOp rank,
                                       const Machine &machine);

/// The tasks of `ranks`, the functions of one program by rank, over time on
/// `machine`, and the transfers between them, without what comes before and
/// behind: the times of `--report=pipeline`. Fails, with an error, if the
/// module has no schedule.
mlir::FailureOr<PipelineSimulation>
simulateTasks(llvm::ArrayRef<mlir::func::FuncOp> ranks, const Machine &machine);

/// Seconds from the start of a program until its last rank ends, on `machine`.
/// `ranks` has its function for each rank, in order. Every rank runs its ops
/// one after the other, each for its time by `getSerialSeconds`. A message
/// crosses while its ranks compute: a receive ends when the message has
/// crossed, and a send keeps nobody waiting. An all-reduce over the pipeline
/// begins when all ranks have come to it. On a computer that has been measured
/// (`Machine::computer`) it is the sum of the ranks' estimates.
double estimateSeconds(llvm::ArrayRef<mlir::func::FuncOp> ranks,
                       const Machine &machine);

} // namespace shardc

#endif // SHARDC_REPORT_RANKPROGRAMS_H
