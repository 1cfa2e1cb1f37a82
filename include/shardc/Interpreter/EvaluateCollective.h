//===- EvaluateCollective.h - Collectives by definition ---------*- C++ -*-===//
//
// All devices of a mesh at once. Stateless; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_EVALUATECOLLECTIVE_H
#define SHARDC_INTERPRETER_EVALUATECOLLECTIVE_H

#include "shardc/Interpreter/Devices.h"
#include "shardc/Interpreter/Tensor.h"

namespace shardc {

/// One tensor per device.
using DeviceTensors = std::vector<Tensor>;

/// The combination of the elements of a group; members come in group order.
using Combine = llvm::function_ref<double(llvm::ArrayRef<double>)>;

/// Whether `op` moves data between devices, or is a slice.
bool isCollective(mlir::Operation *op);

/// The mesh axes over which collective `op` works.
AxisList getCollectiveAxes(mlir::Operation *op, const Devices &devices);

/// The reduction of an all_reduce or reduce_scatter; nothing for ops that only
/// move elements.
std::optional<ReductionKind> getReduction(mlir::Operation *op);

/// Result `index` of collective `op` from operand `index`. Elements of the
/// result that no element of the operand reaches are `padding`; all_reduce and
/// reduce_scatter combine elements by `combine`.
DeviceTensors evaluateCollective(mlir::Operation *op, unsigned index,
                                 const DeviceTensors &operand,
                                 const Devices &devices, double padding,
                                 Combine combine);

/// The same on values: sums or maxima in group order, NaN as padding.
DeviceTensors evaluateCollective(mlir::Operation *op, unsigned index,
                                 const DeviceTensors &operand,
                                 const Devices &devices);

} // namespace shardc

#endif // SHARDC_INTERPRETER_EVALUATECOLLECTIVE_H
