//===- InterpreterTest.h - Modules for tests of the interpreter -*- C++ -*-===//

#ifndef SHARDC_TEST_UNIT_INTERPRETER_INTERPRETERTEST_H
#define SHARDC_TEST_UNIT_INTERPRETER_INTERPRETERTEST_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Interpreter/Tensor.h"
#include "shardc/Pipelines/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace shardc {

/// A context and a module made from text.
class InterpreterTest : public testing::Test {
protected:
  InterpreterTest() {
    registerShardcDialects(registry);
    context.appendDialectRegistry(registry);
  }

  /// Parses `text`; fails the test if it is not valid.
  mlir::ModuleOp parse(llvm::StringRef text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(
        text, mlir::ParserConfig(&context), "test.mlir");
    EXPECT_TRUE(module);
    return *module;
  }

  /// The only op of kind `Op` in the module's first function.
  template <typename Op>
  Op find() {
    auto function = *module->getOps<mlir::func::FuncOp>().begin();
    return *function.getBody().getOps<Op>().begin();
  }

  static Tensor make(llvm::ArrayRef<int64_t> shape,
                     std::vector<double> elements) {
    Tensor tensor(shape, 0);
    EXPECT_EQ(tensor.data.size(), elements.size());
    tensor.data = std::move(elements);
    return tensor;
  }

  mlir::DialectRegistry registry;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace shardc

#endif // SHARDC_TEST_UNIT_INTERPRETER_INTERPRETERTEST_H
