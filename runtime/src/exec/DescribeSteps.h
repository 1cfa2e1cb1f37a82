//===- DescribeSteps.h - The steps of a program, for traces -----*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_DESCRIBESTEPS_H
#define SHARDC_RT_SRC_EXEC_DESCRIBESTEPS_H

#include "exec/PreparedSteps.h"
#include "trace/Recording.h"

namespace shardc::rt {

/// The steps that `prepared` has of program number `program` of `plan`, whose
/// ranks have the devices `ranks`, in the words of a trace.
TracedProgram describeSteps(const PlanSpec &plan,
                            absl::Span<const DeviceSet> ranks, size_t program,
                            const PreparedSteps &prepared);

/// A command of `program`, of the plan or pipeline rank `rank`, in the words of
/// a trace: kind, name, part, place in the model, shapes and task.
TracedStep describeCommand(const PlanSpec &rank, const ProgramSpec &program,
                           const Command &command);

/// What a trace says of its plan, a JSON object: by these figures, which
/// `shardc-compile --json` has under the same names, a report knows its traces.
std::string describePlan(const PlanSpec &plan);

/// By command the bytes of a device's arena that hold something while it runs:
/// tensors, and buffers from the first command that touches them to the last.
std::vector<uint64_t> arenaUse(const PlanSpec &rank,
                               const ProgramSpec &program);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_DESCRIBESTEPS_H
