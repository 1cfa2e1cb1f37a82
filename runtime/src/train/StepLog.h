//===- StepLog.h - Metrics, progress bar, lines -----------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_TRAIN_STEPLOG_H
#define SHARDC_RT_SRC_TRAIN_STEPLOG_H

#include "shardc-rt/Trainer.h"

#include <chrono>
#include <fstream>

namespace shardc::rt {

/// What one step gave, for the log.
struct StepRecord {
  int64_t step = 0;  ///< From 1.
  int64_t epoch = 0; ///< From 1.
  int64_t stepInEpoch = 0;
  int64_t stepsPerEpoch = 0;
  double loss = 0;
  double seconds = 0;
  double samplesPerSecond = 0;
  double communicationShare = 0;
  uint64_t wireBytes = 0;
};

/// Writes records to the metrics file and shows them to the user.
class StepLog {
public:
  StepLog(const TrainOptions &options, std::ostream &out)
      : options(options), out(out) {}

  /// NotFound if the metrics file cannot be written.
  absl::Status open();
  absl::Status add(const StepRecord &record);
  /// Ends the line of the progress bar, if one is drawn.
  void endEpoch();
  absl::Status close();

private:
  void draw(const StepRecord &record);

  const TrainOptions &options;
  std::ostream &out;
  std::ofstream metrics;
  std::chrono::steady_clock::time_point lastDrawn;
  bool drawn = false;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_TRAIN_STEPLOG_H
