//===- SchedulePipeline.cpp - A program for each rank of a pipeline -------===//
//
// Unrolls the loop over microbatches into the tasks of each rank, in the order
// of the pipeline's schedule. The tasks' ops are those of the loop's body, in
// the order that they have there. What comes before and behind the loop stays
// there, on the rank of its stage.
//
// Transfers become messages, which all ranks start in one order. So no rank
// waits forever, wherever the waits are: the message with the least number of
// those that have not ended is the next that its two ranks start. Messages
// between tasks are numbered by the time at which they are sent, if tasks take
// as long as estimated; others by their place in the program.
//
//===----------------------------------------------------------------------===//

#include "SplitCollective.h"

#include "shardc/Analysis/FunctionMemory.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/PipelineSchedules/MessageSlots.h"
#include "shardc/PipelineSchedules/ScheduleText.h"
#include "shardc/Report/TimeEstimate.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/ScopeExit.h"

#include <map>

namespace shardc {
#define GEN_PASS_DEF_SCHEDULEPIPELINEPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// The stage of `op`, or -1: each rank that needs it has a copy.
static int getStage(Operation *op) {
  auto stage = op->getAttrOfType<IntegerAttr>(stageAttrName);
  return stage ? static_cast<int>(stage.getInt()) : -1;
}

static TaskKind getTaskKind(Operation *op) {
  auto letter = op->getAttrOfType<StringAttr>(taskAttrName);
  PipelineTask task{TaskKind::Forward, 0, 0};
  if (letter)
    readPipelineTask(("0" + letter.getValue() + "0").str(), task);
  return task.kind;
}

/// The forward tasks of `schedule`, in its order.
static PipelineSchedule getForwardTasks(PipelineSchedule schedule) {
  for (auto &tasks : schedule.ranks)
    llvm::erase_if(tasks, [](const PipelineTask &task) {
      return task.kind != TaskKind::Forward;
    });
  return schedule;
}

namespace {

/// The program of one rank, which grows at its end.
struct RankProgram {
  func::FuncOp function;
  /// From values outside of tasks.
  IRMapping outer;
  /// By microbatch, from values in tasks, and from those that they use.
  std::vector<IRMapping> inner;
  /// By number the messages that have started.
  std::map<int, CollectiveWaitOp> waits;
};

/// Makes the programs of all ranks from one function.
class PipelineScheduler {
public:
  PipelineScheduler(func::FuncOp function, const PipelineSchedule &given,
                    const Machine &machine);

  /// Replaces the function by one for each rank.
  LogicalResult run();

private:
  bool isInTask(Operation *op) const {
    return loop && op->getBlock() == body && getStage(op) >= 0;
  }
  /// Whether a message carries it from one task to others.
  bool isBetweenTasks(TransferOp transfer) const {
    Operation *maker = transfer.getOperand().getDefiningOp();
    return maker && isInTask(maker);
  }
  void groupOps();
  std::vector<StageTimes> estimateTimes(const Machine &machine);
  int getPlace(Operation *op, int microbatch) const;
  std::vector<Operation *> getOps(const PipelineTask &task);
  LogicalResult findMessages();
  void addMessage(TransferOp transfer, int microbatch);

  void beginRanks();
  LogicalResult emitOuter(Operation *op);
  LogicalResult emitOverRanks(Operation *reduce);
  LogicalResult getSummand(int rank, Value value, IRMapping &summands);
  LogicalResult emitAllTasks();
  LogicalResult emitTasks(int rank);
  LogicalResult emitTask(int rank, const PipelineTask &task);
  FailureOr<Value> getOuter(int rank, Value value);
  LogicalResult mapOperand(int rank, int microbatch, Value value);
  Value getRows(int rank, int microbatch, BlockArgument slice);
  void start(int rank, int number, TransferOp transfer, Value operand,
             bool isSend);
  void waitFor(int rank, int number);
  LogicalResult finishRank(int rank, unsigned lastRank);

  OpBuilder atEnd(int rank) {
    return OpBuilder::atBlockEnd(&ranks[rank].function.getBody().front());
  }

