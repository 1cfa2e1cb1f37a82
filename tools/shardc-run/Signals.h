//===- Signals.h - Orderly ends on signals ----------------------*- C++ -*-===//
//
// Signal handling belongs to the program: the runtime asks a function whether
// to stop (TrainOptions::shouldStop).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_SIGNALS_H
#define SHARDC_TOOLS_SHARDC_RUN_SIGNALS_H

#include "shardc-rt/Store.h"

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <functional>
#include <string>
#include <utility>

namespace shardc::run {

/// While it lives, the first SIGINT, SIGTERM, SIGHUP or SIGPIPE is noted, with
/// a line on standard error. A second signal ends the process at once, as
/// without this object, except for SIGPIPE, which every further line to a
/// closed pipe repeats. Signals that the process ignores stay ignored. One
/// object at a time.
class Signals {
public:
  Signals();
  ~Signals();
  Signals(const Signals &) = delete;
  Signals &operator=(const Signals &) = delete;

  /// The signal that was noted; 0: none.
  int noted() const;
};

/// What the processes of a run agree on between two steps: to end early, and
/// that a checkpoint is due by the clock.
class Agreement {
public:
  /// `store` leads to the other processes, and is borrowed; null: there are
  /// none. `isDue` tells whether a checkpoint is due; that of rank 0 counts.
  Agreement(rt::Store *store, absl::Duration deadline,
            std::function<bool()> isDue)
      : store(store), deadline(deadline), isDue(std::move(isDue)) {}

  /// The signal to stop for; 0: go on. All processes ask equally often and get
  /// the same answer. Signals and clocks are exchanged about once a second.
  /// DeadlineExceeded names a process that does not ask; Aborted: one has
  /// failed or gone.
  absl::StatusOr<int> ask();
  /// Whether a checkpoint is due; then it is not any more.
  bool takeDue();

private:
  Signals signals;
  rt::Store *store;
  absl::Duration deadline;
  std::function<bool()> isDue;
  bool isDueAgreed = false;
  int agreed = 0;
  int64_t timesAsked = 0;
  /// The number of the request at which the processes exchange them next,
  /// and the distance to the one after.
  int64_t nextExchange = 1, interval = 1;
  absl::Time lastExchange = absl::InfinitePast();
};

/// "SIGINT".
std::string signalName(int signal);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_SIGNALS_H
