//===- Explain.cpp - Why a plan wins or loses -----------------------------===//

#include "shardc/Advice/AdviceReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace shardc;

/// The axes along which a plan sends most.
static std::string getBusiestAxes(const Price &price) {
  const std::pair<std::string, int64_t> *most = nullptr;
  for (const auto &each : price.wireBytes)
    if (!most || each.second > most->second)
      most = &each;
  return most ? most->first : "no axis";
}

/// The part of a plan's arithmetic beyond that of the model.
static double getRedundantPart(const Advice &advice, const Price &price) {
  return price.matmulFlops / advice.facts.matmulFlops - 1;
}

/// Less is not worth a word.
constexpr double leastRedundantPart = 0.005;

std::string shardc::explainBest(const Advice &advice) {
  const AdvisedPlan &best = *advice.getBest();
  const Price &price = *best.price;
  double exposed = price.getExposedSeconds(advice.machine);
  std::string text = llvm::formatv(
      "arithmetic takes {0} of a step, memory {1}, communication that nothing "
      "hides {2}",
      getPercentText(price.computeSeconds / price.seconds),
      getPercentText(price.memorySeconds / price.seconds),
      getPercentText(exposed / price.seconds));
  if (price.inputSeconds > 0)
    text += ", inputs from the host, beside all that, " +
            getPercentText(price.inputSeconds / price.seconds);
  if (best.candidate.getStages() > 1)
    text += ", waiting for other ranks " +
            getPercentText(price.waitSeconds / price.seconds);
  double redundant = getRedundantPart(advice, price);
  if (redundant > leastRedundantPart)
    text += "; devices do " + getPercentText(redundant) +
            " of the model's arithmetic more than once, or on padding" +
            (advice.machine.computer
                 ? "; what is the same on several is computed once"
                 : "");
  if (advice.plans.size() > 1 && advice.plans[1].fits()) {
    double ratio = advice.plans[1].price->seconds / price.seconds - 1;
    text += "; the next plan, " + advice.plans[1].candidate.getName() +
            (ratio < 0.0005
                 ? ", takes as long"
                 : llvm::formatv(", takes {0:F1} % longer", 100 * ratio).str());
  }
  return text;
}

/// What would make a plan fit.
static std::string getRemedy(const Advice &advice, const AdvisedPlan &plan) {
  const AdvisedPlan *smallest = nullptr;
  for (const AdvisedPlan &other : advice.plans)
    if (other.fits() &&
        (!smallest || other.price->peakBytes < smallest->price->peakBytes))
      smallest = &other;
  if (smallest)
    return smallest->candidate.getName() + " fits, with " +
           getBytesText(smallest->price->peakBytes);
  double least = advice.facts.parameterBytes + advice.facts.stateBytes;
  double most = advice.memoryLimit;
  // Activations and gradients come on top, so it is a bound.
  int64_t devices = std::max<int64_t>(std::ceil(least / most), 1);
  if (devices > advice.devices)
    return llvm::formatv("parameters and states, fully sharded, need at least "
                         "{0} devices of {1}",
                         devices, getBytesText(most));
  return "a smaller batch, more devices or more memory would help";
}

static std::string explainSize(const Advice &advice, const AdvisedPlan &plan) {
  double limit = advice.memoryLimit;
  if (!plan.price && plan.bound.stateBytes > limit)
    return llvm::formatv(
        "does not fit: parameters and states alone take {0}, {1} more than a "
        "device has; {2}",
        getBytesText(plan.bound.stateBytes),
        getBytesText(plan.bound.stateBytes - limit), getRemedy(advice, plan));
  if (!plan.price && plan.argumentBytes)
    return llvm::formatv(
        "does not fit: parameters, states and the batch alone take {0}, {1} "
        "more than a device has; {2}",
        getBytesText(*plan.argumentBytes),
        getBytesText(*plan.argumentBytes - limit), getRemedy(advice, plan));
  std::string choices = plan.candidate.getChoices();
  if (!plan.price)
    return llvm::formatv("does not fit: needs at least {0}{1}, {2} more than a "
                         "device has; {3}",
                         getBytesText(plan.bound.memoryBytes),
                         choices.empty() ? "" : " even with " + choices,
                         getBytesText(plan.bound.memoryBytes - limit),
                         getRemedy(advice, plan));
  return llvm::formatv("does not fit: needs {0}{1}, {2} more than a device "
                       "has; {3}",
                       getBytesText(plan.price->peakBytes),
                       choices.empty() ? "" : " even with " + choices,
                       getBytesText(plan.price->peakBytes - limit),
                       getRemedy(advice, plan));
}

