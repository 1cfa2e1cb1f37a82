//===- Programs.h - Programs made from the loss function --------*- C++ -*-===//
//
// A function under construction beside the loss function: its arguments are
// some of the loss's and new states, its body starts as a copy of the loss's,
// and `shardc.result` names what it returns.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_PROGRAMS_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_PROGRAMS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace shardc {

/// Builds one program. Every op built through `getBuilder` carries the current
/// part of the step.
class Program : private mlir::OpBuilder::Listener {
public:
  /// Starts function `name` before `loss`, in part `part`.
  Program(mlir::func::FuncOp loss, llvm::StringRef name, Part part);

  /// Adds the parameters of the loss as arguments and returns them.
  llvm::SmallVector<mlir::Value> addParameters();
  /// Adds the inputs and labels of the loss as arguments.
  void addData();
  /// Adds a state; `sharding` may be null.
  mlir::Value addState(StateAttr role, mlir::RankedTensorType type,
                       ShardingAttr sharding, mlir::Location loc);

  /// Copies the body of the loss (all its arguments are added) and decomposes
  /// what is to be before differentiation; returns the loss.
  mlir::Value cloneBody(bool decompose);

  /// What is built from here on belongs to `part`.
  void setPart(Part part);

  /// Returns `value` as result `name`; `sharding` may be null.
  void addResult(mlir::Value value, llvm::StringRef name,
                 ShardingAttr sharding = {});

  /// Ends the body. All composites are decomposed and the whole is simplified.
  mlir::func::FuncOp finish();

  mlir::OpBuilder &getBuilder() { return builder; }

private:
  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint) override;
  mlir::Value addArgument(mlir::Type type, mlir::Attribute role,
                          ShardingAttr sharding, mlir::ArrayAttr contracts,
                          mlir::Location loc);
  mlir::Value addArgumentOf(mlir::BlockArgument argument);
  /// Gives the function the types and attributes of its arguments so far.
  void describeArguments();

  mlir::func::FuncOp loss, function;
  mlir::OpBuilder builder;
  mlir::IRMapping mapping;
  llvm::SmallVector<mlir::Value> results;
  /// Of the arguments and results, set all at once: the context keeps every
  /// list of attributes and every function type for ever.
  llvm::SmallVector<mlir::DictionaryAttr> argumentAttributes, resultAttributes;
  PartAttr part;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_PROGRAMS_H
