//===- StageCut.cpp - Where to cut a model into stages --------------------===//

#include "shardc/PipelineSchedules/StageCut.h"

#include <algorithm>
#include <limits>
#include <set>

using namespace shardc;

std::vector<StageTimes> shardc::getStageTimes(llvm::ArrayRef<OpTimes> ops,
                                              const StageCut &cut) {
  std::vector<StageTimes> stages(cut.size());
  size_t begin = 0;
  for (size_t stage = 0; stage < cut.size(); ++stage) {
    StageTimes &times = stages[stage];
    for (size_t op = begin; op < cut[stage]; ++op) {
      times.forward += ops[op].forward;
      times.inputGradient += ops[op].inputGradient;
      times.weightGradient += ops[op].weightGradient;
    }
    begin = cut[stage];
    // The gradient that a stage sends is that of the boundary before it.
    if (stage + 1 < cut.size()) {
      times.sendForward = ops[begin - 1].sendForward;
      stages[stage + 1].sendBackward = ops[begin - 1].sendBackward;
    }
  }
  return stages;
}

std::vector<double> shardc::getRankWeights(llvm::ArrayRef<double> weights,
                                           const StageCut &cut,
                                           const PipelineSchedule &schedule) {
  std::vector<double> sums(schedule.getNumRanks(), 0);
  size_t op = 0;
  for (size_t stage = 0; stage < cut.size(); ++stage)
    for (; op < cut[stage]; ++op)
      sums[schedule.rankOfStage[stage]] += weights[op];
  return sums;
}

/// The cut whose greatest stage, by `weight` of its ops, is least; of these the
/// one that sends least.
template <typename Weight>
static StageCut balance(llvm::ArrayRef<OpTimes> ops, size_t numStages,
                        Weight weight) {
  std::vector<double> sums(ops.size() + 1, 0);
  for (size_t op = 0; op < ops.size(); ++op)
    sums[op + 1] = sums[op] + weight(ops[op]);
  using Cost = std::pair<double, double>;
  constexpr double none = std::numeric_limits<double>::infinity();
  // By stage and end, the greatest stage so far and what is sent so far.
  std::vector<std::vector<Cost>> best(
      numStages, std::vector<Cost>(ops.size() + 1, {none, none}));
  std::vector<std::vector<size_t>> from(numStages,
                                        std::vector<size_t>(ops.size() + 1, 0));
  for (size_t end = 1; end <= ops.size(); ++end)
    best[0][end] = {sums[end], 0};
  for (size_t stage = 1; stage < numStages; ++stage)
    for (size_t end = stage + 1; end <= ops.size(); ++end)
      for (size_t begin = stage; begin < end; ++begin) {
        auto [greatest, sent] = best[stage - 1][begin];
        Cost cost = {std::max(greatest, sums[end] - sums[begin]),
                     sent + ops[begin - 1].sendForward +
                         ops[begin - 1].sendBackward};
        if (cost < best[stage][end]) {
          best[stage][end] = cost;
          from[stage][end] = begin;
        }
      }
  StageCut cut(numStages, ops.size());
  for (size_t stage = numStages - 1; stage > 0; --stage)
    cut[stage - 1] = from[stage][cut[stage]];
  return cut;
}

namespace {

/// The tasks that one search simulates, at most: about a fifth of a second.
/// Counted instead of seconds, so that the cut is the same on every computer.
constexpr int64_t maxSimulatedTasks = int64_t(1) << 24;

/// Walks from cut to cut as long as the simulated step becomes shorter, and the
/// budget lasts.
class CutSearch {
public:
  CutSearch(llvm::ArrayRef<OpTimes> ops, const PipelineSchedule &schedule,
            const CutLimits &limits)
      : ops(ops), numStages(schedule.getNumStages()), schedule(schedule),
        limits(limits), simulator(schedule) {
    for (const std::vector<PipelineTask> &rank : schedule.ranks)
      tasksOfCut += static_cast<int64_t>(rank.size());
  }

  void descendFrom(StageCut cut, bool again = false) {
    Cost cost = again ? unknown : measure(cut);
    for (bool improved = true; improved && !isExhausted();) {
      improved = false;
      StageCut start = cut;
      for (const StageCut &neighbour : getNeighbours(start))
        if (Cost other = measure(neighbour); other < cost) {
          cost = other;
          cut = neighbour;
          improved = true;
        }
    }
    keep(cut, cost);
  }

  /// Descends again from where one boundary of the best cut is moved further
  /// than a step, as long as that finds better cuts.
  void leaveLocalMinima() {
    StageCut start;
    while (start != best && !isExhausted()) {
      start = best;
      for (size_t boundary = 0; boundary + 1 < start.size(); ++boundary)
        for (int64_t distance : {-4, 4, -2, 2, -1, 1}) {
          StageCut moved = start;
          moved[boundary] += distance;
          size_t before = boundary == 0 ? 0 : start[boundary - 1];
          if (moved[boundary] > before && moved[boundary] < start[boundary + 1])
            descendFrom(moved, /*again=*/true);
        }
    }
  }

  /// Measures every cut that begins with `cut`.
  void tryAll(StageCut &cut) {
    if (cut.size() + 1 == numStages) {
      cut.push_back(ops.size());
      keep(cut, measure(cut));
      cut.pop_back();
      return;
    }
    size_t stagesBehind = numStages - cut.size() - 1;
    for (size_t end = cut.empty() ? 1 : cut.back() + 1;
         end + stagesBehind <= ops.size(); ++end) {
      cut.push_back(end);
      tryAll(cut);
      cut.pop_back();
    }
  }