/// Why a plan that fits takes longer than the best one: what it spends more
/// time on than that.
static std::string explainTime(const Advice &advice, const AdvisedPlan &plan) {
  const Price &price = *plan.price, &best = *advice.getBest()->price;
  const Machine &machine = advice.machine;
  double exposed =
      price.getExposedSeconds(machine) - best.getExposedSeconds(machine);
  double waiting = price.waitSeconds - best.waitSeconds;
  double compute = price.computeSeconds - best.computeSeconds;
  double memory = price.memorySeconds - best.memorySeconds;
  double most = std::max({exposed, waiting, compute, memory});
  std::string text = llvm::formatv("{0:F1} % slower: ",
                                   100 * (price.seconds / best.seconds - 1));
  if (price.inputSeconds > 0 && price.inputSeconds >= price.seconds)
    return text + llvm::formatv("a device waits for {0} of inputs from the "
                                "host ({1} in the advised plan)",
                                getSecondsText(price.inputSeconds),
                                getSecondsText(best.inputSeconds))
                      .str();
  if (most == waiting)
    return text +
           llvm::formatv(
               "the busiest rank waits {0} for others ({1} in the advised "
               "plan); {2} microbatches on {3} ranks have a bubble of {4}",
               getSecondsText(price.waitSeconds),
               getSecondsText(best.waitSeconds), plan.candidate.microbatches,
               plan.candidate.getStages(), getPercentText(price.bubble))
               .str();
  if (most == exposed)
    return text +
           llvm::formatv("{0} of communication, most of it along {1}, are not "
                         "hidden ({2} in the advised plan)",
                         getSecondsText(price.getExposedSeconds(machine)),
                         getBusiestAxes(price),
                         getSecondsText(best.getExposedSeconds(machine)))
               .str();
  // Where devices share what they compute, it is not what they repeat.
  if (most == compute && machine.computer)
    return text + "the arithmetic of all devices together takes longer";
  double redundant = getRedundantPart(advice, price);
  if (most == compute && redundant > leastRedundantPart)
    return text + llvm::formatv("devices do {0} of the model's arithmetic more "
                                "than once, or on padding",
                                getPercentText(redundant))
                      .str();
  if (most == compute)
    return text + "the busiest device has more arithmetic";
  return text +
         llvm::formatv("each device moves more of its memory ({0} against "
                       "{1})",
                       getSecondsText(price.memorySeconds),
                       getSecondsText(best.memorySeconds))
             .str();
}

std::string shardc::explainLoss(const Advice &advice, const AdvisedPlan &plan) {
  switch (plan.outcome) {
  case Outcome::Failed:
    return "does not compile: " + plan.error;
  case Outcome::TooLarge:
    return explainSize(advice, plan);
  case Outcome::Slower:
    if (plan.price)
      break;
    return llvm::formatv(
        "not compiled: it takes at least {0}, by a bound that leaves a part of "
        "its work out",
        getSecondsText(plan.bound.seconds));
  case Outcome::Fits:
    break;
  }
  if (plan.price->seconds <= advice.getBest()->price->seconds * 1.0005)
    return "takes as long as the advised plan, which is simpler or the same";
  return explainTime(advice, plan);
}
