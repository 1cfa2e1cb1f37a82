//===- WriteProgress.h - How far a checkpoint is ----------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_WRITEPROGRESS_H
#define SHARDC_RT_SRC_CHECKPOINT_WRITEPROGRESS_H

#include "shardc-rt/Store.h"

#include <atomic>
#include <functional>
#include <utility>

namespace shardc::rt {

/// Tells that the write of a checkpoint, or of parameters, goes on: the thread
/// that waits for it, and other processes. Thread-safe.
class WriteProgress {
public:
  /// `store` is borrowed; null: there is one process. `onProgress` is called by
  /// the thread that writes, if there is one.
  explicit WriteProgress(Store *store, std::function<void()> onProgress = {})
      : store(store), onProgress(std::move(onProgress)) {}

  /// The write begins something, "writing the checkpoint of step 4" for
  /// example; nothing: it has ended.
  void begin(const std::string &what) {
    ++made;
    if (store)
      store->setActivity(what, Track::Checkpoint);
  }
  /// A part of it has been done.
  void note() {
    ++made;
    if (store)
      store->noteProgress(Track::Checkpoint);
    if (onProgress)
      onProgress();
  }
  /// Greater after each of these calls.
  uint64_t count() const { return made; }

private:
  Store *store;
  const std::function<void()> onProgress;
  std::atomic<uint64_t> made{0};
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_CHECKPOINT_WRITEPROGRESS_H
