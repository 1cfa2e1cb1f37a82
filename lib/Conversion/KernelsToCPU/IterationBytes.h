//===- IterationBytes.h - The bytes that iterations touch -------*- C++ -*-===//
//
// Iterations of a nest mostly go down the rows of its results. Where they also
// go down the rows of a buffer, [i, j) touch bytes of their own, and iterations
// of two kernels need not wait for one another because of the others' bytes.
// Pure functions of the IR; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOCPU_ITERATIONBYTES_H
#define SHARDC_LIB_CONVERSION_KERNELSTOCPU_ITERATIONBYTES_H

#include "NestPlan.h"

namespace shardc {

/// By buffer of `touched`, positions among the operands and results of
/// `kernel`: b, if iterations [i, j) of the nest touch its bytes [i·b, j·b)
/// alone; 0, if they may touch any. What an op needs of an operand for some
/// rows of its result is what its sharding rule says.
llvm::SmallVector<int64_t>
getBytesPerIteration(KernelOp kernel, const NestPlan &plan,
                     llvm::ArrayRef<int64_t> touched);

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOCPU_ITERATIONBYTES_H
