//===- Advise.cpp - How to shard a model over devices ---------------------===//

#include "shardc/Advice/Advise.h"

#include "llvm/ADT/STLExtras.h"

#include <atomic>
#include <cmath>
#include <condition_variable>
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
    forAll([&](AdvisedPlan &plan) {
      plan.bound = getBound(plan.candidate, plan.error);
    });
    // The most promising first, so that the others need not be compiled, and
    // searches last, which take longest.
    llvm::stable_sort(advice.plans, [](const auto &lhs, const auto &rhs) {
      return std::make_pair(lhs.candidate.isCheapest(), lhs.bound.seconds) <
             std::make_pair(rhs.candidate.isCheapest(), rhs.bound.seconds);
    });
    inOrder(advice.plans.size(), [&](AdvisedPlan &plan, double limit) {
      report(plan.candidate);
      tryOut(plan, limit);
    });
    // When the others are known: it takes many plans.
    auto end = std::stable_partition(
        advice.plans.begin(), advice.plans.end(), [&](const auto &plan) {
          return plan.outcome == Outcome::TooLarge &&
                 plan.bound.stateBytes <= advice.memoryLimit && canChange(plan);
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
    inOrder(end - advice.plans.begin(), [&](AdvisedPlan &plan, double limit) {
      // What saves memory takes time, and it takes too long already.
      if (getSeconds(plan).second <= limit)
        saveMemory(plan, limit);
    });
    advice.numCompiled = numCompiled;
    rank();
  }

private:
  /// Calls `work`, which shares out what there is to do, on as many threads as
  /// `most` and the computer allow.
  static void onThreads(size_t most, llvm::function_ref<void()> work) {
    std::vector<std::thread> threads;
    size_t number = std::min<size_t>(std::thread::hardware_concurrency(), most);
    for (size_t i = 1; i < number; ++i)
      threads.emplace_back(work);
    work();
    for (std::thread &thread : threads)
      thread.join();
  }

  /// Calls `function` for each plan.
  template <typename Function>
  void forAll(Function function) {
    std::atomic<size_t> next = 0;
    onThreads(advice.plans.size(), [&] {
      for (size_t i = next++; i < advice.plans.size(); i = next++)
        function(advice.plans[i]);
    });
  }

  /// Calls `function` for each of the first `count` plans, several at a time,
  /// with the time that it has to beat: that of the plans at least `window`
  /// before it, for which it waits, whatever the number of threads.
  template <typename Function>
  void inOrder(size_t count, Function function) {
    constexpr size_t window = 16;
    std::mutex mutex;
    std::condition_variable changed;
    // The plans before `numDone`, and some behind it, are done.
    size_t next = 0, numDone = 0;
    std::vector<bool> isDone(count, false);
    onThreads(std::min(window, count), [&] {
      std::unique_lock<std::mutex> lock(mutex);
      while (next < count) {
        size_t own = next++;
        size_t before = own < window ? 0 : own - window + 1;
        changed.wait(lock, [&] { return numDone >= before; });
        double limit = getTimeOfLastRow(before, count);
        lock.unlock();
        function(advice.plans[own], limit);
        lock.lock();
        isDone[own] = true;
        while (numDone < count && isDone[numDone])
          ++numDone;
        changed.notify_all();
      }
    });
  }

  void report(const Candidate &candidate) {
    if (!request.progress)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    request.progress(numBegun++, advice.plans.size(), candidate.getName());
  }

  /// The bounds of `candidate`; none, with `error`, if annotations do not suit.
  LowerBound getBound(const Candidate &candidate, std::string &error,
                      llvm::ArrayRef<int64_t> stages = {}) {
    std::unique_ptr<ParsedModel> parsed = takeParsed();
    LowerBound bound;
    if (llvm::Expected<Trial> trial = Trial::make(model, candidate, *parsed))
      bound = trial->getLowerBound(advice.facts, stages);
    else
      error = llvm::toString(trial.takeError());
    std::lock_guard<std::mutex> lock(mutex);
    idle.push_back(std::move(parsed));
    return bound;
  }

  /// A module of the model that no other thread uses.
  std::unique_ptr<ParsedModel> takeParsed() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!idle.empty())
        return idle.pop_back_val();
    }
    // It has been parsed for the facts.
    return std::make_unique<ParsedModel>(
        llvm::cantFail(ParsedModel::parse(model)));
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

  /// The time that a plan has to beat to be among those that are printed, if
  /// the plans from `before` to `count` are not known yet.
  double getTimeOfLastRow(size_t before, size_t count) const {
    std::vector<double> seconds;
    for (size_t i = 0; i < advice.plans.size(); ++i)
      if ((i < before || i >= count) && advice.plans[i].fits())
        seconds.push_back(advice.plans[i].price->seconds);
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
    llvm::Expected<Price> price = candidate.getStages() > 1
                                      ? compilePipeline(candidate, limit, saves)
                                      : compileFlat(candidate);
    if (price) {
      numCompiled += price->isCompiled;
      return *price;
    }
    ++numCompiled;
    error = llvm::toString(price.takeError());
    return std::nullopt;
  }

  llvm::Expected<Price> compilePipeline(const Candidate &candidate,
                                        double limit, bool saves) {
    llvm::Expected<Trial> trial = Trial::make(model, candidate);
    if (!trial)
      return trial.takeError();
    llvm::Expected<Price> price = trial->priceStep(limit);
    if (price && price->isCompiled && fits(*price) &&
        (price->seconds <= limit || saves))
      return trial->priceAll();
    return price;
  }

  llvm::Expected<Price> compileFlat(const Candidate &candidate) {
    if (hasOnePlan(candidate)) {
      llvm::Expected<Trial> trial = Trial::make(model, candidate);
      if (!trial)
        return trial.takeError();
      if (llvm::Error failure = trial->prepare())
        return failure;
      llvm::Expected<Price> price = priceOrRefuse(*trial, candidate.recompute);
      if (!candidate.isCheapest() || !price || !fits(*price))
        return price;
    }
    llvm::Expected<Trial> trial = Trial::make(model, candidate);
    return trial ? trial->price() : trial.takeError();
  }

  /// The price of `prepared`, which is compiled further only if parameters,
  /// states and the batch fit: otherwise their bytes.
  llvm::Expected<Price> priceOrRefuse(const Trial &prepared,
                                      llvm::StringRef recompute) const {
    Price least;
    least.peakBytes = prepared.getArgumentBytes();
    if (!fits(least))
      return least;
    return prepared.priceRecomputing(recompute);
  }

  /// Whether the plan of `candidate`, if it fits at all, is that of the
  /// strategy or the search: the one that follows no annotation, with which a
  /// search compares its own, has all parameters and states on each device.
  bool hasOnePlan(const Candidate &candidate) const {
    return !candidate.isCheapest() ||
           (model.fixedArguments.empty() &&
            advice.facts.parameterBytes + advice.facts.stateBytes >
                advice.memoryLimit);
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
    plan.outcome = fits(*price) ? Outcome::Fits : Outcome::TooLarge;
    if (price->isCompiled)
      plan.price = price;
    else
      refuse(plan.candidate, *price, plan);
  }

  bool fits(const Price &price) const {
    return price.peakBytes <= advice.memoryLimit;
  }

  /// Variants of one candidate up to `collectives`, by whether they gather
  /// weights again and their microbatches: with and without recomputation they
  /// are the same.
  using PreparedTrials =
      std::map<std::pair<bool, int64_t>, std::unique_ptr<Trial>>;

  /// As `compile`, of a `variant` that saves memory.
  std::optional<Price> compileVariant(const Candidate &variant, double limit,
                                      PreparedTrials &prepared,
                                      std::string &error) {
    if (variant.getStages() > 1 || !hasOnePlan(variant))
      return compile(variant, limit, /*saves=*/true, error);
    std::unique_ptr<Trial> &trial =
        prepared[{variant.regather, variant.microbatches}];
    if (!trial) {
      Candidate keeping = variant;
      keeping.recompute = "none";
      llvm::Expected<Trial> made = Trial::make(model, keeping);
      if (!made) {
        error = llvm::toString(made.takeError());
        return std::nullopt;
      }
      if (llvm::Error failure = made->prepare()) {
        error = llvm::toString(std::move(failure));
        return std::nullopt;
      }
      trial = std::make_unique<Trial>(std::move(*made));
    }
    llvm::Expected<Price> price = priceOrRefuse(*trial, variant.recompute);
    if (!price) {
      error = llvm::toString(price.takeError());
      return std::nullopt;
    }
    if (!variant.isCheapest() || !fits(*price)) {
      numCompiled += price->isCompiled;
      return *price;
    }
    return compile(variant, limit, /*saves=*/true, error);
  }

  /// Trades time for memory: gathers weights again, recomputes, and takes as
  /// many microbatches as it needs; keeps the fastest that fits.
  void saveMemory(AdvisedPlan &plan, double limit) {
    const Candidate given = plan.candidate;
    PreparedTrials prepared;
    bool isPipeline = given.getStages() > 1;
    std::vector<bool> regathers = {given.regather};
    if (!given.regather &&
        (given.isCheapest() || !given.getStrategy().parameterAxis.empty()))
      regathers.push_back(true);
    std::vector<std::string> policies = {given.recompute};
    if (request.limits.recompute.empty())
      policies.push_back(isPipeline ? "stage" : "layer");
    for (const std::string &policy : policies)
      llvm::erase_if(regathers, [&](bool regather) {
        if (!canChange(plan))
          return true;
        Candidate variant = given;
        variant.recompute = policy;
        variant.regather = regather;
        double most =
            plan.fits() ? std::min(limit, plan.price->seconds) : limit;
        return !addMicrobatches(variant, isPipeline, plan, most, prepared);
      });
  }

  /// Offers `variant` with more and more microbatches, until it fits or more of
  /// them save nothing. Returns false if the arguments alone are too large,
  /// whatever is computed again.
  bool addMicrobatches(Candidate variant, bool isPipeline, AdvisedPlan &plan,
                       double limit, PreparedTrials &prepared) {
    int64_t rows = advice.facts.batchSize / variant.getRowShards();
    // The plan that does not fit.
    const std::string choices = plan.candidate.getChoices();
    const std::optional<Price> given = plan.price;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double before = infinity;
    double argumentsBefore = plan.argumentBytes.value_or(infinity);
    for (;; variant.microbatches *= 2) {
      bool isLast = isPipeline || request.limits.microbatches > 0 ||
                    2 * variant.microbatches > rows;
      std::string error;
      std::optional<Price> price = given;
      if (variant.getChoices() != choices || !given) {
        LowerBound bound = variant.getChoices() == choices
                               ? plan.bound
                               : getBound(variant, error);
        if (!error.empty())
          return true;
        if (isLeftOut(variant, limit, bound)) {
          if (bound.seconds > limit)
            return true;
          offer(variant, bound, plan);
          if (isLast)
            return true;
          continue;
        }
        price = compileVariant(variant, limit, prepared, error);
        if (price && !price->isCompiled && !isPipeline) {
          refuse(variant, *price, plan);
          bool isSaving = price->peakBytes < 0.98 * argumentsBefore;
          argumentsBefore = price->peakBytes;
          if (!canChange(plan) || !isSaving || isLast)
            return false;
          continue;
        }
      }
      if (!price || !price->isCompiled)
        return true;
      offer(variant, *price, plan);
      bool isSaving = price->peakBytes < 0.98 * before;
      before = price->peakBytes;
      if (fits(*price) || !isSaving || price->seconds > limit || isLast)
        return true;
    }
  }

  /// Notes that of `candidate` the arguments alone, whose bytes `price` has,
  /// are too large; the least of them, as long as none was compiled further.
  static void refuse(const Candidate &candidate, const Price &price,
                     AdvisedPlan &plan) {
    if (plan.price ||
        (plan.argumentBytes && *plan.argumentBytes <= price.peakBytes))
      return;
    plan.candidate = candidate;
    plan.argumentBytes = price.peakBytes;
    plan.bound.memoryBytes = price.peakBytes;
  }

  /// Whether other variants of `plan` may have smaller arguments, if these do
  /// not fit: annotations fix them, another search may divide them otherwise.
  static bool canChange(const AdvisedPlan &plan) {
    return !plan.argumentBytes || plan.candidate.isCheapest();
  }

  /// Takes the one with the least bound, as long as nothing more is known.
  static void offer(const Candidate &candidate, const LowerBound &bound,
                    AdvisedPlan &plan) {
    if (plan.price || plan.argumentBytes ||
        bound.memoryBytes >= plan.bound.memoryBytes)
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
  llvm::SmallVector<std::unique_ptr<ParsedModel>> idle;
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
