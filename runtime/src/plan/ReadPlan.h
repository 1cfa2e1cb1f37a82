//===- ReadPlan.h - From the file's tables to a Plan ------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_PLAN_READPLAN_H
#define SHARDC_RT_SRC_PLAN_READPLAN_H

#include "plan/PlanSpec.h"

#include "plan_generated.h"

#include "absl/status/status.h"

namespace shardc::rt {

/// Fills `plan` from a structurally sound file. An error names the entry, what
/// was expected and what was found.
absl::Status readPlan(const fb::Plan &file, PlanSpec &plan);

/// Fills the kernels and the code that has them, of which nothing is checked
/// but what it is for.
absl::Status readCode(const fb::Plan &file, PlanSpec &plan);

/// Fills the commands of `program`, whose buffers and results have been read,
/// checking each against what it names, and then their order.
absl::Status readCommands(const fb::Program &file, const PlanSpec &plan,
                          ProgramSpec &program);

/// Checks that the tensors of a collective of `program` do not touch each other
/// and, on a CPU, that every one is started once and then waited for once; on a
/// GPU nothing waits.
absl::Status checkCollectives(const PlanSpec &plan, const ProgramSpec &program);

/// Checks that copies of parameters are like these and are written with them.
absl::Status checkCopies(const PlanSpec &plan);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_PLAN_READPLAN_H
