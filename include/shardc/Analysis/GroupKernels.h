//===- GroupKernels.h - Kernels of all devices of a group -------*- C++ -*-===//
//
// Virtual CPU devices of one process see each other's operands: one function
// may compute the results of a group of them. With w sharded over the rows, and
// x over the columns,
//
//   p = x · w;   y = all_reduce p
//
// it computes y, tile by tile, so that the collective has nothing left to do.
// With w sharded over the columns, and the same x on all devices,
//
//   y = max(x · w + b, 0)
//
// it loads each element of x once for the columns of all devices. Code
// generation and estimates share what is here. Pure functions of the IR;
// thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_GROUPKERNELS_H
#define SHARDC_ANALYSIS_GROUPKERNELS_H

#include "shardc/Analysis/DeviceCopies.h"

namespace shardc {

/// The all-reduce or reduce-scatter that adds up `value`, of f32, over devices,
/// if nothing else reads it; else null.
mlir::Operation *getSumOverDevices(mlir::Value value);

/// A function for a group of devices.
struct GroupKernel {
  /// Of how many; 1: there is none.
  int64_t devices = 1;
  /// The operand that is the same on all of them, the left factor of a GEMM
  /// whose right factors differ; negative: their results are added up.
  int64_t sharedOperand = -1;

  bool addsUp() const { return devices > 1 && sharedOperand < 0; }
};

/// The function for a group of devices that a CPU has of `kernel`, which is a
/// GEMM. Rows of the left factor are those of the result: workers read the rows
/// whose results they compute. Right factors of all devices stay in the caches.
GroupKernel getGroupKernel(KernelOp kernel, const DeviceCopies &copies);

} // namespace shardc

#endif // SHARDC_ANALYSIS_GROUPKERNELS_H
