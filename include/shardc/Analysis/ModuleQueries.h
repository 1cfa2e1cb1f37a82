//===- ModuleQueries.h - What a module says of itself -----------*- C++ -*-===//
//
// What attributes and locations of a module, its functions and its values say
// to more than one pass. Plain functions that read the IR, but for those that
// set attributes; thread-safe on distinct modules.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_MODULEQUERIES_H
#define SHARDC_ANALYSIS_MODULEQUERIES_H

#include "shardc/CostModel/CollectiveCosts.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace shardc {

/// The name that the role of argument `index` gives it; empty without a role.
llvm::StringRef getRoleName(mlir::func::FuncOp function, unsigned index);

/// Sets attribute `name` of every argument (result) to what `get` returns for
/// its number; null leaves it as it is. Use this for all of them rather than
/// setArgAttr for each: the context keeps every list of attributes for ever.
void setArgAttrs(mlir::func::FuncOp function, llvm::StringRef name,
                 llvm::function_ref<mlir::Attribute(unsigned)> get);
void setResultAttrs(mlir::func::FuncOp function, llvm::StringRef name,
                    llvm::function_ref<mlir::Attribute(unsigned)> get);

/// The arguments by these names.
llvm::StringMap<mlir::BlockArgument>
getArgumentsByName(mlir::func::FuncOp function);

/// The mesh of `module`; emits an error and fails if there is none or it has
/// more than 64 axes.
mlir::FailureOr<MeshOp> getMesh(mlir::ModuleOp module);

/// The function that estimates of `module` are about: `train_step`, or the
/// first of a module without; null if it has none.
mlir::func::FuncOp getStep(mlir::ModuleOp module);

/// Whether reshards of `module` may use axes that neither of their ends names:
/// its plan was searched for, `shardc.partition = "cheapest"`.
bool usesAllAxes(mlir::ModuleOp module);

/// What moving tensors of `function` costs a planner: bytes, or what
/// `shardc.seconds_per_byte` of the module says; only the collectives of
/// `shardc.starts` may be used, if it has that.
PartPrices getPartPrices(mlir::func::FuncOp function, const MeshAxes &mesh);

/// Whether `op` says that it belongs to `part` of the step.
bool isPart(mlir::Operation *op, Part part);

/// Whether `op` is part of the forward pass. Everything after it counts as the
/// backward pass where weights are gathered for each of the two.
bool isInForwardPass(mlir::Operation *op);

/// Whether `value` is a parameter of a function, or its copy in the type that
/// is computed in.
bool isWeight(mlir::Value value);

/// The part of the step in which `value` is made: that of the op that computes
/// it; of an argument, of the op that uses it first.
Part getPartMadeIn(mlir::Value value);

/// "file.mlir:12" for messages, without folders.
std::string getSourceLine(mlir::Location loc);

/// "path/file.mlir:12:3", or "" if `loc` has no file.
std::string getSourceText(mlir::Location loc);

} // namespace shardc

#endif // SHARDC_ANALYSIS_MODULEQUERIES_H
