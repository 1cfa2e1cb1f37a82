//===- PlanProperties.h - What all executors must share ---------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_PLANPROPERTIES_H
#define SHARDC_RT_SRC_EXEC_PLANPROPERTIES_H

#include "comm/RankProperties.h"
#include "plan/PlanSpec.h"

namespace shardc::rt {

/// What the executors of a plan have in common in all processes: the version of
/// shardc, the plan and the seed. A plan that differs shows in its fingerprint,
/// and in what made it differ, where that can be told.
std::vector<RankProperty> propertiesOf(const PlanSpec &plan, uint64_t seed);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_PLANPROPERTIES_H
