//===- DeviceSums.h - Values that only a sum over devices reads -*- C++ -*-===//
//
// Virtual CPU devices of one process see each other's operands: what only a sum
// over devices reads can be computed as the sum, so that the collective has
// nothing left to do. With w sharded over the rows, and x over the columns,
//
//   p = x · w;   y = all_reduce p
//
// one function computes y, tile by tile. Code generation and estimates share
// what is here. Pure functions of the IR; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_DEVICESUMS_H
#define SHARDC_ANALYSIS_DEVICESUMS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// The all-reduce or reduce-scatter that adds up `value`, of f32, over devices,
/// if nothing else reads it and it is computed outside of loops; else null.
mlir::Operation *getSumOverDevices(mlir::Value value);

/// The devices of a group whose GEMMs a CPU computes and adds up in one
/// function, where `kernel` is such a GEMM; 1 if there is no such function. The
/// rows of the first factor are those of the result: workers read the rows
/// whose sums they compute. Right factors of all devices stay in the caches.
int64_t getSummedDevices(KernelOp kernel);

} // namespace shardc

#endif // SHARDC_ANALYSIS_DEVICESUMS_H
