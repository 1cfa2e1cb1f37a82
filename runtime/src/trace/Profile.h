//===- Profile.h - Where the time of a step goes ----------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_TRACE_PROFILE_H
#define SHARDC_RT_SRC_TRACE_PROFILE_H

#include "trace/Recording.h"

#include <map>

namespace shardc::rt {

/// Sums over the train steps of a trace, without those that took more than
/// twice as long as their median, which other work on the computer has
/// interrupted. Seconds are of one step, on average, and of all workers
/// together, divided by their number: they add up to the duration of a step.
/// On GPUs the workers are the streams that compute; what runs beside them
/// takes time of a step, as communication or as a wait, only while they do not
/// compute.
struct Profile {
  struct Command {
    std::string name, source, part; ///< Of the first of them.
    bool communicates = false;
    double seconds = 0;
    /// In one step, of all devices of the process.
    double flops = 0, bytes = 0;
    uint64_t wireBytes = 0; ///< Sent by a device.
    /// In the largest of its executions.
    double bytesAtOnce = 0;
    /// From the start of a collective to its wait, if messages are on their
    /// way in between. Of a stream it is in `seconds`.
    double secondsInFlight = 0;
  };

  int64_t firstStep = 0, lastStep = 0;
  int64_t numSteps = 0;     ///< That are counted.
  int64_t numSlow = 0;      ///< That are not.
  double stepSeconds = 0;   ///< On average.
  double medianSeconds = 0; ///< Of all.
  /// The longest first. Pieces of one command, and its runs in a loop, are one.
  std::vector<Command> commands;
  /// "forward", "backward", "update", "communication".
  std::map<std::string, double> seconds;
  /// In which worker 0 computes while collectives are in flight; of streams on
  /// average.
  double hidden = 0;
  bool isOfStreams = false;
  int numWorkers = 0;
  double waiting = 0; ///< At barriers, or for other streams.
  double rest = 0;    ///< Inputs and results, and what no span covers.
  std::vector<double> waitingOfWorker; ///< Shares of a step, by worker.
};

/// Empty (no steps) if no train step was recorded whole.
Profile profileOf(const Trace::State &trace);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_TRACE_PROFILE_H