  /// Whether the budget is enough for `numCuts` cuts.
  bool canMeasure(int64_t numCuts) const {
    return tasksOfCut <= maxSimulatedTasks / numCuts;
  }

  StageCut best;

private:
  /// By how much limits are exceeded, in shares of them; and seconds.
  using Cost = std::pair<double, double>;
  static constexpr Cost unknown = {std::numeric_limits<double>::infinity(), 0};

  bool isExhausted() const { return simulatedTasks >= maxSimulatedTasks; }

  void keep(const StageCut &cut, Cost cost) {
    if (cost < bestCost) {
      bestCost = cost;
      best = cut;
    }
  }

  /// Unknown if `cut` has been measured before, or the budget is used up: the
  /// first cut is measured in any case.
  Cost measure(const StageCut &cut) {
    if (isExhausted() || !tried.insert(cut).second)
      return unknown;
    simulatedTasks += tasksOfCut;
    Cost cost = {0, simulator.getMakespan(getStageTimes(ops, cut))};
    if (limits.most.empty())
      return cost;
    std::vector<double> sums = getRankWeights(limits.weights, cut, schedule);
    for (size_t rank = 0; rank < sums.size(); ++rank)
      if (sums[rank] > limits.most[rank])
        cost.first += sums[rank] / limits.most[rank] - 1;
    return cost;
  }

  /// One boundary moves by up to three ops, two by one each, or a row of them
  /// by one.
  std::vector<StageCut> getNeighbours(const StageCut &cut) const {
    std::vector<StageCut> neighbours;
    auto add = [&](StageCut moved) {
      size_t before = 0;
      for (size_t end : moved) {
        if (end <= before || end > ops.size())
          return;
        before = end;
      }
      neighbours.push_back(std::move(moved));
    };
    for (size_t first = 0; first + 1 < cut.size(); ++first) {
      for (int64_t distance : {-1, 1, -2, 2, -3, 3}) {
        StageCut moved = cut;
        moved[first] += distance;
        add(std::move(moved));
      }
      for (int64_t distance : {-1, 1}) {
        StageCut row = cut;
        row[first] += distance;
        for (size_t last = first + 1; last + 1 < cut.size(); ++last) {
          row[last] += distance;
          add(row);
          for (int64_t other : {-1, 1}) {
            StageCut pair = cut;
            pair[first] += distance;
            pair[last] += other;
            add(std::move(pair));
          }
        }
      }
    }
    return neighbours;
  }

  llvm::ArrayRef<OpTimes> ops;
  size_t numStages;
  const PipelineSchedule &schedule;
  const CutLimits &limits;
  ScheduleSimulator simulator;
  std::set<StageCut> tried;
  Cost bestCost = unknown;
  int64_t tasksOfCut = 0, simulatedTasks = 0;
};

} // namespace

/// The number of cuts, or `most` if there are as many or more.
static size_t countCuts(size_t numOps, size_t numStages, size_t most) {
  // Binomial coefficients of numOps - 1 over 0, 1, ...
  double count = 1;
  for (size_t stage = 1; stage < numStages; ++stage)
    count = count * static_cast<double>(numOps - stage) /
            static_cast<double>(stage);
  return count < static_cast<double>(most) ? static_cast<size_t>(count + 0.5)
                                           : most;
}

StageCut shardc::findStageCut(llvm::ArrayRef<OpTimes> ops,
                              const PipelineSchedule &schedule,
                              const CutLimits &limits) {
  auto numStages = static_cast<size_t>(schedule.getNumStages());
  CutSearch search(ops, schedule, limits);
  // In small models one op more or less matters.
  constexpr size_t fewCuts = 1000;
  if (countCuts(ops.size(), numStages, fewCuts) < fewCuts &&
      search.canMeasure(fewCuts)) {
    StageCut cut;
    search.tryAll(cut);
    return search.best;
  }
  search.descendFrom(balance(ops, numStages, [](const OpTimes &op) {
    return op.forward + op.inputGradient + op.weightGradient;
  }));
  search.descendFrom(
      balance(ops, numStages, [](const OpTimes &op) { return op.forward; }));
  search.descendFrom(balance(ops, numStages, [](const OpTimes &op) {
    return op.forward + op.inputGradient;
  }));
  search.leaveLocalMinima();
  return search.best;
}

StageCut StageCutCache::find(llvm::ArrayRef<OpTimes> ops,
                             const PipelineSchedule &schedule) {
  std::string key(reinterpret_cast<const char *>(ops.data()),
                  ops.size() * sizeof(OpTimes));
  for (int rank : schedule.rankOfStage)
    key += std::to_string(rank) + ' ';
  for (const std::vector<PipelineTask> &tasks : schedule.ranks) {
    key += '\n';
    for (const PipelineTask &task : tasks)
      key += toString(task) + ' ';
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (auto found = cuts.find(key); found != cuts.end())
      return found->second;
  }
  StageCut cut = findStageCut(ops, schedule);
  std::lock_guard<std::mutex> lock(mutex);
  cuts.emplace(std::move(key), cut);
  return cut;
}
