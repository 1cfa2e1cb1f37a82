//===- AdviceReport.cpp - Advice as text and JSON -------------------------===//

#include "shardc/Advice/AdviceReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace shardc;

/// `value` in the largest of `units`, each a thousand times the one before,
/// that leaves at least 1.
static std::string getUnitText(double value,
                               llvm::ArrayRef<const char *> units) {
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit)
    value /= 1000;
  // Three digits that count.
  int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::string number = digits == 0   ? llvm::formatv("{0:F0}", value).str()
                       : digits == 1 ? llvm::formatv("{0:F1}", value).str()
                                     : llvm::formatv("{0:F2}", value).str();
  return number + " " + units[unit];
}

std::string shardc::getBytesText(double bytes) {
  if (bytes < 1000)
    return llvm::formatv("{0:F0} B", bytes).str();
  return getUnitText(bytes / 1000, {"kB", "MB", "GB", "TB", "PB"});
}

std::string shardc::getSecondsText(double seconds) {
  return getUnitText(seconds * 1e6, {"us", "ms", "s"});
}

static std::string getCountText(double count) {
  std::string text = getUnitText(count, {"", "k", "M", "G", "T", "P", "E"});
  return llvm::StringRef(text).rtrim().str();
}

std::string shardc::getPercentText(double part) {
  return llvm::formatv("{0:F1} %", 100 * part).str();
}

static std::string getWireText(const Price &price) {
  std::vector<std::string> parts;
  for (const auto &[axes, bytes] : price.wireBytes)
    parts.push_back(getBytesText(bytes) + " " + axes);
  return parts.empty() ? "nothing" : llvm::join(parts, ", ");
}

/// Prints rows of texts in columns; those that `isRight` says on the right.
static void printTable(llvm::ArrayRef<std::vector<std::string>> rows,
                       llvm::ArrayRef<bool> isRight, llvm::raw_ostream &os) {
  std::vector<size_t> widths(isRight.size());
  for (const std::vector<std::string> &row : rows)
    for (auto [width, text] : llvm::zip_equal(widths, row))
      width = std::max(width, text.size());
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (auto [width, text, right] : llvm::zip_equal(widths, row, isRight)) {
      std::string space(width - text.size(), ' ');
      line += "  " + (right ? space + text : text + space);
    }
    os << llvm::StringRef(line).rtrim() << '\n';
  }
}

/// The table's cells of a plan that was compiled.
static std::vector<std::string> getCells(const Advice &advice, size_t rank,
                                         const AdvisedPlan &plan) {
  const Price &price = *plan.price;
  return {std::to_string(rank),
          plan.candidate.strategy,
          toString(plan.candidate.mesh),
          plan.candidate.getChoices(),
          getSecondsText(price.seconds),
          getCountText(advice.getRowsPerSecond(plan)),
          getBytesText(price.peakBytes),
          price.bubble > 0 ? getPercentText(price.bubble) : "-",
          getPercentText(advice.getUtilization(plan)),
          getWireText(price)};
}

void shardc::print(const Advice &advice, size_t rows, llvm::raw_ostream &os) {
  const ModelFacts &facts = advice.facts;
  os << llvm::formatv(
      "{0} devices, {1}, {2} each; {3} parameters ({4}, states {5}), batch "
      "{6}\n{7} candidates, {8} plans compiled\n",
      advice.devices, advice.machine.name, getBytesText(advice.memoryLimit),
      getCountText(facts.numParameters), getBytesText(facts.parameterBytes),
      getBytesText(facts.stateBytes), facts.batchSize, advice.plans.size(),
      advice.numCompiled);
  std::vector<std::vector<std::string>> table = {
      {"", "strategy", "mesh", "choices", "step", "samples/s", "memory",
       "bubble", "MFU", "sent per device"}};
  for (const AdvisedPlan &plan : advice.plans)
    if (plan.fits() && table.size() <= rows)
      table.push_back(getCells(advice, table.size(), plan));
  if (table.size() > 1)
    printTable(table,
               {true, false, false, false, true, true, true, true, true, false},
               os);
  const AdvisedPlan *best = advice.getBest();
  if (best)
    os << best->candidate.getName() << ": " << explainBest(advice) << '\n';
  for (const AdvisedPlan *plan : getBestOfStrategies(advice))
    if (plan != best)
      os << plan->candidate.getName() << ": " << explainLoss(advice, *plan)
         << '\n';
}

/// The first of `advices` on whose devices a plan fits; null if there is none.
static const Advice *findSmallest(llvm::ArrayRef<Advice> advices) {
  const Advice *smallest = nullptr;
  for (const Advice &advice : advices)
    if (advice.getBest() && (!smallest || advice.devices < smallest->devices))
      smallest = &advice;
  return smallest;
}

/// Throughput per device over that of `smallest`.
static double getEfficiency(const Advice &advice, const Advice &smallest) {
  auto getRate = [](const Advice &each) {
    return each.getRowsPerSecond(*each.getBest()) / each.devices;
  };
  return getRate(advice) / getRate(smallest);
}

