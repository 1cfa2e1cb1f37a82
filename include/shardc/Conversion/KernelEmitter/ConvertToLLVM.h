//===- ConvertToLLVM.h - Kernel functions to the LLVM dialect ---*- C++ -*-===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_CONVERTTOLLVM_H
#define SHARDC_CONVERSION_KERNELEMITTER_CONVERTTOLLVM_H

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Converts functions of kernels, in the LLVM, scf, arith, math and vector
/// dialects, to the LLVM dialect alone.
mlir::LogicalResult convertToLLVMDialect(mlir::ModuleOp functions);

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_CONVERTTOLLVM_H
