//===- RankPrograms.cpp - The programs of a pipeline's ranks --------------===//

#include "shardc/Report/RankPrograms.h"

#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Report/TimeEstimate.h"

#include <map>

using namespace mlir;
using namespace shardc;

SmallVector<func::FuncOp> shardc::getRankPrograms(ModuleOp module,
                                                  StringRef name) {
  std::map<int64_t, func::FuncOp> byRank;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto rank = function->getAttrOfType<IntegerAttr>(rankAttrName);
        rank && getProgramName(function) == name)
      byRank[rank.getInt()] = function;
  SmallVector<func::FuncOp> ranks;
  for (auto [rank, function] : byRank)
    ranks.push_back(function);
  return ranks;
}

llvm::StringMap<double> shardc::getTaskSeconds(func::FuncOp rank,
                                               const Machine &machine) {
  MemoryTraffic traffic(rank);
  llvm::StringMap<double> seconds;
  for (Operation &op : rank.getBody().front())
    if (auto task = op.getAttrOfType<StringAttr>(taskAttrName))
      seconds[task.getValue()] += getSerialSeconds(machine, &op, traffic);
  return seconds;
}

/// The collective that `op` starts, or else `op`.
static Operation *getCollective(Operation *op) {
  auto start = dyn_cast<CollectiveStartOp>(op);
  return start ? &start.getBody().front().front() : op;
}

namespace {

/// The sends of a rank by the task behind which they start.
class TaskSends {
public:
  TaskSends(func::FuncOp rank, ArrayRef<PipelineTask> tasks,
            const Machine &machine) {
    std::map<std::string, size_t> numbers;
    for (auto [number, task] : llvm::enumerate(tasks))
      numbers[toString(task)] = number;
    byTask.resize(tasks.size());
    std::optional<size_t> last;
    for (Operation &op : rank.getBody().front()) {
      auto name = op.getAttrOfType<StringAttr>(taskAttrName);
      auto number = name ? numbers.find(name.str()) : numbers.end();
      if (isa<CollectiveStartOp>(op)) {
        bool isSend = isa<SendOp>(getCollective(&op));
        std::optional<size_t> task = isSend ? last
                                     : number != numbers.end()
                                         ? std::optional(number->second)
                                         : std::nullopt;
        if (task)
          byTask[*task].push_back(
              isSend ? getCollectiveSeconds(machine, getCollective(&op)) : 0);
      } else if (number != numbers.end() && !isa<CollectiveWaitOp>(op)) {
        last = number->second;
      }
    }
  }

  /// Adds the seconds of the sends of a forward and of a backward task to those
  /// of their stage. Behind the last task there are also sends of what is
  /// computed from the sums of all microbatches: a task has as many as in other
  /// microbatches.
  void addTo(std::vector<StageTimes> &stages, ArrayRef<PipelineTask> tasks) {
    std::map<std::pair<int, TaskKind>, size_t> fewest;
    for (auto [number, task] : llvm::enumerate(tasks)) {
      auto [it, isNew] = fewest.try_emplace({task.stage, task.kind}, number);
      if (byTask[number].size() < byTask[it->second].size())
        it->second = number;
    }
    for (const auto &[key, number] : fewest)
      for (double seconds : byTask[number])
        (key.second == TaskKind::Forward ? stages[key.first].sendForward
                                         : stages[key.first].sendBackward) +=
            seconds;
  }

private:
  /// By task its collectives, in order; those that are no sends take no time.
  std::vector<SmallVector<double>> byTask;
};

} // namespace

