//===- Summary.h - The results of a run -------------------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_SUMMARY_H
#define SHARDC_TOOLS_SHARDC_RUN_SUMMARY_H

#include "Arguments.h"
#include "CheckReference.h"
#include "PrintProfile.h"

#include "shardc-rt/Executor.h"
#include "shardc-rt/Trainer.h"

#include <chrono>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace shardc::run {

/// The results of a run; steps that it did not do are missing.
struct RunSummary {
  struct EpochEvaluation {
    int64_t epoch, step; ///< After which it was made, from 1.
    rt::Evaluation evaluation;
  };

  std::optional<rt::TrainSummary> training;
  std::string error; ///< Why the training failed; empty: it did not.
  std::vector<EpochEvaluation> evaluations; ///< Of --eval-every.
  std::optional<rt::Evaluation> evaluation; ///< At the end.
  struct Prediction {
    std::string path;
    rt::DType dtype;
    std::vector<int64_t> shape; ///< With all rows.
  };
  std::optional<Prediction> prediction;
  std::optional<ReferenceResult> reference;
  std::optional<ProfileReport> profile;
  int stoppedBy = 0; ///< A signal; 0: none.
  struct CheckpointSummary {
    int64_t written = 0;
    int64_t step = 0; ///< Of the last one.
    std::string path;
    double copySeconds = 0; ///< Longest that the training stood still.
  };
  /// Empty: there is none.
  std::optional<CheckpointSummary> checkpoint;
};

/// "loss 0.0721, accuracy 97.50 % (351 of 360)".
std::string describe(const rt::Evaluation &evaluation);

/// Prints the results of a run, in lines for people.
void printSummary(const RunSummary &summary, std::ostream &out);

/// Prints the results, the requirements of the plan and the compile options
/// that were given, as one JSON object.
void printJsonSummary(const rt::Executor &executor, const RunSummary &summary,
                      const Arguments &arguments, std::ostream &out);

/// The same without results. `devices` describes the devices.
void printJsonPlan(const rt::Plan &plan, const std::string &devices,
                   const Arguments &arguments, std::ostream &out);

/// Prints the progress of initialization if it takes long. A function for
/// ExecutorOptions::onInitialize.
class InitializationProgress {
public:
  /// On a terminal one line is drawn again and again.
  InitializationProgress(std::ostream &out, bool isTerminal)
      : out(&out), isTerminal(isTerminal) {}

  void operator()(int64_t done, int64_t elements);

private:
  using Clock = std::chrono::steady_clock;

  std::ostream *out;
  bool isTerminal;
  bool isDrawn = false;
  Clock::time_point last = Clock::now();
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_SUMMARY_H
