//===- Watchdog.h - A deadline for all that a process does ------*- C++ -*-===//
//
// Waits for other processes and for GPUs have deadlines of their own, and end
// with an error. A watchdog is for what cannot end itself: a kernel that loops,
// a library that hangs, a disk that does not answer. Its thread looks at the
// time, and at the failures of other processes.
//
// Time in which the process is stopped does not count, and each wait for
// another process has time of its own, since it ends by itself at the deadline.
//
// Thread-safety: all functions may be called from any thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_WATCHDOG_H
#define SHARDC_RT_WATCHDOG_H

#include "shardc-rt/Store.h"

#include <functional>

namespace shardc::rt {

struct WatchdogOptions {
  /// Longest time from a `begin` to the next one.
  absl::Duration deadline = absl::Minutes(5);
  /// What is left to end by itself, after the failure of another process; and
  /// after the deadline, three times as long where there is a store.
  absl::Duration heartbeat = absl::Seconds(5);
  /// Called once, by the thread of the watchdog, with DeadlineExceeded and the
  /// activity that does not end, or the failure of another process. The thread
  /// that is late may never return: a program can only end.
  std::function<void(const absl::Status &)> onExpired;
};

class SHARDC_RT_API Watchdog {
public:
  explicit Watchdog(WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

  /// From now on also ends this process when another one has failed; tells the
  /// others the activities, and when one does not end. Borrowed; null: there
  /// are no others any more.
  void watch(Store *store);

  /// What the activity is in, for errors: called by the thread of the watchdog
  /// when it has expired, and may return nothing. Empty: nothing is known.
  void explainBy(std::function<std::string()> explain);

  /// The process begins something, "step 12" for example, and has ended what it
  /// did before. Costs less than a microsecond.
  void begin(absl::string_view activity);

  /// What the process does goes on, and has the whole time again.
  void noteProgress();

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace shardc::rt

#endif // SHARDC_RT_WATCHDOG_H
