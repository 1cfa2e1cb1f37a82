//===- DeviceCopies.h - Axes along which values differ ----------*- C++ -*-===//
//
// A forward dataflow analysis of a partitioned function: for each value the
// mesh axes along which devices may hold other bits.
//
//   - an argument differs along the axes that shard it;
//   - results differ along the axes of operands, and along those whose
//     coordinates an op reads;
//   - an all-reduce or all-gather makes devices equal along its axes.
//
// The runtime finds the same of a plan (runtime/src/exec/ReplicationAnalysis).
// Immutable, and so thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_DEVICECOPIES_H
#define SHARDC_ANALYSIS_DEVICECOPIES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Sharding/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

class DeviceCopies {
public:
  /// Of all values of `function`, which is partitioned, outside of kernels.
  explicit DeviceCopies(mlir::func::FuncOp function);

  /// The axes along which the devices' copies of `value` may differ; of a
  /// message received all.
  AxisSet getAxes(mlir::Value value) const { return axesOf.lookup(value); }
  /// The axes whose coordinates `op`, one in a kernel's body, reads.
  AxisSet getCoordinates(mlir::Operation *op) const;
  /// The axes of more than one device among `names`.
  AxisSet getSet(llvm::ArrayRef<mlir::StringAttr> names) const;
  /// How many copies there are of what differs along `axes`.
  int64_t getCount(AxisSet axes) const;

private:
  bool widen(mlir::Value value, AxisSet axes);
  bool propagate(mlir::Operation *op);

  MeshAxes mesh;
  llvm::DenseMap<mlir::Value, AxisSet> axesOf;
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_DEVICECOPIES_H
