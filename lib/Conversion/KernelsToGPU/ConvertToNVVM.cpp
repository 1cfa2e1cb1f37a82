//===- ConvertToNVVM.cpp - GPU functions to the NVVM dialect --------------===//

#include "GpuKernelFunction.h"
#include "shardc/Conversion/KernelEmitter/KernelDialects.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-convert-to-nvvm"

using namespace mlir;

namespace shardc {

LogicalResult convertToNVVMDialect(gpu::GPUModuleOp functions) {
  LLVM_DEBUG(
      llvm::dbgs() << "convert "
                   << llvm::range_size(functions.getOps<gpu::GPUFuncOp>())
                   << " functions\n");
  MLIRContext *context = functions.getContext();
  if (failed(convertLoops(functions)))
    return failure();
  LLVMTypeConverter converter(context);
  // Before the rest: the patterns from GPU would turn square roots into calls
  // of CUDA's libdevice, which is not linked.
  RewritePatternSet functionsOfMath(context);
  populateMathToLLVMConversionPatterns(converter, functionsOfMath);
  if (failed(convertDialect(functions, math::MathDialect::getDialectNamespace(),
                            std::move(functionsOfMath))))
    return failure();
  RewritePatternSet patterns(context);
  addLLVMPatterns(converter, patterns);
  populateGpuToNVVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addLegalOp<gpu::GPUModuleOp, gpu::ModuleEndOp>();
  return applyFullConversion(functions, target, std::move(patterns));
}

} // namespace shardc
