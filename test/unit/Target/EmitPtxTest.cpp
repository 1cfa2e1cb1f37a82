//===- EmitPtxTest.cpp - Functions that PTX can be written for ------------===//

#include "shardc/Target/CUDA/EmitPtx.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace shardc {
namespace {

/// The PTX of a gpu.module with `attributes` and `functions`, or the error.
std::string emit(const std::string &attributes, const std::string &functions) {
  MLIRContext context;
  context.loadDialect<gpu::GPUDialect, LLVM::LLVMDialect, NVVM::NVVMDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "gpu.module @kernels " + attributes + " {\n" + functions + "\n}",
      &context);
  EXPECT_TRUE(module);
  llvm::Expected<std::string> ptx = emitPtx(*module);
  return ptx ? *ptx : llvm::toString(ptx.takeError());
}

constexpr const char *plainProgram = R"(
  llvm.func @double(%buffer: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %0 = llvm.load %buffer : !llvm.ptr<1> -> f32
    %1 = llvm.fadd %0, %0 : f32
    llvm.store %1, %buffer : f32, !llvm.ptr<1>
    llvm.return
  })";

TEST(EmitPtx, GivesEqualTextForEqualModules) {
  std::string ptx = emit("attributes {shardc.chip = \"sm_80\"}", plainProgram);
  EXPECT_NE(ptx.find(".target sm_80"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find(".visible .entry double("), std::string::npos) << ptx;
  EXPECT_EQ(ptx, emit("attributes {shardc.chip = \"sm_80\"}", plainProgram));
}

TEST(EmitPtx, NeedsToKnowTheGpu) {
  EXPECT_EQ(emit("", plainProgram),
            "the kernels do not say for which GPU they are: "
            "expected 'shardc.chip'");
}

TEST(EmitPtx, RefusesUnknownFunctionsByName) {
  EXPECT_EQ(emit("attributes {shardc.chip = \"sm_80\"}", R"(
  llvm.func @__nv_expf(f32) -> f32
  llvm.func @kernel(%buffer: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %0 = llvm.load %buffer : !llvm.ptr<1> -> f32
    %1 = llvm.call @__nv_expf(%0) : (f32) -> f32
    llvm.store %1, %buffer : f32, !llvm.ptr<1>
    llvm.return
  })"),
            "the kernels need the function '__nv_expf', which no GPU provides");
}

} // namespace
} // namespace shardc