void shardc::printScaling(llvm::ArrayRef<Advice> advices,
                          llvm::raw_ostream &os) {
  const Advice *smallest = findSmallest(advices);
  std::vector<std::vector<std::string>> table = {
      {"devices", "strategy", "mesh", "choices", "step", "samples/s",
       "efficiency", "memory"}};
  for (const Advice &advice : advices) {
    const AdvisedPlan *best = advice.getBest();
    if (!best) {
      table.push_back({std::to_string(advice.devices), "nothing fits", "", "",
                       "", "", "", ""});
      continue;
    }
    table.push_back({std::to_string(advice.devices), best->candidate.strategy,
                     toString(best->candidate.mesh),
                     best->candidate.getChoices(),
                     getSecondsText(best->price->seconds),
                     getCountText(advice.getRowsPerSecond(*best)),
                     getPercentText(getEfficiency(advice, *smallest)),
                     getBytesText(best->price->peakBytes)});
  }
  os << "over devices\n";
  printTable(table, {true, false, false, false, true, true, true, true}, os);
  if (!smallest) {
    os << "it fits on none of these numbers of devices\n";
    return;
  }
  // The rule of thumb of tutorials: parameters, gradients and both moments of
  // Adam are four times the parameters.
  const ModelFacts &facts = smallest->facts;
  double rule = 2.0 * facts.parameterBytes + facts.stateBytes;
  double taken = static_cast<double>(smallest->getBest()->price->peakBytes) *
                 smallest->devices;
  os << llvm::formatv(
      "the smallest of these on which it fits is {0}: the plan takes {1} on "
      "all devices together; parameters, gradients and states are {2}, {3:F1} "
      "times the parameters\n",
      smallest->devices, getBytesText(taken), getBytesText(rule),
      rule / facts.parameterBytes);
}

static const char *getName(Outcome outcome) {
  static const char *const names[] = {"fits", "too_large", "slower", "failed"};
  return names[static_cast<int>(outcome)];
}

static llvm::json::Object toJson(const Advice &advice,
                                 const AdvisedPlan &plan) {
  llvm::json::Object mesh;
  for (const auto &[axis, size] : plan.candidate.mesh)
    mesh[axis] = size;
  const AdvisedPlan *best = advice.getBest();
  llvm::json::Object json{
      {"outcome", getName(plan.outcome)},
      {"strategy", plan.candidate.strategy},
      {"mesh", std::move(mesh)},
      {"microbatches", plan.candidate.microbatches},
      {"schedule", plan.candidate.schedule},
      {"virtual_stages", plan.candidate.virtualStages},
      {"recompute", plan.candidate.recompute},
      {"regather", plan.candidate.regather},
      {"flags", plan.candidate.getFlags()},
      {"at_least_seconds", plan.bound.seconds},
      {"at_least_bytes", plan.bound.memoryBytes},
      {"why",
       llvm::json::fixUTF8(&plan == best          ? explainBest(advice)
                           : best || !plan.fits() ? explainLoss(advice, plan)
                                                  : "")}};
  if (!plan.price)
    return json;
  llvm::json::Object wire;
  for (const auto &[axes, bytes] : plan.price->wireBytes)
    wire[axes] = bytes;
  json["step_seconds"] = plan.price->seconds;
  json["samples_per_second"] = advice.getRowsPerSecond(plan);
  // Of a slower plan the step alone was compiled.
  if (plan.outcome != Outcome::Slower)
    json["peak_bytes_per_device"] = plan.price->peakBytes;
  json["compute_seconds"] = plan.price->computeSeconds;
  json["memory_seconds"] = plan.price->memorySeconds;
  json["communication_seconds"] = plan.price->communicationSeconds;
  if (plan.price->inputSeconds > 0)
    json["input_seconds"] = plan.price->inputSeconds;
  json["exposed_seconds"] = plan.price->getExposedSeconds(advice.machine);
  json["wire_bytes"] = std::move(wire);
  json["bubble"] = plan.price->bubble;
  json["wait_seconds"] = plan.price->waitSeconds;
  json["model_flops_utilization"] = advice.getUtilization(plan);
  json["redundant_flops"] =
      plan.price->matmulFlops / advice.facts.matmulFlops - 1;
  return json;
}

llvm::json::Object shardc::toJson(const Advice &advice) {
  llvm::json::Array plans;
  for (const AdvisedPlan &plan : advice.plans)
    plans.push_back(::toJson(advice, plan));
  const ModelFacts &facts = advice.facts;
  return llvm::json::Object{
      {"devices", advice.devices},
      {"machine", llvm::json::fixUTF8(advice.machine.name)},
      {"device_memory_bytes", advice.memoryLimit},
      {"model", llvm::json::Object{{"batch_size", facts.batchSize},
                                   {"layers", facts.numLayers},
                                   {"parameters", facts.numParameters},
                                   {"parameter_bytes", facts.parameterBytes},
                                   {"state_bytes", facts.stateBytes},
                                   {"matmul_flops", facts.matmulFlops}}},
      {"compiled", static_cast<int64_t>(advice.numCompiled)},
      {"plans", std::move(plans)}};
}

llvm::json::Object shardc::toJson(llvm::ArrayRef<Advice> advices) {
  const Advice *smallest = findSmallest(advices);
  llvm::json::Array list, scaling;
  for (const Advice &advice : advices) {
    list.push_back(toJson(advice));
    if (const AdvisedPlan *best = advice.getBest())
      scaling.push_back(llvm::json::Object{
          {"devices", advice.devices},
          {"samples_per_second", advice.getRowsPerSecond(*best)},
          {"efficiency", getEfficiency(advice, *smallest)}});
  }
  llvm::json::Object json{{"advice", std::move(list)},
                          {"scaling", std::move(scaling)}};
  if (smallest)
    json["smallest_devices"] = smallest->devices;
  else
    json["smallest_devices"] = nullptr;
  return json;
}