  func::FuncOp function;
  PipelineSchedule schedule;
  PipelineSimulation simulation;
  /// The loop over microbatches, if there are ops on rows, and its body.
  AccumulateOp loop;
  Block *body;
  /// The ops of each task, by stage and kind.
  std::map<std::pair<int, TaskKind>, std::vector<Operation *>> groups;
  /// By task its place on its rank.
  std::map<std::tuple<int, TaskKind, int>, int> places;
  std::vector<PipelineMessage> messages;
  /// Of the same messages.
  std::vector<std::pair<TransferOp, int>> transfers;
  /// The number of the next message.
  int nextMessage = 0;
  std::vector<RankProgram> ranks;
  /// The task whose ops are emitted; null outside of tasks.
  StringAttr currentTask;
  /// By sum of the loop the sum so far, and the microbatch that comes next.
  std::vector<std::pair<Value, int>> sums;
};

} // namespace

PipelineScheduler::PipelineScheduler(func::FuncOp function,
                                     const PipelineSchedule &given,
                                     const Machine &machine)
    : function(function), schedule(given), body(&function.getBody().front()) {
  auto loops = body->getOps<AccumulateOp>();
  if (!loops.empty()) {
    loop = *loops.begin();
    body = &loop.getBody().front();
    sums.resize(loop.getNumResults());
    groupOps();
    // An evaluation.
    if (isPart(loop, Part::Forward))
      schedule = getForwardTasks(given);
  }
  if (groups.empty())
    for (auto &tasks : schedule.ranks)
      tasks.clear();
  for (const auto &tasks : schedule.ranks)
    for (auto [place, task] : llvm::enumerate(tasks))
      places[{task.stage, task.kind, task.microbatch}] =
          static_cast<int>(place);
  simulation = simulateSchedule(schedule, estimateTimes(machine));
}

void PipelineScheduler::groupOps() {
  for (Operation &op : *body)
    if (isInTask(&op))
      groups[{getStage(&op), getTaskKind(&op)}].push_back(&op);
}

std::vector<StageTimes>
PipelineScheduler::estimateTimes(const Machine &machine) {
  MemoryTraffic traffic(function);
  std::vector<StageTimes> times(schedule.getNumStages());
  for (auto &[key, ops] : groups) {
    StageTimes &stage = times[key.first];
    double &seconds = key.second == TaskKind::Forward ? stage.forward
                      : key.second == TaskKind::WeightGradient
                          ? stage.weightGradient
                          : stage.inputGradient;
    for (Operation *op : ops)
      seconds += getSerialSeconds(machine, op, traffic);
  }
  for (auto transfer : body->getOps<TransferOp>()) {
    StageTimes &stage = times[transfer.getSource()];
    (isPart(transfer, Part::Forward) ? stage.sendForward
                                     : stage.sendBackward) +=
        getCollectiveSeconds(machine, transfer);
  }
  return times;
}

/// The place of the task of `op` for a microbatch on its rank. A backward pass
/// may be in two parts for some microbatches alone.
int PipelineScheduler::getPlace(Operation *op, int microbatch) const {
  auto found = places.find({getStage(op), getTaskKind(op), microbatch});
  if (found == places.end())
    found = places.find({getStage(op), TaskKind::Backward, microbatch});
  return found->second;
}

/// The ops of `task`, which has both parts of the backward pass if it is whole:
/// in the order of the loop's body.
std::vector<Operation *> PipelineScheduler::getOps(const PipelineTask &task) {
  if (task.kind != TaskKind::Backward)
    return groups[{task.stage, task.kind}];
  const auto &inputs = groups[{task.stage, TaskKind::InputGradient}];
  const auto &weights = groups[{task.stage, TaskKind::WeightGradient}];
  std::vector<Operation *> ops(inputs.size() + weights.size());
  std::merge(
      inputs.begin(), inputs.end(), weights.begin(), weights.end(), ops.begin(),
      [](Operation *lhs, Operation *rhs) { return lhs->isBeforeInBlock(rhs); });
  return ops;
}

/// Adds the message of `transfer` for a microbatch.
void PipelineScheduler::addMessage(TransferOp transfer, int microbatch) {
  Operation *maker = transfer.getOperand().getDefiningOp();
  PipelineMessage message;
  message.from = schedule.rankOfStage[transfer.getSource()];
  message.to = schedule.rankOfStage[transfer.getTarget()];
  message.producer = getPlace(maker, microbatch);
  message.consumer = static_cast<int>(schedule.ranks[message.to].size());
  for (Operation *user : transfer->getUsers())
    if (isInTask(user))
      message.consumer = std::min(message.consumer, getPlace(user, microbatch));
  messages.push_back(message);
  transfers.push_back({transfer, microbatch});
}

LogicalResult PipelineScheduler::findMessages() {
  for (auto transfer : body->getOps<TransferOp>())
    for (int run = 0; run < schedule.microbatches; ++run)
      if (isBetweenTasks(transfer))
        addMessage(transfer, run);
  placeMessages(simulation, messages);
  for (auto [message, transfer] : llvm::zip_equal(messages, transfers))
    if (message.receiveStart > message.receiveEnd)
      return transfer.first.emitOpError("is needed by a task that runs before "
                                        "the one that makes its operand");
  return success();
}

void PipelineScheduler::beginRanks() {
  OpBuilder builder(function);
  for (int rank = 0; rank < schedule.getNumRanks(); ++rank) {
    RankProgram &program = ranks.emplace_back();
    std::string name = (function.getName() + "." + llvm::Twine(rank)).str();
    program.function = builder.create<func::FuncOp>(function.getLoc(), name,
                                                    function.getFunctionType());
    program.function->setDiscardableAttrs(
        function->getDiscardableAttrDictionary());
    // The share of one rank is known, not that of the global program.
    program.function->removeAttr(globalMatmulFlopsAttrName);
    program.function->setAttr(programAttrName, function.getNameAttr());
    program.function->setAttr(rankAttrName, builder.getI64IntegerAttr(rank));
    std::string tasks;
    for (const PipelineTask &task : schedule.ranks[rank])
      tasks += (tasks.empty() ? "" : ",") + toString(task);
    program.function->setAttr(tasksAttrName, builder.getStringAttr(tasks));
    if (ArrayAttr attrs = function.getAllArgAttrs())
      program.function.setAllArgAttrs(attrs);
    setArgAttrs(program.function, numberAttrName, [&](unsigned index) {
      return builder.getI64IntegerAttr(index);
    });
    if (ArrayAttr attrs = function.getAllResultAttrs())
      program.function.setAllResultAttrs(attrs);
    Block *block = program.function.addEntryBlock();
    for (auto [from, to] :
         llvm::zip_equal(function.getArguments(), block->getArguments()))
      program.outer.map(from, to);
    program.inner.resize(schedule.microbatches);
  }
}

/// The value of rank `rank` for `value`, which is outside of tasks. Ops without
/// a stage are cloned when the first op of the rank needs them.
FailureOr<Value> PipelineScheduler::getOuter(int rank, Value value) {
  IRMapping &outer = ranks[rank].outer;
  if (Value known = outer.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || getStage(op) >= 0 || isa<TransferOp, AccumulateOp>(op))
    return function.emitError("rank ")
           << rank << " of the pipeline needs a value of another rank";
  for (Value operand : op->getOperands())
    if (failed(getOuter(rank, operand)))
      return failure();
  Operation *clone = atEnd(rank).clone(*op, outer);
  if (currentTask)
    clone->setAttr(taskAttrName, currentTask);
  return outer.lookup(value);
}

void PipelineScheduler::start(int rank, int number, TransferOp transfer,
                              Value operand, bool isSend) {
  OpBuilder builder = atEnd(rank);
  int peer =
      schedule
          .rankOfStage[isSend ? transfer.getTarget() : transfer.getSource()];
  Operation *op;
  if (isSend)
    op = builder.create<SendOp>(transfer.getLoc(), ValueRange{operand}, peer,
                                number);
  else
    op = builder.create<ReceiveOp>(transfer.getLoc(),
                                   TypeRange{transfer.getType()}, peer, number);
  op->setDiscardableAttrs(transfer->getDiscardableAttrDictionary());
  if (!op->hasAttr(causeAttrName))
    op->setAttr(causeAttrName,
                builder.getStringAttr(
                    "from stage " + llvm::Twine(transfer.getSource()) +
                    " to stage " + llvm::Twine(transfer.getTarget())));
  ranks[rank].waits[number] = splitCollective(op).getWait();
}

void PipelineScheduler::waitFor(int rank, int number) {
  Block &block = ranks[rank].function.getBody().front();
  Operation *wait = ranks[rank].waits.at(number);
  wait->moveBefore(&block, block.end());
}

static bool isAddition(Operation *op) {
  auto kernel = dyn_cast<KernelOp>(op);
  return isa<AddOp>(op) ||
         (kernel &&
          llvm::all_of(kernel.getBody().front().without_terminator(),
                       [](Operation &inner) { return isa<AddOp>(inner); }));
}

/// Gives `value`, a sum over stages or a summand, the part that rank `rank` has
/// of it: zero for what other ranks have.
LogicalResult PipelineScheduler::getSummand(int rank, Value value,
                                            IRMapping &summands) {
  if (summands.contains(value))
    return success();
  Operation *op = value.getDefiningOp();
  OpBuilder builder = atEnd(rank);
  if (getStage(op) >= 0 || isa<TransferOp, AccumulateOp>(op)) {
    auto zeros = builder.create<ZerosOp>(value.getLoc(), value.getType());
    zeros->setAttr(partAttrName,
                   PartAttr::get(builder.getContext(), Part::Update));
    summands.map(value, zeros.getResult());
    return success();
  }
  if (!isAddition(op) && !isa<AllReduceOp>(op))
    return op->emitOpError("is part of a sum over the ranks of the pipeline, "
                           "and no addition");
  for (Value operand : op->getOperands())
    if (failed(getSummand(rank, operand, summands)))
      return failure();
  // Its value is not that of the global program.
  builder.clone(*op, summands)->walk([](Operation *inner) {
    inner->removeAttr(idAttrName);
  });
  return success();
}

/// Emits an all_reduce over the pipeline's axis on all ranks, which meet there.
LogicalResult PipelineScheduler::emitOverRanks(Operation *reduce) {
  for (int rank = 0; rank < schedule.getNumRanks(); ++rank) {
    IRMapping &outer = ranks[rank].outer;
    IRMapping summands = outer;
    for (Value operand : reduce->getOperands())
      if (failed(getSummand(rank, operand, summands)))
        return failure();
    Operation *clone = atEnd(rank).clone(*reduce, summands);
    outer.map(reduce->getResults(), clone->getResults());
  }
  return success();
}

/// Emits `op`, which is outside of tasks, on the rank of its stage.
LogicalResult PipelineScheduler::emitOuter(Operation *op) {
  if (isOverPipeline(op))
    return emitOverRanks(op);
  auto transfer = dyn_cast<TransferOp>(op);
  if (!transfer) {
    int stage = getStage(op);
    if (stage < 0)
      return success(); // as soon as a rank needs it
    int rank = schedule.rankOfStage[stage];
    for (Value operand : op->getOperands())
      if (failed(getOuter(rank, operand)))
        return failure();
    atEnd(rank).clone(*op, ranks[rank].outer);
    return success();
  }
  int from = schedule.rankOfStage[transfer.getSource()];
  int to = schedule.rankOfStage[transfer.getTarget()];
  FailureOr<Value> operand = getOuter(from, transfer.getOperand());
  if (failed(operand))
    return failure();
  start(from, nextMessage, transfer, *operand, /*isSend=*/true);
  waitFor(from, nextMessage);
  start(to, nextMessage, transfer, Value(), /*isSend=*/false);
  waitFor(to, nextMessage);
  ranks[to].outer.map(transfer.getResult(),
                      ranks[to].waits.at(nextMessage)->getResult(0));
  ++nextMessage;
  return success();
}

/// The rows of a microbatch, in the memory of the whole.
Value PipelineScheduler::getRows(int rank, int microbatch,
                                 BlockArgument slice) {
  Value whole = loop.getOperands()[slice.getArgNumber()];
  FailureOr<Value> operand = getOuter(rank, whole);
  if (failed(operand))
    return Value();
  return atEnd(rank).create<RowsOp>(slice.getLoc(), slice.getType(), *operand,
                                    microbatch, loop.getCount());
}

/// Gives `value`, an operand of an op of the current task, a value on the rank.
LogicalResult PipelineScheduler::mapOperand(int rank, int microbatch,
                                            Value value) {
  IRMapping &inner = ranks[rank].inner[microbatch];
  if (inner.contains(value))
    return success();
  if (value.getParentBlock() != body) {
    // Outside of tasks, or an op without a stage.
    FailureOr<Value> outer = getOuter(rank, value);
    if (failed(outer))
      return failure();
    inner.map(value, *outer);
    return success();
  }
  OpBuilder builder = atEnd(rank);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    size_t number = argument.getArgNumber(), slices = loop.getSlices().size();
    if (number < slices) {
      Value rows = getRows(rank, microbatch, argument);
      if (!rows)
        return failure();
      inner.map(value, rows);
      return success();
    }
    auto &[sum, next] = sums[number - slices];
    if (next != microbatch)
      return function->getParentOp()->emitError("`shardc.pipeline`: the "
                                                "schedule runs ")
             << currentTask.getValue() << " before microbatch " << next
             << ", and sums are formed in the order of microbatches";
    if (!sum) {
      auto zeros = builder.create<ZerosOp>(value.getLoc(), value.getType());
      zeros->setAttr(taskAttrName, currentTask);
      zeros->setAttr(partAttrName, loop->getAttr(partAttrName));
      sum = zeros;
    }
    inner.map(value, sum);
    return success();
  }
  Operation *op = value.getDefiningOp();
  if (getStage(op) >= 0 || isa<TransferOp>(op))
    return function.emitError("rank ")
           << rank << " of the pipeline needs a value of another rank";
  for (Value operand : op->getOperands())
    if (failed(mapOperand(rank, microbatch, operand)))
      return failure();
  atEnd(rank).clone(*op, inner)->setAttr(taskAttrName, currentTask);
  return success();
}

