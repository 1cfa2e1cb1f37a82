//===- ConvertToLLVM.cpp - Kernel functions to the LLVM dialect -----------===//

#include "KernelDialects.h"
#include "KernelFunction.h"

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
