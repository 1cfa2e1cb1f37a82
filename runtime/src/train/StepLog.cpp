//===- StepLog.cpp - Metrics, progress bar, lines -------------------------===//

#include "train/StepLog.h"

#include "train/Format.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

using namespace shardc::rt;

absl::Status StepLog::open() {
  if (options.metricsPath.empty())
    return absl::OkStatus();
  metrics.open(options.metricsPath, std::ios::trunc);
  if (!metrics)
    return absl::NotFoundError(absl::StrCat(
        options.metricsPath, ": cannot write: ", std::strerror(errno)));
  return absl::OkStatus();
}

absl::Status StepLog::add(const StepRecord &record) {
  if (metrics.is_open()) {
    nlohmann::ordered_json line;
    line["step"] = record.step;
    line["epoch"] = record.epoch;
    line["loss"] = record.loss; // null if not finite
    line["step_time_ms"] = record.seconds * 1e3;
    line["samples_per_s"] = record.samplesPerSecond;
    line["communication_share"] = record.communicationShare;
    line["wire_bytes"] = record.wireBytes;
    metrics << line.dump() << '\n';
    if (!metrics)
      return absl::DataLossError(absl::StrCat(
          options.metricsPath, ": cannot write: ", std::strerror(errno)));
  }
  if (options.progressBar)
    draw(record);
  else if (options.logEvery > 0 && record.step % options.logEvery == 0)
    out << absl::StrFormat("step %d  epoch %d  loss %.6g  %.0f samples/s\n",
                           record.step, record.epoch, record.loss,
                           record.samplesPerSecond);
  return absl::OkStatus();
}

void StepLog::draw(const StepRecord &record) {
  auto now = std::chrono::steady_clock::now();
  bool last = record.stepInEpoch == record.stepsPerEpoch;
  if (drawn && !last && now - lastDrawn < std::chrono::milliseconds(100))
    return;
  constexpr int width = 24;
  int filled =
      width * record.stepInEpoch / std::max<int64_t>(1, record.stepsPerEpoch);
  out << "\r" << absl::StrFormat("epoch %d [", record.epoch)
      << std::string(filled, '#') << std::string(width - filled, '.')
      << absl::StrFormat("] %d/%d  loss %.6g  %.0f samples/s\x1b[K",
                         record.stepInEpoch, record.stepsPerEpoch, record.loss,
                         record.samplesPerSecond)
      << std::flush;
  lastDrawn = now;
  drawn = true;
}

void StepLog::endEpoch() {
  if (drawn)
    out << "\r\x1b[K";
  drawn = false;
}

absl::Status StepLog::close() {
  if (!metrics.is_open())
    return absl::OkStatus();
  metrics.close();
  if (metrics.fail())
    return absl::DataLossError(absl::StrCat(
        options.metricsPath, ": cannot write: ", std::strerror(errno)));
  return absl::OkStatus();
}
