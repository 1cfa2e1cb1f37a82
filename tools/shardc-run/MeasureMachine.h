//===- MeasureMachine.h - This computer as a machine file -------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_MEASUREMACHINE_H
#define SHARDC_TOOLS_SHARDC_RUN_MEASUREMACHINE_H

#include "Arguments.h"
#include "Devices.h"

namespace shardc::run {

/// Measures what the runtime attains here and writes `--measure-machine`, a
/// machine file for `--machine` (docs/Machines.md): of this process, or of all
/// that `peers` connects, of which the first writes it. Returns the exit code.
int measureMachine(const Arguments &arguments, const Peers &peers);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_MEASUREMACHINE_H
