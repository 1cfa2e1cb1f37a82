//===- Event.h - A point in a stream ----------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_EVENT_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_EVENT_H

#include "backends/cuda/Owned.h"

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace shardc::rt::cuda {

class Stream;

/// A point in a stream: all work issued before the record.
class Event {
public:
  /// Without a time.
  [[nodiscard]] static absl::StatusOr<Event> create(const Context &context) {
    return create(context, CU_EVENT_DISABLE_TIMING);
  }
  /// Notes the time at which it is reached.
  [[nodiscard]] static absl::StatusOr<Event>
  createTimed(const Context &context) {
    return create(context, CU_EVENT_DEFAULT);
  }

  /// Records the event behind all work of `stream` so far, in place of an
  /// earlier record.
  [[nodiscard]] absl::Status record(const Stream &stream);

  /// While `stream` is captured: each launch of the graph records the event,
  /// where the host can ask for it.
  [[nodiscard]] absl::Status recordInGraph(const Stream &stream);

  /// Nanoseconds from the latest record of `from`, in the same context, to that
  /// of this; both are timed and have been reached. The driver rounds to about
  /// half a microsecond.
  [[nodiscard]] absl::StatusOr<int64_t> timeSince(const Event &from) const;

  /// Waits on the host until the latest record is reached; at once if there is
  /// none. DeadlineExceeded names `what` after `deadline`; errors of work on
  /// the GPU also come out here. A wait that takes long calls `check` now and
  /// then, whose errors end it.
  [[nodiscard]] absl::Status wait(
      absl::Duration deadline, absl::string_view what,
      absl::FunctionRef<absl::Status()> check = [] {
        return absl::OkStatus();
      }) const;

  CUevent get() const { return owned.get(); }

private:
  explicit Event(const Context &context) : context(&context) {}
  static absl::StatusOr<Event> create(const Context &context, unsigned flags);

  const Context *context;
  Owned<CUevent, &Driver::eventDestroy> owned;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_EVENT_H
