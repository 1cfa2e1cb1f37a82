//===- KernelDialects.h - The dialects of kernel functions ------*- C++ -*-===//
//
// Functions of kernels are built of arith, math, vector and scf, for CPUs and
// GPUs alike, and converted to LLVM. The parts that both conversions share.
// Stateless; thread-safe on distinct contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_KERNELDIALECTS_H
#define SHARDC_CONVERSION_KERNELEMITTER_KERNELDIALECTS_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Transforms/DialectConversion.h"

namespace shardc {

/// Registers these dialects and those that they are converted to.
void insertKernelDialects(mlir::DialectRegistry &registry);

/// Converts the ops of `dialect` inside of `functions`; other ops may stay.
mlir::LogicalResult convertDialect(mlir::Operation *functions,
                                   llvm::StringRef dialect,
                                   mlir::RewritePatternSet patterns);

/// Turns loops and conditions of scf inside of `functions` into blocks.
mlir::LogicalResult convertLoops(mlir::Operation *functions);

/// Adds patterns that turn arith, vector and branches into LLVM.
void addLLVMPatterns(mlir::LLVMTypeConverter &converter,
                     mlir::RewritePatternSet &patterns);

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_KERNELDIALECTS_H
