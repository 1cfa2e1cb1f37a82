//===- KernelFunction.h - One kernel as a function --------------*- C++ -*-===//

#ifndef SHARDC_CONVERSION_KERNELSTOCPU_KERNELFUNCTION_H
#define SHARDC_CONVERSION_KERNELSTOCPU_KERNELFUNCTION_H

#include "shardc/Analysis/GroupKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Creates function `name` of the interface that the runtime calls (see
/// `lowerKernels`) at the builder's place, with an empty block.
mlir::LLVM::LLVMFuncOp createKernelFunction(mlir::OpBuilder &builder,
                                            mlir::Location loc,
                                            llvm::StringRef name);

/// Iterations of a kernel that have nothing to do with the others. Devices that
/// differ in none of `coordinateAxes` compute the same from the same operands.
struct KernelPart {
  int64_t extent;
  /// The buffers that it reads and writes: positions among operands, then
  /// results.
  llvm::SmallVector<int64_t> buffers;
  /// By buffer: b, if its iterations [i, j) touch bytes [i·b, j·b) alone; 0, if
  /// they may touch any.
  llvm::SmallVector<int64_t> bytesPerIteration;
  /// Mesh axes whose coordinates it reads, by number and ascending.
  llvm::SmallVector<int64_t> coordinateAxes;
};

/// Builds function `name` at the end of `functions` for `kernel`, in the LLVM,
/// scf, arith, math and vector dialects, with vectors of at most so many lanes.
/// Returns its parts in the order of their iterations, which the lanes do not
/// change. It is the function of one device, or with `devices` = group.devices
/// that of a group: it has their operands, device by device, then their
/// results, or one, to which theirs are added up in the order of the tree of
/// docs/Hosts.md.
llvm::SmallVector<KernelPart>
buildKernelFunction(KernelOp kernel, MeshOp mesh, mlir::ModuleOp functions,
                    llvm::StringRef name, int64_t mostLanes, GroupKernel group,
                    int64_t devices);

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELSTOCPU_KERNELFUNCTION_H
