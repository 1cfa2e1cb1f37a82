//===- ConvertToLLVM.cpp - Kernel functions to the LLVM dialect -----------===//

#include "shardc/Conversion/KernelEmitter/ConvertToLLVM.h"

#include "shardc/Conversion/KernelEmitter/KernelDialects.h"

#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"

using namespace mlir;

namespace shardc {

LogicalResult convertToLLVMDialect(ModuleOp functions) {
  if (failed(convertLoops(functions)))
    return failure();
  LLVMTypeConverter converter(functions.getContext());
  RewritePatternSet patterns(functions.getContext());
  addLLVMPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*functions.getContext());
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(functions, target, std::move(patterns));
}

} // namespace shardc
