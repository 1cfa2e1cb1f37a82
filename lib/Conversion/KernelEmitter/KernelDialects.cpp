//===- KernelDialects.cpp - The dialects of kernel functions --------------===//

#include "shardc/Conversion/KernelEmitter/KernelDialects.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace shardc {

void insertKernelDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, math::MathDialect, vector::VectorDialect,
                  scf::SCFDialect, cf::ControlFlowDialect, LLVM::LLVMDialect>();
}

LogicalResult convertDialect(Operation *functions, StringRef dialect,
                             RewritePatternSet patterns) {
  ConversionTarget target(*functions->getContext());
  target.addIllegalDialect(dialect);
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(functions, target, std::move(patterns));
}

LogicalResult convertLoops(Operation *functions) {
  RewritePatternSet patterns(functions->getContext());
  populateSCFToControlFlowConversionPatterns(patterns);
  return convertDialect(functions, scf::SCFDialect::getDialectNamespace(),
                        std::move(patterns));
}

void addLLVMPatterns(LLVMTypeConverter &converter,
                     RewritePatternSet &patterns) {
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
}

} // namespace shardc
