//===- StepLog.h - Progress of the training for people ----------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_TRAIN_STEPLOG_H
#define SHARDC_RT_SRC_TRAIN_STEPLOG_H

#include "shardc-rt/Trainer.h"

#include <chrono>

namespace shardc::rt {

/// Shows steps as a progress bar or as lines.
class StepLog {
public:
  StepLog(const TrainOptions &options, std::ostream &out)
      : options(options), out(out) {}

  void add(const StepRecord &record, double loss);
  /// Takes the progress bar away, if one is drawn.
  void clear();

private:
  void draw(const StepRecord &record, double loss);

  const TrainOptions &options;
  std::ostream &out;
  std::chrono::steady_clock::time_point lastDrawn;
  bool drawn = false;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_TRAIN_STEPLOG_H
