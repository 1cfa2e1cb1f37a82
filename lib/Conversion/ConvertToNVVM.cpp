//===- ConvertToNVVM.cpp - GPU functions to the NVVM dialect --------------===//

#include "GpuKernelFunction.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace shardc {

/// Converts away the ops of dialect `D`.
template <typename D>
static LogicalResult convertDialect(Operation *module,
                                    RewritePatternSet &&patterns) {
  ConversionTarget target(*module->getContext());
  target.addIllegalDialect<D>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(module, target, std::move(patterns));
}

LogicalResult convertToNVVMDialect(gpu::GPUModuleOp functions) {
  MLIRContext *context = functions.getContext();
  RewritePatternSet loops(context);
  populateSCFToControlFlowConversionPatterns(loops);
  if (failed(convertDialect<scf::SCFDialect>(functions, std::move(loops))))
    return failure();
  LLVMTypeConverter converter(context);
  // Before the rest: the patterns from GPU would turn square roots into calls
  // of CUDA's libdevice, which is not here.
  RewritePatternSet functionsOfMath(context);
  populateMathToLLVMConversionPatterns(converter, functionsOfMath);
  if (failed(convertDialect<math::MathDialect>(functions,
                                               std::move(functionsOfMath))))
    return failure();
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  populateGpuToNVVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addLegalOp<gpu::GPUModuleOp, gpu::ModuleEndOp>();
  return applyFullConversion(functions, target, std::move(patterns));
}

} // namespace shardc
