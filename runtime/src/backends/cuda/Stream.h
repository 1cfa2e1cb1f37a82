//===- Stream.h - A queue of work on a GPU ----------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_STREAM_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_STREAM_H

#include "backends/cuda/Event.h"

namespace shardc::rt::cuda {

/// Work runs in order, and at the same time as that of other streams. It does
/// not wait for the default stream.
class Stream {
public:
  [[nodiscard]] static absl::StatusOr<Stream> create(const Context &context) {
    if (absl::Status s = context.makeCurrent(); !s.ok())
      return s;
    Stream stream(context);
    CUstream raw = nullptr;
    if (absl::Status s = context.check(
            context.driver().streamCreate(&raw, CU_STREAM_NON_BLOCKING),
            "cuStreamCreate");
        !s.ok())
      return s;
    stream.owned = {context, raw};
    return stream;
  }

  /// Work issued from here on waits for the latest record of `event`.
  [[nodiscard]] absl::Status waitFor(const Event &event) const {
    return owner->check(owner->driver().streamWaitEvent(get(), event.get(), 0),
                        "cuStreamWaitEvent");
  }

  const Context &context() const { return *owner; }
  CUstream get() const { return owned.get(); }

private:
  explicit Stream(const Context &context) : owner(&context) {}

  const Context *owner;
  Owned<CUstream, &Driver::streamDestroy> owned;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_STREAM_H
