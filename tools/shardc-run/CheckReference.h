//===- CheckReference.h - Comparison with the unpartitioned program -------===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_CHECKREFERENCE_H
#define SHARDC_TOOLS_SHARDC_RUN_CHECKREFERENCE_H

#include "CompareRuns.h"

#include "shardc-rt/Executor.h"
#include "shardc-rt/Trainer.h"

#include <deque>
#include <functional>
#include <memory>
#include <ostream>

namespace shardc::run {

/// The result of a check.
struct ReferenceResult {
  enum class Verdict { BitEqual, Agrees, Mismatch };
  Verdict verdict = Verdict::BitEqual;
  int64_t steps = 0;
  /// The first and last step, from 1, of the segment nearest to its limits or,
  /// for a mismatch, of the first segment beyond them.
  int64_t firstStep = 0, lastStep = 0;
  Distance distance, limits;
  /// "losses", "parameters", "changes" or a tensor that differs too much.
  std::string excess;
  int64_t segments = 0;
  /// Segments whose limits come from perturbing their start by rounding.
  int64_t sensitiveSegments = 0;
  /// Segments beyond these, which were compared again step by step.
  int64_t replayedSegments = 0;
  bool isHalf = false; ///< A program has values of bf16.
};

/// "bit-equal", "agrees", "MISMATCH".
const char *toString(ReferenceResult::Verdict verdict);

/// Prints the result for people.
void print(const ReferenceResult &result, std::ostream &out);

/// Steps a one-device executor beside the one under test, on the same batches
/// and in segments that begin in the same state, and compares.
class ReferenceCheck {
public:
  /// The batch of a step of the training, from 0.
  using BatchOfStep = std::function<absl::StatusOr<rt::Batch>(int64_t)>;

  /// A `tolerance` of 0: the limits follow from the run. `tested` is borrowed;
  /// its training goes on from `start`.
  ReferenceCheck(rt::Executor &tested, std::unique_ptr<rt::Executor> reference,
                 double tolerance, BatchOfStep batchOfStep,
                 const rt::TrainProgress &start);

  /// Runs the reference on `batch`, before the tested one does.
  absl::Status step(const rt::Batch &batch);

  /// Adds the loss of the oldest step of the tested one that has none yet.
  void addLoss(double loss);

  /// Compares the remaining segments, when all steps have ended.
  absl::StatusOr<ReferenceResult> finish();

private:
  /// Steps that began in the same state and have ended.
  struct Segment {
    int64_t firstStep; ///< From 0.
    rt::ArrayMap start;
    RunSegment expected, actual;
  };

  /// How far a segment's runs are apart, how far they may be, and the first
  /// number that is beyond that, or "".
  struct Comparison {
    Distance distance, limits;
    std::string excess;
    bool isSensitive = false; ///< The limits were measured.
  };

  absl::Status endSegment();
  absl::Status compareEnded();
  absl::Status compare(Segment &segment);
  absl::Status judge(const Segment &segment, Comparison &comparison);
  Distance limitsOf(const Segment &segment) const;
  absl::Status measureSensitivity(const Segment &segment,
                                  Comparison &comparison);
  absl::Status replay(Segment segment);
  void record(const Segment &segment, Comparison comparison);

  rt::Executor &tested;
  std::unique_ptr<rt::Executor> reference;
  double tolerance;
  BatchOfStep batchOfStep;
  int64_t stepsBefore; ///< Of the training; steps below count from these on.
  double longest;      ///< Terms of the longest sum.
  Scales scales;
  std::vector<double> losses;   ///< Of the tested one, by step.
  std::vector<double> expected; ///< Of the reference, by step.
  int64_t firstStep = 0;        ///< Of the present segment.
  rt::ArrayMap start;           ///< The state it began in.
  /// Not yet compared, since some of their losses may be missing.
  std::deque<Segment> ended;
  /// Beyond their limits, and to be replayed; only what that needs.
  std::deque<Segment> doubtful;
  ReferenceResult result;
  double nearest = -1; ///< Of all segments, in parts of the limits.
};

/// The most bytes that copies of parameters and states take in a comparison of
/// runs of `plan`, besides the two programs.
uint64_t stateCopyBytes(const rt::Plan &plan);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_CHECKREFERENCE_H
