//===- Programs.h - Programs made from the loss function --------*- C++ -*-===//
//
// A builder of the functions that replace the loss function: train step,
// evaluation and prediction. Arguments of such a program are arguments of the
// loss function and new states, its body starts as a copy of the body of the
// loss function, and `shardc.result` names its results.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_PROGRAMS_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_PROGRAMS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace shardc {

/// Builds one program, in this order: arguments, `cloneBody`, further ops,
/// results, `finish`. Every op built by `getBuilder` carries the current part
/// of the step. Not thread-safe.
class Program : private mlir::OpBuilder::Listener {
public:
  /// Creates the function `name` before `loss`; its first ops belong to `part`.
  Program(mlir::func::FuncOp loss, llvm::StringRef name, Part part);

  /// Adds the parameters of the loss as arguments and returns them.
  llvm::SmallVector<mlir::Value> addParameters();
  /// Adds the inputs of the loss as arguments.
  void addInputs();
  /// Adds the inputs and labels of the loss as arguments.
  void addData();
  /// Adds a state as an argument; `sharding` may be null.
  mlir::Value addState(StateAttr role, mlir::RankedTensorType type,
                       ShardingAttr sharding, mlir::Location loc);

  /// Copies the body of the loss function, all of whose arguments have been
  /// added, and returns the loss. With `decompose`, replaces the composites
  /// that have no gradient of their own.
  mlir::Value cloneBody(bool decompose);

  /// Copies the ops that `value` of the loss function needs, of which all
  /// arguments have been added, and returns its copy.
  mlir::Value cloneValue(mlir::Value value);

  /// Makes all ops that are built from now on belong to `part`.
  void setPart(Part part);

  /// Adds `value` as the result `name`; `sharding` may be null.
  void addResult(mlir::Value value, llvm::StringRef name,
                 ShardingAttr sharding = {});

  /// Ends the body, decomposes all composites, simplifies the function, and
  /// returns it.
  mlir::func::FuncOp finish();

  mlir::OpBuilder &getBuilder() { return builder; }

private:
  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint) override;
  mlir::Value addArgument(mlir::Type type, mlir::Attribute role,
                          ShardingAttr sharding, mlir::ArrayAttr contracts,
                          mlir::Location loc);
  mlir::Value addArgumentOf(mlir::BlockArgument argument);
  /// Sets the type of the function and the attributes of its arguments.
  void describeArguments();

  mlir::func::FuncOp loss, function;
  mlir::OpBuilder builder;
  mlir::IRMapping mapping;
  llvm::SmallVector<mlir::Value> results;
  /// Attributes of arguments and results. They are set all at once, because the
  /// context never frees a list of attributes or a function type.
  llvm::SmallVector<mlir::DictionaryAttr> argumentAttributes, resultAttributes;
  PartAttr part;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_PROGRAMS_H
