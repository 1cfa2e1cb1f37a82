//===- CpuFeatures.h - The features of this CPU -----------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_PLAN_CPUFEATURES_H
#define SHARDC_RT_SRC_PLAN_CPUFEATURES_H

#include "absl/strings/string_view.h"

namespace shardc::rt {

/// Whether this CPU, and the operating system on it, have the feature `name`,
/// spelled as in /proc/cpuinfo. False for a name that is not known here.
bool cpuHasFeature(absl::string_view name);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_PLAN_CPUFEATURES_H
