//===- Advise.cpp - How to shard a model over devices ---------------------===//

#include "shardc/Advice/Advise.h"

#include "llvm/ADT/STLExtras.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

using namespace shardc;

double Advice::getUtilization(const AdvisedPlan &plan) const {
  double rate = machine.getMatmulFlopsPerSecond(plan.price->computeType);
  return facts.matmulFlops / (plan.price->seconds * devices * rate);
}

namespace {

/// Tries candidates, several at a time.
class Adviser {
public:
  Adviser(const AdviceRequest &request, Advice &advice)
      : request(request), model(request.model), advice(advice) {
    model.stageCuts = &stageCuts;
  }

  void run() {
    CandidateLimits limits = request.limits;
    limits.hasOneLink = advice.machine.hasOneLink(limits.devices) &&
                        limits.fixedAxes.empty() &&
                        request.model.fixedArguments.empty();
    for (Candidate &candidate : listCandidates(advice.facts, limits)) {
      candidate.regather = request.isRegatherGiven;
      advice.plans.emplace_back().candidate = std::move(candidate);
    }
    forAll(0, advice.plans.size(), [&](AdvisedPlan &plan) {
      plan.bound = getBound(plan.candidate, plan.error);
    });
    // The most promising first, so that the others need not be compiled, and
    // searches last, which take longest.
    llvm::stable_sort(advice.plans, [](const auto &lhs, const auto &rhs) {
      return std::make_pair(lhs.candidate.isCheapest(), lhs.bound.seconds) <
             std::make_pair(rhs.candidate.isCheapest(), rhs.bound.seconds);
    });
    inWaves(advice.plans.size(), [&](AdvisedPlan &plan, double limit) {
      report(plan.candidate);
      tryOut(plan, limit);
    });
    // When the others are known: it takes many plans.
    auto end = std::stable_partition(
        advice.plans.begin(), advice.plans.end(), [&](const auto &plan) {
          return plan.outcome == Outcome::TooLarge &&
                 plan.bound.stateBytes <= advice.memoryLimit;
        });
    auto getSeconds = [](const AdvisedPlan &plan) {
      return std::make_pair(plan.candidate.isCheapest(),
                            plan.price ? plan.price->seconds
                                       : plan.bound.seconds);
    };
    std::stable_sort(advice.plans.begin(), end,
                     [&](const auto &lhs, const auto &rhs) {
                       return getSeconds(lhs) < getSeconds(rhs);
                     });
    inWaves(end - advice.plans.begin(), [&](AdvisedPlan &plan, double limit) {
      // What saves memory takes time, and it takes too long already.
      if (getSeconds(plan).second <= limit)
        saveMemory(plan, limit);
    });
    advice.numCompiled = numCompiled;
    rank();
  }

private:
  template <typename Function>
  void forAll(size_t begin, size_t end, Function function) {
    std::atomic<size_t> next = begin;
    auto work = [&] {
      for (size_t i = next++; i < end; i = next++)
        function(advice.plans[i]);
    };
    std::vector<std::thread> threads;
    size_t others =
        std::min<size_t>(std::thread::hardware_concurrency(), end - begin);
    for (size_t i = 1; i < others; ++i)
      threads.emplace_back(work);
    work();
    for (std::thread &thread : threads)
      thread.join();
  }

  /// Calls `function` for each of the first `count` plans, with the time that
  /// it has to beat. That depends on the waves before, not on the threads.
  template <typename Function>
  void inWaves(size_t count, Function function) {
    constexpr size_t wave = 8;
    for (size_t begin = 0; begin < count; begin += wave) {
      double limit = getTimeOfLastRow();
      forAll(begin, std::min(begin + wave, count),
             [&](AdvisedPlan &plan) { function(plan, limit); });
    }
  }

  void report(const Candidate &candidate) {
    if (!request.progress)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    request.progress(numBegun++, advice.plans.size(), candidate.getName());
  }

  /// The bounds of `candidate`; none, with `error`, if annotations do not suit.
  LowerBound getBound(const Candidate &candidate, std::string &error,
                      llvm::ArrayRef<int64_t> stages = {}) const {
    llvm::Expected<Trial> trial = Trial::make(model, candidate);
    if (trial)
      return trial->getLowerBound(advice.facts, stages);
    error = llvm::toString(trial.takeError());
    return {};
  }

