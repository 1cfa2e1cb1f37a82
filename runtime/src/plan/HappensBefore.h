//===- HappensBefore.h - Whether accesses are ordered -----------*- C++ -*-===//
//
// Commands that run at the same time must not touch the same bytes of the arena
// unless both only read them. A plan orders:
//
//  - commands of a stream, in the order of the list; those of a loop's body run
//    after run;
//  - a command after those that it names in `after`, by their latest issue;
//  - on a CPU, where all commands are on one stream: a collective, a send or a
//    receive after the commands before its start, and the commands behind its
//    wait after it;
//  - runs of programs: one starts when all commands of the one before have
//    ended. So a run may be captured as one graph.
//
// Everything else may happen at the same time. The checker follows the list
// with one vector clock per command (Mattern, "Virtual Time and Global States
// of Distributed Systems", 1988) and compares each command with those before it
// that its clock has not seen. It takes loops twice, which shows every pair of
// consecutive runs, and the bytes of all runs together where buffers move on:
// strict where runs touch different rows, and the same for any two runs.
// It shares nothing with the compiler's computation of `after`.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_PLAN_HAPPENSBEFORE_H
#define SHARDC_RT_SRC_PLAN_HAPPENSBEFORE_H

#include "plan/PlanSpec.h"

#include "absl/status/statusor.h"

#include <cstdint>

namespace shardc::rt {

/// The size of the order that was found.
struct OrderReport {
  /// By stream; collectives, sends and receives count as communication wherever
  /// they are, waits and loops not at all.
  int64_t commands[3] = {0, 0, 0};
  /// Entries of `after`.
  int64_t events = 0;
  /// Pairs of commands that may run at the same time, of two runs of each loop.
  int64_t concurrentPairs = 0;
};

/// Checks that any two accesses of `program`, which belongs to `plan`, to the
/// same bytes are ordered if one of them writes. DataLoss otherwise, naming
/// both commands, the bytes and their buffers. Loading a plan checks all of its
/// programs. Its indices must be sound. Thread-safe; the cost is that of
/// comparing commands that may run at the same time.
[[nodiscard]] absl::StatusOr<OrderReport>
checkHappensBefore(const PlanSpec &plan, const ProgramSpec &program);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_PLAN_HAPPENSBEFORE_H
