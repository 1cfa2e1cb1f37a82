//===- ModuleQueries.h - Queries about attributes of a module ---*- C++ -*-===//
//
// Attributes and locations of a module, its functions and its values that more
// than one pass reads. Plain functions that read the IR, except for those that
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

/// The name that its role gives argument `index`; empty without a role.
llvm::StringRef getRoleName(mlir::func::FuncOp function, unsigned index);

/// Sets attribute `name` of every argument (result) to `get(number)`; null
/// leaves it as it is. Prefer this to setArgAttr for each of them: every list
/// of attributes stays in the context for ever.
void setArgAttrs(mlir::func::FuncOp function, llvm::StringRef name,
                 llvm::function_ref<mlir::Attribute(unsigned)> get);
void setResultAttrs(mlir::func::FuncOp function, llvm::StringRef name,
                    llvm::function_ref<mlir::Attribute(unsigned)> get);

/// The arguments of `function` by the names of their roles.
llvm::StringMap<mlir::BlockArgument>
getArgumentsByName(mlir::func::FuncOp function);

/// The mesh of `module`; emits an error and fails if there is none or it has
/// more than 64 axes.
mlir::FailureOr<MeshOp> getMesh(mlir::ModuleOp module);

/// The function that estimates of `module` are about: `train_step`, or else the
/// first one; null if there is none.
mlir::func::FuncOp getStep(mlir::ModuleOp module);

/// The programs that explanations and contracts are about: all but `predict`,
/// which is a part of `evaluate`.
llvm::SmallVector<mlir::func::FuncOp>
getExplainedPrograms(mlir::ModuleOp module);

/// Whether reshards of `module` may use axes that neither of their ends names:
/// its plan comes from a search (`shardc.partition = "cheapest"`).
bool usesAllAxes(mlir::ModuleOp module);

/// The cost model of reshards of `function`: bytes, or the module's
/// `shardc.seconds_per_byte`. If the function has `shardc.starts`, only those
/// collectives are permitted.
CostsByPart getCostsByPart(mlir::func::FuncOp function, const MeshAxes &mesh);

/// The program that `function` is, or that it is the part of a rank of.
llvm::StringRef getProgramName(mlir::func::FuncOp function);

/// Whether `op` belongs to `part` of the step.
bool isPart(mlir::Operation *op, Part part);

/// Whether both belong to one stage and one task of a pipeline, or to none, and
/// both are sums over stages (`addsOverStages`), or neither. Others never
/// become one.
bool areInOneTask(mlir::Operation *lhs, mlir::Operation *rhs);

/// Gives `to` the part of the step of `from`, its stage and its task, and the
/// mark of a repeated op.
void setPlaceInStep(mlir::Operation *to, mlir::Operation *from);

/// Whether `op` is part of the forward pass. With rematerialised all-gathers
/// everything after it counts as the backward pass.
bool isInForwardPass(mlir::Operation *op);

/// Whether `value` is a parameter of a function, or its conversion to the type
/// in which the step computes.
bool isWeight(mlir::Value value);

/// The part of the step that makes `value`: that of the op that computes it;
/// for an argument, that of its first user.
Part getPartMadeIn(mlir::Value value);

/// "file.mlir:12" for messages, without folders.
std::string getSourceLine(mlir::Location loc);

/// "path/file.mlir:12:3", or "" if `loc` has no file.
std::string getSourceText(mlir::Location loc);

} // namespace shardc

#endif // SHARDC_ANALYSIS_MODULEQUERIES_H
