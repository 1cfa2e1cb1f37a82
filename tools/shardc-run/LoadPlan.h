//===- LoadPlan.h - The plan that a run executes ----------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_LOADPLAN_H
#define SHARDC_TOOLS_SHARDC_RUN_LOADPLAN_H

#include "Arguments.h"

#include "shardc-rt/Plan.h"

#include <memory>

namespace shardc::run {

/// Reads an input that can be read once into `arguments.piped`. Returns the
/// exit code, with an error printed unless that is 0.
int readPipe(Arguments &arguments);

/// Whether the input is a plan and not a model.
bool isPlan(const Arguments &arguments);

/// After `readPipe`, loads the plan that the arguments name, or compiles the
/// model, for a single device if `singleDevice`: the unpartitioned program.
/// Exit code 0 and a plan, or the code and an error printed.
int loadPlan(const Arguments &arguments, bool singleDevice,
             std::shared_ptr<const rt::Plan> &plan);

/// Checks that the arguments do not contradict the compiled plan that they
/// name, and that there are enough devices for it: exit code 0, or the code and
/// an error printed.
int checkAgainstPlan(const Arguments &arguments, const rt::Plan &plan);

/// Proves the order of the plan's commands again, as loading it did, and prints
/// the ordered accesses, in lines or as one JSON object. Returns the exit code.
int printOrder(const rt::Plan &plan, bool asJson);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_LOADPLAN_H
