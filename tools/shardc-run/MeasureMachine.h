//===- MeasureMachine.h - This computer as a machine file -------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_MEASUREMACHINE_H
#define SHARDC_TOOLS_SHARDC_RUN_MEASUREMACHINE_H

#include "Arguments.h"

namespace shardc::run {

/// Measures what the runtime attains here and writes `--measure-machine`, a
/// machine file for `--machine` (docs/Machines.md). Returns the exit code.
int measureMachine(const Arguments &arguments);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_MEASUREMACHINE_H
