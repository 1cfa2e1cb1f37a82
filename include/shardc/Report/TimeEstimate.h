//===- TimeEstimate.h - Time estimates of partitioned programs --*- C++ -*-===//
//
// The additive model of docs/Machines.md, a roofline without overlap: the time
// of an op is that of its arithmetic, plus its memory traffic, plus its
// communication. Reads the IR only.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_TIMEESTIMATE_H
#define SHARDC_REPORT_TIMEESTIMATE_H

#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/CostModel/MachineModel.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

/// `nameOrFile` (see loadMachine) as seen by one device of `mesh`: a shared
/// machine is divided among all devices, others are placed on hosts.
llvm::Expected<Machine> loadMachineFor(MeshOp mesh, llvm::StringRef nameOrFile);

/// Emits a remark at `mesh` for each axis that `machine` describes and `mesh`
/// lacks.
void remarkUnknownAxes(const Machine &machine, MeshOp mesh);

/// Memory traffic of a function if every op other than a GEMM is fused with its
/// neighbours. Stored are arguments, GEMMs and their operands, results of the
/// function, and values that cross from one part of the step to another. Every
/// GEMM loads its operands. Of the other ops in one part, a stored value is
/// loaded by one for all, or by none if one of them computed it.
///
/// Collectives are transparent, so the traffic is the same before and after
/// `partition`. It covers the ops inside of kernels, and is nearly the same
/// after `kernels`; library GEMMs fuse some ops more.
class MemoryTraffic {
public:
  explicit MemoryTraffic(mlir::func::FuncOp function);

  /// Whether the op that `operand` belongs to loads it.
  bool isLoaded(mlir::OpOperand &operand) const {
    return loaded.contains(&operand);
  }
  /// Whether the op that computes `result` stores it.
  bool isStored(mlir::Value result) const {
    return stored.contains(resolve(result));
  }

private:
  /// The value that kernels and collectives hand on as `value`.
  mlir::Value resolve(mlir::Value value) const;
  void addAliases(mlir::Operation *op);
  void addStores(mlir::Operation *op);
  void addLoads(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, mlir::Value> aliases;
  llvm::DenseSet<mlir::Value> stored;
  llvm::DenseSet<mlir::OpOperand *> loaded;
  /// Values that an op other than a GEMM loads, by part.
  llvm::DenseSet<std::pair<mlir::Value, mlir::Attribute>> readInPart;
};

/// The work of one device for an op.
struct OpWork {
  /// GEMMs: 2·M·N·K. Reductions: one per element of the operand. Other
  /// arithmetic: one per element of the result. None for collectives,
  /// constants, and ops that only move elements.
  double flops = 0;
  bool isGemm = false;
  ComputeType computeType = ComputeType::F32;
  /// Of a GEMM: the rows and columns of its result, those of a batch together,
  /// and the products that an element adds up. 0: any.
  double rows = 0, columns = 0, terms = 0;
  /// Whether the library computes it, as a command of its own, and how.
  bool isLibraryGemm = false;
  GemmForm form;
  /// Operands that it loads and results that it stores.
  double memoryBytes = 0;
};

/// The work of `op` on its present shapes; none for an op with a body, whose
/// ops are counted one by one.
OpWork getOpWork(mlir::Operation *op, const MemoryTraffic &traffic);

/// The work of `op` but for the memory that it moves.
OpWork getArithmetic(mlir::Operation *op);

/// The arithmetic of `work` alone; of a GEMM with sides, and the machine's
/// rates for short ones, as much longer. A GEMM of the library whose times have
/// been measured takes these, its start included.
double getComputeSeconds(const Machine &machine, const OpWork &work);
/// The memory that `work` moves.
double getMemorySeconds(const Machine &machine, const OpWork &work);

/// The time of `op` of the global program as a function of its local sizes,
/// summed over the runs of the loop around it.
OpSeconds getOpSeconds(const Machine &machine, mlir::Operation *op,
                       const MemoryTraffic &traffic);

/// Sets the seconds of all ops of `module`.
void setSeconds(ModuleGraph &module, const Machine &machine);

/// When an op runs by the estimate with overlap; of a loop's body all runs
/// together.
struct OpSpan {
  /// An op of the function or of the body of a loop, with all that it encloses.
  mlir::Operation *op;
  double startSeconds = 0, seconds = 0;
  bool communicates = false;
  /// Of the GEMMs in it.
  double gemmFlops = 0;
  double memoryBytes = 0;
};

/// Seconds of one run of a program on each device.
struct TimeEstimate {
  double computeSeconds = 0;
  double memorySeconds = 0;
  double communicationSeconds = 0;
  /// In which its inputs come from the host (getInputSeconds), beside all that:
  /// those of the next run while the device works on this one.
  double inputSeconds = 0;
  /// With overlap of collectives and independent ops: two queues, one of
  /// compute and one of collectives, each in program order. An op starts as
  /// soon as its queue is free and its operands are complete. On a shared
  /// machine the cores do both: no overlap. No less than `inputSeconds`.
  double overlappedSeconds = 0;
  /// The ops that take time, in the order of execution.
  std::vector<OpSpan> spans;

  /// Without any overlap but that with the inputs.
  double getSeconds() const {
    return std::max(inputSeconds,
                    computeSeconds + memorySeconds + communicationSeconds);
  }
};

/// Seconds in which the inputs and labels of `function`, a local program, come
/// from the host to a device, or to all that share one.
double getInputSeconds(const Machine &machine, mlir::func::FuncOp function);

/// Seconds of the collective `op`; 0 if it is none.
double getCollectiveSeconds(const Machine &machine, mlir::Operation *op);

/// Seconds that `op` takes to start if it is a command of a plan whose time has
/// not been measured with its start; 0 otherwise.
double getStartSeconds(const Machine &machine, mlir::Operation *op);

/// Seconds of one run of `op`, with the ops that it encloses, one after the
/// other: starts, arithmetic, memory and communication.
double getSerialSeconds(const Machine &machine, mlir::Operation *op,
                        const MemoryTraffic &traffic);

/// The estimate for `function`, a local program, at any phase from `partition`
/// on. Where virtual devices share a computer that has been measured, from
/// `kernels` on it is that of the work which the runtime does for all of them;
/// on other machines whose commands have been measured, that of the commands.
TimeEstimate estimateTime(mlir::func::FuncOp function, const Machine &machine);

} // namespace shardc

#endif // SHARDC_REPORT_TIMEESTIMATE_H
