//===- PlanKey.h - The inputs of a compilation as a key ---------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_PLANKEY_H
#define SHARDC_TOOLS_SHARDC_RUN_PLANKEY_H

#include "CompileInput.h"

#include <optional>

namespace shardc::run {

/// A text that differs whenever the plan may: the content of the model and of
/// the machine file, all of the request, the build of the compiler, the version
/// of plans, this CPU. Empty if the plan is not to be kept: compiling has side
/// effects, or the model cannot be read again.
std::optional<std::string> planKey(const CompileRequest &request);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_PLANKEY_H