LogicalResult PipelineScheduler::emitTask(int rank, const PipelineTask &task) {
  currentTask = StringAttr::get(function.getContext(), toString(task));
  auto leaveTask = llvm::make_scope_exit([&] { currentTask = {}; });
  IRMapping &inner = ranks[rank].inner[task.microbatch];
  for (Operation *op : getOps(task)) {
    for (Value operand : op->getOperands())
      if (failed(mapOperand(rank, task.microbatch, operand)))
        return failure();
    Operation *clone = atEnd(rank).clone(*op, inner);
    clone->removeAttr(stageAttrName);
    clone->setAttr(taskAttrName, currentTask);
    for (OpOperand &use : op->getUses())
      if (use.getOwner() == loop.getYield())
        sums[use.getOperandNumber()] = {inner.lookup(use.get()),
                                        task.microbatch + 1};
  }
  return success();
}

/// Emits the tasks of a rank, with the messages where they start and end.
LogicalResult PipelineScheduler::emitTasks(int rank) {
  const std::vector<PipelineTask> &tasks = schedule.ranks[rank];
  RankSlots slots = getSlots(messages, rank, static_cast<int>(tasks.size()));
  for (size_t slot = 0; slot <= tasks.size(); ++slot) {
    for (int index : slots.starts[slot]) {
      auto [transfer, microbatch] = transfers[index];
      bool isSend = messages[index].from == rank;
      Value operand;
      if (isSend)
        operand = ranks[rank].inner[microbatch].lookup(transfer.getOperand());
      start(rank, nextMessage + messages[index].number, transfer, operand,
            isSend);
    }
    for (int index : slots.ends[slot]) {
      int number = nextMessage + messages[index].number;
      waitFor(rank, number);
      auto [transfer, microbatch] = transfers[index];
      if (messages[index].to == rank)
        ranks[rank].inner[microbatch].map(
            transfer.getResult(), ranks[rank].waits.at(number)->getResult(0));
    }
    if (slot < tasks.size() && failed(emitTask(rank, tasks[slot])))
      return failure();
  }
  return success();
}

