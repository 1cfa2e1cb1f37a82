//===- TimeIssued.h - The time of work on a stream --------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_TIMEISSUED_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_TIMEISSUED_H

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace shardc::rt::cuda {

/// Mean seconds of what `issue` puts on streams that `wait` waits for: of
/// `repeats` times behind one that is not counted, since libraries load code on
/// first use.
[[nodiscard]] absl::StatusOr<double>
timeIssued(int repeats, absl::FunctionRef<absl::Status()> issue,
           absl::FunctionRef<absl::Status()> wait);

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_TIMEISSUED_H
