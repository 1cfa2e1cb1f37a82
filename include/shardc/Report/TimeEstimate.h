//===- TimeEstimate.h - How long a partitioned program takes ----*- C++ -*-===//
//
// The additive model of docs/Machines.md: each op takes its arithmetic, plus
// the memory that it moves, plus its communication. Reads the IR only.
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

/// `nameOrFile` (see loadMachine) as the devices of `mesh` find it: a shared
/// machine is divided among them.
llvm::Expected<Machine> loadMachineFor(MeshOp mesh, llvm::StringRef nameOrFile);

/// Emits a remark at `mesh` for each axis that `machine` describes and `mesh`
/// lacks.
void remarkUnknownAxes(const Machine &machine, MeshOp mesh);

/// What the ops of a function read and write in memory, if all that is not a
/// matrix product is fused with its neighbours. Stored are arguments, matrix
/// products and what they multiply, what is returned, and what one part of the
/// step leaves to another. A product loads its operands; of the other ops of a
/// part, one loads a stored value for all, and none if one of them computed it.
///
/// A collective hands on what it is given, so the answer is the same before and
/// after `partition`; kernels are looked into, so it is nearly the same after
/// `kernels`: the library's products fuse some more.
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
  /// What `value` is before kernels and collectives.
  mlir::Value resolve(mlir::Value value) const;
  void addAliases(mlir::Operation *op);
  void addStores(mlir::Operation *op);
  void addLoads(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, mlir::Value> aliases;
  llvm::DenseSet<mlir::Value> stored;
  llvm::DenseSet<mlir::OpOperand *> loaded;
  /// Values that an op other than a product loads, by part.
  llvm::DenseSet<std::pair<mlir::Value, mlir::Attribute>> readInPart;
};

/// What one device does for an op.
struct OpWork {
  /// Matrix products: 2·M·N·K. Reductions: one per element of the operand.
  /// Other arithmetic: one per element of the result. None for collectives,
  /// constants, and what only moves elements.
  double flops = 0;
  bool isProduct = false;
  ComputeType computeType = ComputeType::F32;
  /// Operands that it loads and results that it stores.
  double memoryBytes = 0;
};

/// The work of `op` on the shapes that it has now; none for an op with a body,
/// whose ops count by themselves.
OpWork getOpWork(mlir::Operation *op, const MemoryTraffic &traffic);

/// The arithmetic of `work` alone.
double getComputeSeconds(const Machine &machine, const OpWork &work);
/// The memory that `work` moves.
double getMemorySeconds(const Machine &machine, const OpWork &work);

/// The same of `op` in the global program, by the sizes on which a device will
/// work, in all runs of the loop that it is in.
OpSeconds getOpSeconds(const Machine &machine, mlir::Operation *op,
                       const MemoryTraffic &traffic);

/// Sets the seconds of all ops of `module`.
void setSeconds(ModuleGraph &module, const Machine &machine);

/// Seconds of one run of a program on each device.
struct TimeEstimate {
  double computeSeconds = 0;
  double memorySeconds = 0;
  double communicationSeconds = 0;
  /// With collectives beside what does not depend on them: two queues, one of
  /// compute and one of collectives, each in program order, where an op starts
  /// as soon as its queue is free and its operands are there. On a shared
  /// machine the cores do both: no overlap.
  double overlappedSeconds = 0;

  /// Without any overlap.
  double getSeconds() const {
    return computeSeconds + memorySeconds + communicationSeconds;
  }
};

/// Seconds of the collective `op`; 0 if it is none.
double getCollectiveSeconds(const Machine &machine, mlir::Operation *op);

/// The estimate for `function`, local, at any phase from `partition` on.
TimeEstimate estimateTime(mlir::func::FuncOp function, const Machine &machine);

} // namespace shardc

#endif // SHARDC_REPORT_TIMEESTIMATE_H
