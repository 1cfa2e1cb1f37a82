//===- MeasureProcesses.h - Processes as a machine file ---------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_MEASUREPROCESSES_H
#define SHARDC_TOOLS_SHARDC_RUN_MEASUREPROCESSES_H

#include "MeasureDevice.h"

#include "shardc-rt/Processes.h"

#include "absl/status/statusor.h"

namespace shardc::run {

/// A machine whose devices are the processes: what each attains on the workers
/// of `pool` while the others do the same, each kind of collective by the size
/// of its groups, the distance of their members and bytes, and how much of one
/// computing hides. All processes call it together; the times are those of this
/// one. After an error the others have been told.
absl::StatusOr<Json> measureProcesses(rt::WorkerPool &pool,
                                      rt::Processes &processes);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_MEASUREPROCESSES_H