  /// Whether the bounds of `candidate` leave it out, which get tighter for that
  /// where it is a pipeline: its stages are found then.
  bool isLeftOut(const Candidate &candidate, double limit, LowerBound &bound) {
    auto isAbove = [&] {
      return bound.seconds > limit || bound.memoryBytes > advice.memoryLimit;
    };
    if (isAbove() || candidate.getStages() == 1)
      return isAbove();
    std::vector<int64_t> stages = getStages(candidate);
    std::string error;
    if (!stages.empty())
      bound = getBound(candidate, error, stages);
    return isAbove();
  }

  /// The stages of the layers in the plan of `candidate`: the same on every
  /// mesh, since ops have the same times. Empty if they are not found.
  std::vector<int64_t> getStages(const Candidate &candidate) {
    auto key = std::make_tuple(candidate.schedule, candidate.getStages(),
                               candidate.virtualStages, candidate.microbatches);
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (auto found = stagesOfLayers.find(key); found != stagesOfLayers.end())
        return found->second;
    }
    std::vector<int64_t> stages;
    if (llvm::Expected<Trial> trial = Trial::make(model, candidate))
      stages = trial->assignStages();
    else
      llvm::consumeError(trial.takeError());
    std::lock_guard<std::mutex> lock(mutex);
    stagesOfLayers.emplace(std::move(key), stages);
    return stages;
  }

  /// The time that a plan has to beat to be among those that are printed.
  double getTimeOfLastRow() const {
    std::vector<double> seconds;
    for (const AdvisedPlan &plan : advice.plans)
      if (plan.fits())
        seconds.push_back(plan.price->seconds);
    if (seconds.size() < request.rows)
      return std::numeric_limits<double>::infinity();
    llvm::sort(seconds);
    return seconds[request.rows - 1];
  }

  /// Compiles `candidate`; nullopt with `error` if that fails. Of a pipeline
  /// the step alone, if it takes longer than `limit` or does not fit: it is the
  /// longest program of a plan, and other programs need memory as well. With
  /// `saves` all of a plan whose step fits, as fast as it may be.
  std::optional<Price> compile(const Candidate &candidate, double limit,
                               bool saves, std::string &error) {
    auto run = [&](bool isStep) -> std::optional<Price> {
      llvm::Expected<Trial> trial = Trial::make(model, candidate);
      if (!trial) {
        error = llvm::toString(trial.takeError());
        return std::nullopt;
      }
      llvm::Expected<Price> price =
          isStep ? trial->priceStep(limit) : trial->price();
      if (!price) {
        error = llvm::toString(price.takeError());
        return std::nullopt;
      }
      return *price;
    };
    if (candidate.getStages() > 1 && std::isfinite(limit)) {
      std::optional<Price> step = run(/*isStep=*/true);
      if (!step || !step->isCompiled || !fits(*step) ||
          (step->seconds > limit && !saves)) {
        numCompiled += step && step->isCompiled;
        return step;
      }
    }
    ++numCompiled;
    return run(/*isStep=*/false);
  }

  void tryOut(AdvisedPlan &plan, double limit) {
    if (!plan.error.empty())
      return;
    if (plan.bound.stateBytes > advice.memoryLimit) {
      plan.outcome = Outcome::TooLarge;
      return;
    }
    if (isLeftOut(plan.candidate, limit, plan.bound)) {
      plan.outcome =
          plan.bound.seconds > limit ? Outcome::Slower : Outcome::TooLarge;
      return;
    }
    std::optional<Price> price =
        compile(plan.candidate, limit, /*saves=*/false, plan.error);
    if (!price)
      return;
    if (plan.candidate.getStages() > 1 && price->seconds > limit) {
      plan.outcome = Outcome::Slower;
      plan.bound.seconds = std::max(plan.bound.seconds, price->seconds);
      if (price->isCompiled)
        plan.price = price;
      return;
    }
    plan.price = price;
    plan.outcome = fits(*plan.price) ? Outcome::Fits : Outcome::TooLarge;
  }

  bool fits(const Price &price) const {
    return price.peakBytes <= advice.memoryLimit;
  }

  /// Trades time for memory: gathers weights again, recomputes, and takes as
  /// many microbatches as it needs; keeps the fastest that fits.
  void saveMemory(AdvisedPlan &plan, double limit) {
    const Candidate given = plan.candidate;
    bool isPipeline = given.getStages() > 1;
    std::vector<bool> regathers = {given.regather};
    if (!given.regather &&
        (given.isCheapest() || !given.getStrategy().parameterAxis.empty()))
      regathers.push_back(true);
    std::vector<std::string> policies = {given.recompute};
    if (request.limits.recompute.empty())
      policies.push_back(isPipeline ? "stage" : "layer");
    for (const std::string &policy : policies)
      for (bool regather : regathers) {
        Candidate variant = given;
        variant.recompute = policy;
        variant.regather = regather;
        double most =
            plan.fits() ? std::min(limit, plan.price->seconds) : limit;
        addMicrobatches(variant, isPipeline, plan, most);
      }
  }

