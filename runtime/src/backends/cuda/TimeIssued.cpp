//===- TimeIssued.cpp - The time of work on a stream ----------------------===//

#include "backends/cuda/TimeIssued.h"

#include <chrono>

using namespace shardc::rt;

absl::StatusOr<double>
cuda::timeIssued(int repeats, absl::FunctionRef<absl::Status()> issue,
                 absl::FunctionRef<absl::Status()> wait) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start;
  for (int i = -1; i < repeats; ++i) {
    if (absl::Status s = issue(); !s.ok())
      return s;
    if (i >= 0)
      continue;
    if (absl::Status s = wait(); !s.ok())
      return s;
    start = Clock::now();
  }
  if (absl::Status s = wait(); !s.ok())
    return s;
  return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}
