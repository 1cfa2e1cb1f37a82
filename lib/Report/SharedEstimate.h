//===- SharedEstimate.h - Virtual devices of a computer ---------*- C++ -*-===//
//
// The model of docs/Machines.md#virtual-devices: the work that the runtime does
// for all virtual devices of a computer, priced by the rates of the whole
// computer. Reads the IR only.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REPORT_SHAREDESTIMATE_H
#define SHARDC_LIB_REPORT_SHAREDESTIMATE_H

#include "shardc/Report/TimeEstimate.h"

namespace shardc {

/// Whether `function` consists of kernels and GEMMs, as from phase `kernels`
/// on: before, nobody knows what the runtime will run.
bool hasKernels(mlir::func::FuncOp function);

/// The bytes of a tensor.
double getBytes(mlir::Value value);

/// The estimate for `function`, which has kernels, on `machine`, whose
/// `computer` has been measured. `machine` has been shared among the devices.
TimeEstimate estimateSharedTime(mlir::func::FuncOp function,
                                const Machine &machine);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_SHAREDESTIMATE_H
