//===- Initialization.h - Initial values of a plan's tensors ----*- C++ -*-===//

#ifndef SHARDC_RT_SRC_INIT_INITIALIZATION_H
#define SHARDC_RT_SRC_INIT_INITIALIZATION_H

#include "plan/PlanSpec.h"
#include "shardc-rt/Executor.h"

#include "absl/functional/function_ref.h"

#include <functional>

namespace shardc::rt {

/// Gives tensors their initial values, one after the other, and reports
/// progress. Not thread-safe.
class Initialization {
public:
  /// Calls task(i) for each i in [0, tasks), on any threads.
  using ForEach =
      std::function<void(int64_t tasks, absl::FunctionRef<void(int64_t)> task)>;

  /// `plan` and `options` must outlive it. Without `forEach` the caller does
  /// all.
  Initialization(const PlanSpec &plan, const ExecutorOptions &options,
                 ForEach forEach = {});

  /// Writes a shard of `tensor`, as `initializeShard`. All shards of a tensor
  /// come before those of the next.
  [[nodiscard]] absl::Status fill(const TensorSpec &tensor,
                                  absl::Span<const int64_t> start,
                                  absl::Span<const int64_t> validShape,
                                  absl::Span<const int64_t> localShape,
                                  void *out);

private:
  void report(int64_t elements);

  const ExecutorOptions &options;
  const ForEach forEach;
  int64_t elements = 0; ///< Of all tensors that have initial values.
  const TensorSpec *current = nullptr;
  int64_t before = 0; ///< Of the tensors before `current`.
  int64_t filled = 0; ///< Of `current`.
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_INIT_INITIALIZATION_H