/// Returns what the rank has, and drops the arguments that it does not use.
LogicalResult PipelineScheduler::finishRank(int rank, unsigned lastRank) {
  RankProgram &program = ranks[rank];
  Operation *terminator = function.getBody().front().getTerminator();
  SmallVector<Value> values;
  llvm::BitVector isDropped(function.getNumResults());
  llvm::StringMap<BlockArgument> arguments = getArgumentsByName(function);
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    Value value = program.outer.lookupOrNull(operand.get());
    auto name = function.getResultAttrOfType<StringAttr>(index, resultAttrName);
    BlockArgument donor =
        name ? arguments.lookup(name.getValue()) : BlockArgument();
    Operation *maker = operand.get().getDefiningOp();
    bool isEverywhere =
        isa<BlockArgument>(operand.get()) ||
        (getStage(maker) < 0 && !isa<TransferOp, AccumulateOp>(maker));
    // Of what all ranks can compute, states are where they are used.
    if (isEverywhere) {
      bool isUsed = donor && !program.outer.lookup(donor).use_empty();
      bool isUsedAnywhere = donor && llvm::any_of(ranks, [&](auto &other) {
                              return !other.outer.lookup(donor).use_empty();
                            });
      if (isUsed || (donor && !isUsedAnywhere && rank == 0) ||
          (!donor && static_cast<unsigned>(rank) == lastRank)) {
        FailureOr<Value> outer = getOuter(rank, operand.get());
        if (failed(outer))
          return failure();
        value = *outer;
      } else {
        value = Value();
      }
    }
    if (value)
      values.push_back(value);
    else
      isDropped.set(index);
  }
  atEnd(rank).create<func::ReturnOp>(function.getLoc(), values);
  program.function.eraseResults(isDropped);
  return success();
}

