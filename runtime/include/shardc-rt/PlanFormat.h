//===- PlanFormat.h - Constants of the plan format --------------*- C++ -*-===//
//
// The constants that the writer of a plan, which is the compiler, and its
// reader, which is the runtime, share besides the schema. It is the only header
// of the runtime that the compiler includes, and includes nothing of either.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_PLANFORMAT_H
#define SHARDC_RT_PLANFORMAT_H

#include <cstdint>

namespace shardc::rt {

/// The version of the plan format that this compiler writes and this runtime
/// reads (docs/PlanFormat.md), and that of plans with a pipeline.
inline constexpr uint32_t planVersion = 5;
inline constexpr uint32_t pipelinePlanVersion = 6;

/// The program that rounds parameters to their copies; a plan with copies has
/// it. Executors run it after a parameter has been written, hosts never do.
inline constexpr char roundingProgram[] = "round_parameters";

} // namespace shardc::rt

#endif // SHARDC_RT_PLANFORMAT_H
