//===- CheckReference.h - Against the unpartitioned program -----*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_CHECKREFERENCE_H
#define SHARDC_TOOLS_SHARDC_RUN_CHECKREFERENCE_H

#include "shardc-rt/Executor.h"
#include "shardc-rt/Trainer.h"

#include <deque>
#include <map>
#include <memory>
#include <ostream>

namespace shardc::run {

/// Steps a one-device executor beside the one under test, from the same
/// parameters and on the same batches, and compares.
class ReferenceCheck {
public:
  /// Starts `reference` from the parameters and states of `tested`. A
  /// `tolerance` of 0 derives one at the end.
  static absl::StatusOr<std::unique_ptr<ReferenceCheck>>
  create(rt::Executor &tested, std::unique_ptr<rt::Executor> reference,
         double tolerance);

  /// Runs the reference on `batch`.
  absl::Status step(const rt::Batch &batch);

  /// Compares the loss of the oldest step that has not been compared.
  void compare(const rt::RunResult &result);

  /// Compares parameters, reports, and returns whether all is within the
  /// tolerance.
  absl::StatusOr<bool> finish(std::ostream &out);

private:
  ReferenceCheck(rt::Executor &tested, std::unique_ptr<rt::Executor> reference,
                 std::map<std::string, rt::HostArray> initial,
                 double tolerance);

  rt::Executor &tested;
  std::unique_ptr<rt::Executor> reference;
  /// Parameters before the first step, as f64.
  std::map<std::string, rt::HostArray> initial;
  double tolerance;
  bool isHalf; ///< A program has values of bf16.
  double greatestLoss = 0;
  int64_t steps = 0;         ///< Compared.
  std::deque<double> losses; ///< Of the reference, not compared.
  double largestLossDifference = 0;
  int64_t stepOfLargest = 0;
  bool bitEqual = true;
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_CHECKREFERENCE_H
