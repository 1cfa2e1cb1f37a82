//===- BenchmarkPlan.h - Plans of one kind of command -----------*- C++ -*-===//

#ifndef SHARDC_RT_BENCHMARKS_BENCHMARKPLAN_H
#define SHARDC_RT_BENCHMARKS_BENCHMARKPLAN_H

#include "plan/PlanSpec.h"

#include "absl/status/statusor.h"

#include <memory>
#include <string>

namespace shardc::rt::bench {

using PlanOrError = absl::StatusOr<std::shared_ptr<const Plan>>;

/// `count` launches of a kernel that does nothing. Each reads the result of the
/// one before, and has `extent` iterations that may be shared.
[[nodiscard]] PlanOrError makeLaunchPlan(int devices, int64_t count,
                                         int64_t extent);

/// `count` all-reduces of `elements` f32 over all devices.
[[nodiscard]] PlanOrError makeAllReducePlan(int devices, int64_t count,
                                            int64_t elements);

/// Of the train step of the plan in `path`, for one device, the commands that
/// update parameters. NotFound: it has none of its own.
[[nodiscard]] PlanOrError makeUpdatePlan(const std::string &path);

} // namespace shardc::rt::bench

#endif // SHARDC_RT_BENCHMARKS_BENCHMARKPLAN_H