FailureOr<PipelineSimulation>
shardc::simulateTasks(ArrayRef<func::FuncOp> ranks, const Machine &machine) {
  func::FuncOp first = ranks.front();
  FailureOr<PipelineSchedule> schedule =
      getPipelineSchedule(first->getParentOfType<ModuleOp>());
  if (failed(schedule))
    return failure();
  std::vector<StageTimes> sends(schedule->getNumStages());
  std::vector<std::vector<double>> seconds;
  for (auto [rank, tasks] : llvm::zip_equal(ranks, schedule->ranks)) {
    llvm::StringMap<double> byName = getTaskSeconds(rank, machine);
    std::vector<double> &ofRank = seconds.emplace_back();
    for (const PipelineTask &task : tasks)
      ofRank.push_back(byName.lookup(toString(task)));
    TaskSends(rank, tasks, machine).addTo(sends, tasks);
  }
  return simulateSchedule(*schedule, sends, seconds);
}

namespace {

/// Runs the programs of ranks in time. A rank runs until it has to wait for
/// another one.
class RankSimulator {
public:
  RankSimulator(ArrayRef<func::FuncOp> functions, const Machine &machine)
      : machine(machine) {
    for (func::FuncOp function : functions) {
      Block &block = function.getBody().front();
      ranks.push_back({block.begin(), block.end(), MemoryTraffic(function)});
    }
  }

  double run() {
    double end = 0;
    for (bool goesOn = true; goesOn;) {
      goesOn = false;
      for (Rank &rank : ranks)
        for (; rank.next != rank.end && runOp(rank); ++rank.next)
          goesOn = true;
    }
    for (const Rank &rank : ranks) {
      assert(rank.next == rank.end && "ranks that wait for each other");
      end = std::max(end, rank.clock);
    }
    return end;
  }

private:
  struct Rank {
    Block::iterator next, end;
    MemoryTraffic traffic;
    double clock = 0;
    /// The all-reduces over the pipeline that it has run, and whether it is at
    /// one for which others are late.
    int numMeetings = 0;
    bool isWaiting = false;
  };
  struct Meeting {
    size_t numRanks = 0;
    double begin = 0;
  };

  /// Runs the next op of `rank`; false if it has to wait for another rank.
  bool runOp(Rank &rank) {
    Operation *op = &*rank.next;
    if (auto wait = dyn_cast<CollectiveWaitOp>(op))
      return finish(rank, getCollective(wait.getHandle().getDefiningOp()));
    Operation *inner = getCollective(op);
    if (isa<ReceiveOp>(inner))
      return true;
    if (auto send = dyn_cast<SendOp>(inner)) {
      arrivals[send.getMessage()] =
          rank.clock + getCollectiveSeconds(machine, send);
      return true;
    }
    if (isOverPipeline(inner) && !meet(rank))
      return false;
    rank.clock += getSerialSeconds(machine, op, rank.traffic);
    return true;
  }

  bool finish(Rank &rank, Operation *collective) {
    auto receive = dyn_cast<ReceiveOp>(collective);
    if (!receive)
      return true;
    auto arrival = arrivals.find(receive.getMessage());
    if (arrival == arrivals.end())
      return false;
    rank.clock = std::max(rank.clock, arrival->second);
    return true;
  }

  /// Whether all ranks have come to the next all-reduce over the pipeline, as
  /// `rank` has. Sets its clock to the time at which the last one has.
  bool meet(Rank &rank) {
    Meeting &meeting = meetings[rank.numMeetings];
    if (!rank.isWaiting) {
      ++meeting.numRanks;
      meeting.begin = std::max(meeting.begin, rank.clock);
    }
    rank.isWaiting = meeting.numRanks < ranks.size();
    if (rank.isWaiting)
      return false;
    rank.clock = meeting.begin;
    ++rank.numMeetings;
    return true;
  }

  const Machine &machine;
  SmallVector<Rank> ranks;
  /// By message the time at which it has crossed.
  std::map<int64_t, double> arrivals;
  /// The all-reduces over the pipeline, in order.
  std::map<int, Meeting> meetings;
};

} // namespace

double shardc::estimateSeconds(ArrayRef<func::FuncOp> ranks,
                               const Machine &machine) {
  return RankSimulator(ranks, machine).run();
}
