//===- Advise.h - How to shard a model over devices -------------*- C++ -*-===//
//
// Compiles every candidate that a lower bound does not rule out, and ranks the
// plans by the time of a step (docs/Advice.md). The result does not depend on
// the number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ADVICE_ADVISE_H
#define SHARDC_ADVICE_ADVISE_H

#include "shardc/Advice/Trial.h"

#include <functional>
#include <optional>

namespace shardc {

/// What is asked.
struct AdviceRequest {
  ModelToShard model;
  CandidateLimits limits;
  /// Whether --regather is given: then every plan has it.
  bool isRegatherGiven = false;
  /// So many of the fastest plans are sure to be compiled.
  size_t rows = 10;
  /// Called, by any thread but one at a time, before a candidate is tried: the
  /// number that are done, of all, and its name. May be null.
  std::function<void(size_t done, size_t all, const std::string &name)>
      progress;
};

/// What became of a candidate.
enum class Outcome {
  Fits,
  /// It needs more memory than a device has, whatever it trades for time.
  TooLarge,
  /// Its lower bound is above the times of enough other plans, or the time of
  /// its step: of the plan no more than that was compiled.
  Slower,
  /// It does not compile.
  Failed
};

/// A candidate after the trial.
struct AdvisedPlan {
  Candidate candidate;
  LowerBound bound;
  Outcome outcome = Outcome::Failed;
  /// If it was compiled. Of one that is too large, the price with least memory;
  /// of a slower one that of the step alone.
  std::optional<Price> price;
  /// Parameters, states and the batch on a device, of one that was compiled
  /// only so far, since these alone are too large.
  std::optional<int64_t> argumentBytes;
  /// Of one that does not compile.
  std::string error;

  bool fits() const { return outcome == Outcome::Fits; }
};

struct Advice {
  ModelFacts facts;
  int64_t devices = 1;
  /// As one of the devices sees it.
  Machine machine;
  /// Bytes of a device.
  double memoryLimit = 0;
  /// Those that fit, the fastest first; then the others by their lower bound.
  std::vector<AdvisedPlan> plans;
  /// How many plans were compiled; one candidate may take several.
  size_t numCompiled = 0;

  /// The advised plan; null if none fits.
  const AdvisedPlan *getBest() const {
    return plans.empty() || !plans.front().fits() ? nullptr : &plans.front();
  }
  /// Rows in a second.
  double getRowsPerSecond(const AdvisedPlan &plan) const {
    return facts.batchSize / plan.price->seconds;
  }
  /// The part of the arithmetic that the devices could do in the time of a step
  /// which the model needs, from 0 to 1 (Chowdhery et al., PaLM, appendix B).
  double getUtilization(const AdvisedPlan &plan) const;
};

/// The advice for `request`, of whose model `facts` are known.
Advice advise(const AdviceRequest &request, const ModelFacts &facts);

/// One sentence: why the advised plan wins.
std::string explainBest(const Advice &advice);
/// One sentence: why `plan`, another one of the advice, is not the one.
std::string explainLoss(const Advice &advice, const AdvisedPlan &plan);

/// The best plan of every strategy, in the order of the advice.
std::vector<const AdvisedPlan *> getBestOfStrategies(const Advice &advice);

} // namespace shardc

#endif // SHARDC_ADVICE_ADVISE_H
