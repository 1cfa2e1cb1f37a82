//===- ReadPlan.h - From the file's tables to a Plan ------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_PLAN_READPLAN_H
#define SHARDC_RT_SRC_PLAN_READPLAN_H

#include "shardc-rt/Plan.h"

#include "plan_generated.h"

#include "absl/status/status.h"

namespace shardc::rt {

/// Fills `plan` from a structurally sound file. An error names the entry, what
/// was expected and what was found.
absl::Status readPlan(const fb::Plan &file, Plan &plan);

/// Fills the commands of `program`, whose buffers have been read, checking each
/// against the buffers it names.
absl::Status readCommands(const fb::Program &file, const Plan &plan,
                          ProgramSpec &program);

/// Checks that every collective of `program` is started once and then waited
/// for once, and that in between no command writes what it reads or touches
/// what it writes.
absl::Status checkCollectives(const ProgramSpec &program);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_PLAN_READPLAN_H
