//===- StepLog.cpp - Progress of the training for people ------------------===//

#include "train/StepLog.h"

#include "train/Format.h"

#include "absl/strings/str_format.h"

using namespace shardc::rt;

void StepLog::add(const StepRecord &record, double loss) {
  if (options.progressBar)
    draw(record, loss);
  else if (options.logEvery > 0 && record.step % options.logEvery == 0)
    out << absl::StrFormat(
        "step %d of %d  epoch %d  loss %.6g  %.0f samples/s  %s left\n",
        record.step, record.steps, record.epoch, loss, record.samplesPerSecond,
        formatTimeLeft(record.secondsLeft));
}

void StepLog::draw(const StepRecord &record, double loss) {
  auto now = std::chrono::steady_clock::now();
  bool last = record.stepInEpoch == record.stepsPerEpoch;
  if (drawn && !last && now - lastDrawn < std::chrono::milliseconds(100))
    return;
  constexpr int width = 24;
  int filled =
      width * record.stepInEpoch / std::max<int64_t>(1, record.stepsPerEpoch);
  out << "\r" << absl::StrFormat("epoch %d [", record.epoch)
      << std::string(filled, '#') << std::string(width - filled, '.')
      << absl::StrFormat("] %d/%d  loss %.6g  %.0f samples/s  %s left\x1b[K",
                         record.stepInEpoch, record.stepsPerEpoch, loss,
                         record.samplesPerSecond,
                         formatTimeLeft(record.secondsLeft))
      << std::flush;
  lastDrawn = now;
  drawn = true;
}

void StepLog::clear() {
  if (drawn)
    out << "\r\x1b[K";
  drawn = false;
}
