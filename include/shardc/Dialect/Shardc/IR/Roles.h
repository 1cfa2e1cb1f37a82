//===- Roles.h - Roles of a function's arguments ----------------*- C++ -*-===//
//
// Queries about `shardc.role`, which names each argument of a source module and
// of the programs made from it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_ROLES_H
#define SHARDC_DIALECT_SHARDC_IR_ROLES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shardc {

/// Name of the state that counts the steps done.
inline constexpr llvm::StringLiteral kStepName = "step";

/// Name of the program that makes all shadow weights, copies of the parameters
/// in a narrower type.
inline constexpr llvm::StringLiteral kRoundParametersName = "round_parameters";

/// The role of argument `index`, or null.
mlir::Attribute getRole(mlir::FunctionOpInterface function, unsigned index);

/// The name in a role attribute; null if `role` is none.
mlir::StringAttr getRoleName(mlir::Attribute role);

/// "parameter", "state", "copy", "input" or "label"; "argument" if `role` is
/// none.
llvm::StringRef getRoleKind(mlir::Attribute role);

/// The argument whose role has `name`, or null.
mlir::BlockArgument findArgument(mlir::FunctionOpInterface function,
                                 llvm::StringRef name);

/// The step counter of the function: its argument with the role of a state
/// named "step". Null in an evaluation program, which has none.
mlir::BlockArgument findStep(mlir::FunctionOpInterface function);

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_ROLES_H
