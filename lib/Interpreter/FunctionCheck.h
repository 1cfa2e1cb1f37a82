//===- FunctionCheck.h - One function against its global program -*- C++
//-*-===//

#ifndef SHARDC_LIB_INTERPRETER_FUNCTIONCHECK_H
#define SHARDC_LIB_INTERPRETER_FUNCTIONCHECK_H

#include "shardc/Interpreter/Devices.h"
#include "shardc/Interpreter/Inputs.h"
#include "shardc/Interpreter/PartitionCheck.h"

namespace shardc {

/// Evaluates both functions on inputs of `kind` and compares, op by op; see
/// checkPartition. Adds to `summary`.
mlir::LogicalResult checkFunction(mlir::func::FuncOp global,
                                  mlir::func::FuncOp partitioned,
                                  const Devices &devices, InputKind kind,
                                  PartitionSummary &summary);

} // namespace shardc

#endif // SHARDC_LIB_INTERPRETER_FUNCTIONCHECK_H
