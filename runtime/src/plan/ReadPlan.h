//===- ReadPlan.h - From the file's tables to a Plan ------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_PLAN_READPLAN_H
#define SHARDC_RT_SRC_PLAN_READPLAN_H

#include "plan/PlanSpec.h"

#include "plan_generated.h"

#include "absl/status/status.h"

namespace shardc::rt {

/// Fills `plan` from a structurally sound file. An error names the entry, the
/// expected and the found value.
absl::Status readPlan(const fb::Plan &file, PlanSpec &plan);

/// Fills the kernels and their code, of which only the target is checked.
absl::Status readCode(const fb::Plan &file, PlanSpec &plan);

/// Fills the commands of `program`, whose buffers and results have been read.
/// Checks each command against the objects that it names, and then their order.
absl::Status readCommands(const fb::Program &file, const PlanSpec &plan,
                          ProgramSpec &program);

/// Checks that the tensors of a collective, or of a receive, of `program` do
/// not touch each other and, on a CPU, that each of them and each send is
/// started once and then waited for once; on a GPU nothing waits.
absl::Status checkCollectives(const PlanSpec &plan, const ProgramSpec &program);

/// Checks that copies have the shape and sharding of their parameters and are
/// written with them.
absl::Status checkCopies(const PlanSpec &plan);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_PLAN_READPLAN_H