  /// Offers `variant` with more and more microbatches, until it fits or more of
  /// them save nothing.
  void addMicrobatches(Candidate variant, bool isPipeline, AdvisedPlan &plan,
                       double limit) {
    int64_t rows = advice.facts.batchSize / variant.getRowShards();
    // The plan that does not fit.
    const std::string choices = plan.candidate.getChoices();
    const std::optional<Price> given = plan.price;
    double before = std::numeric_limits<double>::infinity();
    for (;; variant.microbatches *= 2) {
      bool isLast = isPipeline || request.limits.microbatches > 0 ||
                    2 * variant.microbatches > rows;
      std::string error;
      std::optional<Price> price = given;
      if (variant.getChoices() != choices || !given) {
        LowerBound bound = getBound(variant, error);
        if (!error.empty())
          return;
        if (isLeftOut(variant, limit, bound)) {
          if (bound.seconds > limit)
            return;
          offer(variant, bound, plan);
          if (isLast)
            return;
          continue;
        }
        price = compile(variant, limit, /*saves=*/true, error);
      }
      if (!price || !price->isCompiled)
        return;
      offer(variant, *price, plan);
      bool isSaving = price->peakBytes < 0.98 * before;
      before = price->peakBytes;
      if (fits(*price) || !isSaving || price->seconds > limit || isLast)
        return;
    }
  }

  /// Takes the one with the least bound, as long as none was compiled.
  static void offer(const Candidate &candidate, const LowerBound &bound,
                    AdvisedPlan &plan) {
    if (plan.price || bound.memoryBytes >= plan.bound.memoryBytes)
      return;
    plan.candidate = candidate;
    plan.bound = bound;
  }

  /// Takes the fastest that fits, or else the smallest.
  void offer(const Candidate &candidate, const Price &price,
             AdvisedPlan &plan) const {
    bool isBetter =
        !plan.price ||
        (fits(price) != plan.fits()
             ? fits(price)
             : (plan.fits() ? price.seconds < plan.price->seconds
                            : price.peakBytes < plan.price->peakBytes));
    if (!isBetter)
      return;
    plan.candidate = candidate;
    plan.price = price;
    plan.outcome = fits(price) ? Outcome::Fits : Outcome::TooLarge;
  }

  void rank() {
    llvm::stable_sort(advice.plans, [](const auto &lhs, const auto &rhs) {
      if (lhs.fits() != rhs.fits())
        return lhs.fits();
      return lhs.fits() ? lhs.price->seconds < rhs.price->seconds
                        : lhs.bound.seconds < rhs.bound.seconds;
    });
  }

  const AdviceRequest &request;
  StageCutCache stageCuts;
  /// By schedule, ranks, stages of each and microbatches.
  std::map<std::tuple<std::string, int64_t, int64_t, int64_t>,
           std::vector<int64_t>>
      stagesOfLayers;
  ModelToShard model;
  Advice &advice;
  std::mutex mutex;
  size_t numBegun = 0;
  std::atomic<size_t> numCompiled = 0;
};

} // namespace

Advice shardc::advise(const AdviceRequest &request, const ModelFacts &facts) {
  Advice advice;
  advice.facts = facts;
  advice.devices = request.limits.devices;
  llvm::Expected<Machine> machine = loadMachine(request.model.options.machine);
  // The caller has checked the options.
  assert(machine && "a machine that cannot be read");
  advice.machine = std::move(*machine);
  advice.machine.shareAmong(advice.devices);
  advice.memoryLimit = request.model.options.deviceMemory > 0
                           ? request.model.options.deviceMemory
                           : advice.machine.memoryBytes;
  Adviser(request, advice).run();
  return advice;
}

std::vector<const AdvisedPlan *>
shardc::getBestOfStrategies(const Advice &advice) {
  std::vector<const AdvisedPlan *> best;
  for (const AdvisedPlan &plan : advice.plans)
    if (llvm::none_of(best, [&](const AdvisedPlan *other) {
          return other->candidate.strategy == plan.candidate.strategy;
        }))
      best.push_back(&plan);
  return best;
}
