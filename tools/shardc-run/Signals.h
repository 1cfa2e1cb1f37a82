//===- Signals.h - Ending in good order when asked to -----------*- C++ -*-===//
//
// Signal handling belongs to the program: the runtime asks a function whether
// to stop (TrainOptions::shouldStop).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_SIGNALS_H
#define SHARDC_TOOLS_SHARDC_RUN_SIGNALS_H

#include "shardc-rt/Store.h"

#include "absl/time/time.h"

#include <string>

namespace shardc::run {

/// While it lives, the first SIGINT, SIGTERM, SIGHUP or SIGPIPE is noted, and
/// a line on standard error says so. A second one ends the process at once, as
/// without this; but SIGPIPE, which every further line to a reader that has
/// gone repeats, is noted alone. Signals that the process ignores stay ignored.
/// One at a time.
class Signals {
public:
  Signals();
  ~Signals();
  Signals(const Signals &) = delete;
  Signals &operator=(const Signals &) = delete;

  /// The signal that was noted; 0: none.
  int noted() const;
};

/// Whether a run is to end early, on which all its processes agree.
class StopRequest {
public:
  /// `store` leads to the other processes, and is borrowed; null: there are
  /// none.
  StopRequest(rt::Store *store, absl::Duration deadline)
      : store(store), deadline(deadline) {}

  /// The signal to stop for; 0: go on. All processes ask equally often and are
  /// told the same.
  int ask();

private:
  Signals signals;
  rt::Store *store;
  absl::Duration deadline;
  int agreed = 0;
  int64_t timesAsked = 0;
  /// When the processes tell one another what they noted.
  int64_t nextExchange = 1, interval = 1;
  absl::Time lastExchange = absl::InfinitePast();
};

/// "SIGINT".
std::string signalName(int signal);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_SIGNALS_H
