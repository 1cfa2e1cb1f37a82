//===- RankPrograms.cpp - The programs of a pipeline's ranks --------------===//

#include "shardc/Report/RankPrograms.h"

#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/PipelineSchedules/SimulateCommands.h"
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

/// The commands that a plan has for `rank`, whose `tasks` are in order.
static std::vector<PipelineCommand> getCommands(func::FuncOp rank,
                                                ArrayRef<PipelineTask> tasks,
                                                const Machine &machine) {
  using Kind = PipelineCommand::Kind;
  llvm::StringMap<int> taskNumbers;
  for (auto [number, task] : llvm::enumerate(tasks))
    taskNumbers[toString(task)] = static_cast<int>(number);
  llvm::DenseMap<Operation *, int> numbers;
  std::vector<PipelineCommand> commands;
  for (Operation &op : rank.getBody().front().without_terminator()) {
    PipelineCommand command;
    if (auto name = op.getAttrOfType<StringAttr>(taskAttrName))
      if (auto found = taskNumbers.find(name.getValue());
          found != taskNumbers.end())
        command.task = found->second;
    if (auto wait = dyn_cast<CollectiveWaitOp>(op)) {
      command.kind = Kind::Wait;
      command.after = {numbers.lookup(wait.getHandle().getDefiningOp())};
    } else if (auto start = dyn_cast<CollectiveStartOp>(op)) {
      Operation *inner = getCollective(start);
      command.kind =
          isOverPipeline(inner) ? Kind::JointCollective : Kind::Collective;
      if (auto send = dyn_cast<SendOp>(inner)) {
        command.kind = Kind::Send;
        command.message = send.getMessage();
        command.seconds = getCollectiveSeconds(machine, send);
      } else if (auto receive = dyn_cast<ReceiveOp>(inner)) {
        command.kind = Kind::Receive;
        command.message = receive.getMessage();
      }
    } else if (!isa<KernelOp, GemmOp, AccumulateOp, ZerosOp>(op)) {
      // Not a command of the plan.
      continue;
    }
    numbers[&op] = static_cast<int>(commands.size());
    commands.push_back(std::move(command));
  }
  return commands;
}

FailureOr<PipelineSimulation>
shardc::simulateTasks(ArrayRef<func::FuncOp> ranks, const Machine &machine) {
  func::FuncOp first = ranks.front();
  FailureOr<PipelineSchedule> schedule =
      getPipelineSchedule(first->getParentOfType<ModuleOp>());
  if (failed(schedule))
    return failure();
  std::vector<std::vector<PipelineCommand>> commands;
  std::vector<std::vector<double>> seconds;
  for (auto [rank, tasks] : llvm::zip_equal(ranks, schedule->ranks)) {
    commands.push_back(getCommands(rank, tasks, machine));
    llvm::StringMap<double> byName = getTaskSeconds(rank, machine);
    std::vector<double> &ofRank = seconds.emplace_back();
    for (const PipelineTask &task : tasks)
      ofRank.push_back(byName.lookup(toString(task)));
  }
  std::optional<PipelineSimulation> simulation =
      simulateCommands(commands, seconds);
  if (!simulation)
    return first.emitError("the ranks of the pipeline cannot run");
  return std::move(*simulation);
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
  // The same cores do the work of all ranks.
  if (machine.computer) {
    double seconds = 0;
    for (func::FuncOp rank : ranks)
      seconds += estimateTime(rank, machine).getSeconds();
    return seconds;
  }
  double seconds = machine.stepSeconds + RankSimulator(ranks, machine).run();
  for (func::FuncOp rank : ranks)
    seconds = std::max(seconds, getInputSeconds(machine, rank));
  // Messages that delay each other delay the step as well.
  auto module = ranks.front()->getParentOfType<ModuleOp>();
  if (!module->hasAttr(trainingAttrName))
    return seconds;
  FailureOr<PipelineSimulation> tasks = simulateTasks(ranks, machine);
  return succeeded(tasks) ? std::max(seconds, tasks->makespan) : seconds;
}
