//===- CompileKernelsTest.cpp - Objects and shared objects ----------------===//

#include "shardc/Target/CPU/CompileKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace shardc {
namespace {

llvm::Expected<std::string> compile(const char *source) {
  MLIRContext context;
  context.loadDialect<LLVM::LLVMDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
  EXPECT_TRUE(module);
  llvm::Expected<std::string> object = compileToObject(*module);
  if (!object)
    return object.takeError();
  return linkSharedObject(*object);
}

constexpr const char *plain = R"(
  llvm.func @double(%buffer: !llvm.ptr) {
    %0 = llvm.load %buffer : !llvm.ptr -> f32
    %1 = llvm.fadd %0, %0 : f32
    llvm.store %1, %buffer : f32, !llvm.ptr
    llvm.return
  })";

TEST(CompileKernels, GivesEqualBytesForEqualModules) {
  llvm::Expected<std::string> first = compile(plain), second = compile(plain);
  ASSERT_TRUE(bool(first)) << llvm::toString(first.takeError());
  ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError());
  EXPECT_EQ(first->substr(0, 4), "\x7f"
                                 "ELF");
  EXPECT_EQ(*first, *second);
}

TEST(CompileKernels, RefusesUnknownSymbolsByName) {
  llvm::Expected<std::string> code = compile(R"(
    llvm.func @expf(f32) -> f32
    llvm.func @call(%buffer: !llvm.ptr) {
      %0 = llvm.load %buffer : !llvm.ptr -> f32
      %1 = llvm.call @expf(%0) : (f32) -> f32
      llvm.store %1, %buffer : f32, !llvm.ptr
      llvm.return
    })");
  ASSERT_FALSE(bool(code));
  EXPECT_NE(llvm::toString(code.takeError()).find("'expf'"), std::string::npos);
}

TEST(CompileKernels, RefusesWhatIsNoObject) {
  llvm::Expected<std::string> code = linkSharedObject("not an object file");
  ASSERT_FALSE(bool(code));
  EXPECT_NE(llvm::toString(code.takeError()).find("linking"),
            std::string::npos);
}

TEST(CompileKernels, LinksAgainAfterAnError) {
  llvm::consumeError(linkSharedObject("").takeError());
  llvm::Expected<std::string> code = compile(plain);
  EXPECT_TRUE(bool(code)) << llvm::toString(code.takeError());
}

} // namespace
} // namespace shardc
