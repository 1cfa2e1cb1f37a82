//===- MeasureProcesses.h - Processes as a machine file ---------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_MEASUREPROCESSES_H
#define SHARDC_TOOLS_SHARDC_RUN_MEASUREPROCESSES_H

#include "shardc-rt/Context.h"
#include "shardc-rt/Processes.h"

#include "absl/status/statusor.h"

#include <nlohmann/json_fwd.hpp>

namespace shardc::run {

/// A machine whose devices are the processes: what each attains on its
/// `workers` while the others do the same, and each kind of collective by the
/// size of its groups, the distance of their members and bytes. All processes
/// call it together; the times are those of this one.
absl::StatusOr<nlohmann::ordered_json>
measureProcesses(rt::Context &workers, rt::Processes &processes);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_MEASUREPROCESSES_H