/// Emits the tasks of all ranks, and maps the sums of the loop.
LogicalResult PipelineScheduler::emitAllTasks() {
  for (int rank = 0; rank < schedule.getNumRanks(); ++rank)
    if (failed(emitTasks(rank)))
      return failure();
  nextMessage += static_cast<int>(messages.size());
  for (auto [result, summand, sum] : llvm::zip_equal(
           loop.getResults(), loop.getYield().getOperands(), sums)) {
    if (!sum.first)
      return loop.emitOpError("has a sum that no stage makes");
    int stage = getStage(summand.getDefiningOp());
    ranks[schedule.rankOfStage[stage]].outer.map(result, sum.first);
  }
  return success();
}

LogicalResult PipelineScheduler::run() {
  Block &block = function.getBody().front();
  for (auto other : block.getOps<AccumulateOp>())
    if (other != loop)
      return other.emitOpError(
          "is the second loop over microbatches; a program "
          "of a pipeline has one");
  if (failed(findMessages()))
    return failure();
  beginRanks();
  for (Operation &op : block.without_terminator())
    if (failed(&op == loop ? emitAllTasks() : emitOuter(&op)))
      return failure();
  unsigned lastRank = schedule.rankOfStage.back();
  for (int rank = 0; rank < schedule.getNumRanks(); ++rank)
    if (failed(finishRank(rank, lastRank)))
      return failure();
  for (auto [rank, program] : llvm::enumerate(ranks)) {
    llvm::BitVector isUnused(function.getNumArguments());
    std::vector<BlockArgument> donors = getDonors(program.function);
    for (BlockArgument argument : program.function.getArguments()) {
      // An input that nothing uses is one all the same.
      unsigned number = argument.getArgNumber();
      bool isKept = rank == 0 && function.getArgument(number).use_empty() &&
                    isa_and_nonnull<InputAttr, LabelAttr>(
                        function.getArgAttr(number, roleAttrName));
      if (argument.use_empty() && !isKept &&
          !llvm::is_contained(donors, argument))
        isUnused.set(number);
    }
    program.function.eraseArguments(isUnused);
  }
  function.erase();
  return success();
}

namespace {

struct SchedulePipelinePass
    : shardc::impl::SchedulePipelinePassBase<SchedulePipelinePass> {
  using SchedulePipelinePassBase::SchedulePipelinePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkInputPhase(*this, module, ModulePhase::Partition,
                               ModulePhase::Kernels)))
      return signalPassFailure();
    if (!module->hasAttr(pipelineAttrName))
      return;
    FailureOr<PipelineSchedule> schedule = getPipelineSchedule(module);
    FailureOr<MeshOp> mesh = getMesh(module);
    if (failed(schedule) || failed(mesh))
      return signalPassFailure();
    llvm::Expected<Machine> loaded = loadMachineFor(*mesh, machine);
    if (!loaded) {
      module.emitError("machine: ") << llvm::toString(loaded.takeError());
      return signalPassFailure();
    }
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (!function.isExternal() &&
          failed(PipelineScheduler(function, *schedule, *loaded).run()))
        return signalPassFailure();
  }
};

} // namespace
