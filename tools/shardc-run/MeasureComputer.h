//===- MeasureComputer.h - Virtual devices as a machine file ----*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_MEASURECOMPUTER_H
#define SHARDC_TOOLS_SHARDC_RUN_MEASURECOMPUTER_H

#include "MeasureDevice.h"

#include "shardc-rt/Context.h"

#include "absl/status/statusor.h"

namespace shardc::run {

/// This computer, whose workers are those of `context`, as a machine of virtual
/// devices.
absl::StatusOr<Json> measureComputer(rt::Context &context);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_MEASURECOMPUTER_H
