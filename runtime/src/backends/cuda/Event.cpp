//===- Event.cpp - A point in a stream ------------------------------------===//

#include "backends/cuda/Event.h"

#include "backends/cuda/Stream.h"

#include <chrono>
#include <cmath>
#include <thread>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::StatusOr<Event> Event::create(const cuda::Context &context,
                                    unsigned flags) {
  if (absl::Status s = context.makeCurrent(); !s.ok())
    return s;
  Event event(context);
  CUevent raw = nullptr;
  if (absl::Status s = context.check(context.driver().eventCreate(&raw, flags),
                                     "cuEventCreate");
      !s.ok())
    return s;
  event.owned = {context, raw};
  return event;
}

absl::Status Event::record(const Stream &stream) {
  return context->check(context->driver().eventRecord(get(), stream.get()),
                        "cuEventRecord");
}

absl::Status Event::recordInGraph(const Stream &stream) {
  return context->check(context->driver().eventRecordWithFlags(
                            get(), stream.get(), CU_EVENT_RECORD_EXTERNAL),
                        "cuEventRecordWithFlags");
}

absl::StatusOr<int64_t> Event::timeSince(const Event &from) const {
  float milliseconds = 0;
  if (absl::Status s = context->check(
          context->driver().eventElapsedTime(&milliseconds, from.get(), get()),
          "cuEventElapsedTime");
      !s.ok())
    return s;
  constexpr double nanoseconds = 1e6;
  return std::llround(milliseconds * nanoseconds);
}

absl::Status Event::wait(absl::Duration deadline, absl::string_view what,
                         absl::FunctionRef<absl::Status()> check) const {
  using Clock = std::chrono::steady_clock;
  constexpr absl::Duration betweenChecks = absl::Milliseconds(100);
  Clock::time_point start = Clock::now();
  absl::Duration checked;
  for (int64_t polls = 0;; ++polls) {
    CUresult result = context->driver().eventQuery(get());
    if (result != CUDA_ERROR_NOT_READY)
      return context->check(result, what);
    auto waited = absl::FromChrono(Clock::now() - start);
    if (waited > deadline)
      return absl::DeadlineExceededError(absl::StrCat(
          what, ": not done after ", absl::FormatDuration(waited)));
    if (waited - checked > betweenChecks) {
      checked = waited;
      if (absl::Status s = check(); !s.ok())
        return absl::Status(s.code(), absl::StrCat(what, ": ", s.message()));
    }
    // A small step is over in the time that sleeping takes.
    if (waited < absl::Milliseconds(1))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}
