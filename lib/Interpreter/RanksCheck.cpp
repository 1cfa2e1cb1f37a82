//===- RanksCheck.cpp - Programs of ranks against the global loop ---------===//
//
// The functions of all ranks run in turn, each until it waits for a message
// that is not sent yet. An op of a task is compared with the run of the global
// loop for the task's microbatch. A value knows its run, so that one that gets
// into the task of another microbatch is found even where the numbers agree.
//
//===----------------------------------------------------------------------===//

#include "RanksCheck.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/PipelineSchedules/ScheduleText.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;

/// The value that identities of the global program hand on as `value`.
static Value stripIdentities(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<TransferOp, ShardingConstraintOp, StopGradientOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static Operation *getStarted(CollectiveStartOp start) {
  return &start.getBody().front().front();
}

static Operation *getStarted(CollectiveWaitOp wait) {
  return getStarted(wait.getHandle().getDefiningOp<CollectiveStartOp>());
}

RanksCheck::RanksCheck(func::FuncOp global, StringRef program,
                       ArrayRef<func::FuncOp> functions, const Devices &devices,
                       PartitionSummary &summary)
    : ValueCheck(global, devices, summary), program(program) {
  for (func::FuncOp function : functions)
    ranks.push_back({function, &function.getBody().front().front(), {}});
  auto loops = global.getBody().front().getOps<AccumulateOp>();
  if (!loops.empty() && program == global.getName())
    loop = *loops.begin();
}

LogicalResult RanksCheck::run(InputKind kind) {
  FailureOr<GlobalRun> evaluatedRun = GlobalRun::run(global, kind);
  if (failed(evaluatedRun))
    return failure();
  reference = std::move(*evaluatedRun);
  return failure(failed(feedArguments()) || failed(evaluateRuns()) ||
                 failed(runAllRanks()) || failed(checkEnd()));
}

const Tensor &RanksCheck::getExpected(const Tracked &tracked) const {
  if (tracked.run < 0)
    return reference.get(tracked.value);
  const Run &run = runs[tracked.run];
  if (auto result = dyn_cast<OpResult>(tracked.value);
      result && result.getOwner() == loop)
    return run.sums[result.getResultNumber()];
  return run.values.get(tracked.value);
}

int64_t RanksCheck::getRunOf(Operation *source) const {
  return source->getParentOp() == loop ? currentRun : -1;
}

/// The parameter that copy `name` among the arguments of `function` is of; null
/// if there is no such copy.
static StringAttr findParameterOfCopy(func::FuncOp function, StringRef name) {
  auto copy = dyn_cast_or_null<CopyAttr>([&]() -> Attribute {
    BlockArgument argument = findArgument(function, name);
    return argument ? getRole(function, argument.getArgNumber()) : Attribute();
  }());
  return copy ? copy.getParameter() : StringAttr();
}

LogicalResult RanksCheck::feedArguments() {
  for (Rank &rank : ranks)
    for (BlockArgument argument : rank.function.getArguments()) {
      StringRef name = getRoleName(rank.function, argument.getArgNumber());
      if (StringAttr parameter = findParameterOfCopy(rank.function, name))
        name = parameter.getValue();
      BlockArgument source = findArgument(global, name);
      if (!source)
        return rank.function.emitOpError("argument ")
               << argument.getArgNumber() << " is not in the global program";
      if (failed(feed(rank.function, argument, source)))
        return failure();
    }
  return success();
}

//===----------------------------------------------------------------------===//
// Microbatches
//===----------------------------------------------------------------------===//

std::optional<unsigned> RanksCheck::findOperand(Value whole) const {
  auto known = values.find(whole);
  if (known == values.end())
    return std::nullopt;
  for (auto [index, operand] : llvm::enumerate(loop->getOperands()))
    if (stripIdentities(operand) == stripIdentities(known->second.value))
      return index;
  return std::nullopt;
}

LogicalResult RanksCheck::evaluateRuns() {
  if (!loop)
    return success();
  int64_t number = 0;
  RowsOp first;
  for (auto [index, rank] : llvm::enumerate(ranks))
    for (auto rows : rank.function.getOps<RowsOp>())
      if (!first) {
        first = rows;
        number = static_cast<int64_t>(index);
      }
  if (!first)
    return ranks.front().function.emitOpError(
        "and the programs of the other ranks take no rows of the batch");
  // What makes its operand, in order.
  llvm::SetVector<Operation *> makers;
  SmallVector<Value> worklist = {first.getOperand()};
  while (!worklist.empty())
    if (Operation *maker = worklist.pop_back_val().getDefiningOp())
      if (makers.insert(maker))
        llvm::append_range(worklist, maker->getOperands());
  SmallVector<Operation *, 0> ordered = makers.takeVector();
  llvm::sort(ordered, [](Operation *lhs, Operation *rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
  for (Operation *maker : ordered)
    if (getMissing(maker) || failed(runOp(number, maker)))
      return first.emitOpError("is of a value that this rank has not made");
  enterPlaceOf(number, first);
  std::optional<unsigned> operand = findOperand(first.getOperand());
  if (!operand)
    return emitError(first) << "is of a value that the global loop does not "
                               "take rows of";
  FailureOr<SmallVector<SmallVector<int64_t>>> rows = findRows(
      first, first.getOperand(), loop, *operand, first.getType().getDimSize(0));
  if (failed(rows) || failed(reference.regroup(loop, *rows)))
    return failure();
  rowsOfRuns = std::move(*rows);
  for (auto [index, rowsOfRun] : llvm::enumerate(rowsOfRuns)) {
    if (failed(
            reference.runBody(loop, {static_cast<int64_t>(index), rowsOfRun})))
      return failure();
    std::vector<Tensor> sums;
    for (auto [result, summand] :
         llvm::enumerate(loop.getYield().getOperands())) {
      const Tensor &term = reference.get(summand);
      Tensor &sum = sums.emplace_back(term.shape, 0);
      if (index > 0)
        sum = runs[index - 1].sums[result];
      for (auto [element, value] : llvm::zip_equal(sum.data, term.data))
        element += value;
    }
    runs.push_back({reference, std::move(sums)});
  }
  return success();
}

LogicalResult RanksCheck::runRows(RowsOp op) {
  std::optional<unsigned> operand =
      loop ? findOperand(op.getOperand()) : std::nullopt;
  auto number = static_cast<int64_t>(op.getNumber());
  if (!operand || number >= static_cast<int64_t>(rowsOfRuns.size()))
    return emitError(op) << "is of a value that the global loop does not take "
                            "such rows of";
  return takeRows(op, op.getOperand(), op.getResult(), loop, *operand,
                  getLocalRows(op.getType().getDimSize(0), number),
                  rowsOfRuns[number], number);
}

/// Checks that `op`, which is not an addition to a sum, has operands of its own
/// microbatch alone.
LogicalResult RanksCheck::checkMicrobatches(Operation *op) {
  auto id = op->getAttrOfType<IntegerAttr>(idAttrName);
  Value source = id ? reference.find(id.getInt()) : Value();
  if (loop && source && source.getDefiningOp()->getParentOp() == loop &&
      currentRun < 0)
    return emitError(op) << "is of the loop over microbatches, and not in a "
                            "task";
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    auto known = values.find(operand);
    if (known == values.end() || known->second.run < 0 ||
        known->second.run == currentRun)
      continue;
    bool isSum = known->second.value.getDefiningOp() == loop;
    InFlightDiagnostic error =
        emitError(op) << "uses " << (isSum ? "the sum up to" : "a value of")
                      << " microbatch " << known->second.run << " as operand "
                      << index;
    error.attachNote(operand.getLoc()) << "it is made here";
    return error;
  }
  return success();
}

LogicalResult RanksCheck::addToSum(AddOp add) {
  // Outside of tasks it is a part of a sum over stages.
  if (currentRun < 0)
    return success();
  auto summand = values.find(add.getRhs());
  auto sum = values.find(add.getLhs());
  bool isFirst = zeros.contains(add.getLhs());
  bool isSum = sum != values.end() && sum->second.run >= 0 &&
               sum->second.value.getDefiningOp() == loop;
  if (!loop || summand == values.end() || (!isFirst && sum == values.end()))
    return success();
  if (!isFirst && !isSum)
    return emitError(add) << "adds to a value that is no sum over microbatches";
  std::optional<unsigned> index;
  if (isSum)
    index = cast<OpResult>(sum->second.value).getResultNumber();
  for (auto [number, yielded] : llvm::enumerate(loop.getYield().getOperands()))
    if (!index &&
        stripIdentities(yielded) == stripIdentities(summand->second.value))
      index = number;
  if (!index || stripIdentities(loop.getYield().getOperand(*index)) !=
                    stripIdentities(summand->second.value))
    return emitError(add) << "adds to a sum over microbatches what the global "
                             "loop does not add to it";
  int64_t before = isFirst ? -1 : sum->second.run;
  if (summand->second.run != currentRun || before + 1 != currentRun)
    return emitError(add) << "adds microbatch " << summand->second.run
                          << " to the sum of " << before + 1
                          << " microbatches, in the order of microbatches "
                             "expected number "
                          << before + 1;
  RoundingBound nothing = measure(Tensor({}, 0));
  Tracked tracked{loop.getResult(*index), summand->second.placement, {}};
  if (currentRun + 1 < static_cast<int64_t>(loop.getCount()))
    tracked.run = currentRun;
  tracked.bound = deriveBound(
      add, getExpected(tracked),
      {isFirst ? nothing : sum->second.bound, summand->second.bound}, nullptr);
  return check(add, add.getResult(), std::move(tracked));
}

LogicalResult RanksCheck::follow(Operation *op) {
  if (auto add = dyn_cast<AddOp>(op))
    return addToSum(add);
  return ValueCheck::follow(op);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void RanksCheck::enterPlaceOf(int64_t rank, Operation *op) {
  auto task = op->getAttrOfType<StringAttr>(taskAttrName);
  PipelineTask read{TaskKind::Forward, 0, -1};
  if (task)
    readPipelineTask(task.getValue().str(), read);
  currentRun = read.microbatch;
  place = (task ? "in task " + task.getValue().str() + " " : "") + "of rank " +
          std::to_string(rank) + " ";
}

void RanksCheck::copy(Value from, Value to) {
  DeviceTensors shards = tensors[from];
  tensors[to] = std::move(shards);
  if (zeros.contains(from))
    zeros.insert(to);
  auto known = values.find(from);
  if (known == values.end())
    return;
  Tracked tracked = known->second;
  values[to] = std::move(tracked);
}

LogicalResult RanksCheck::runKernel(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  for (auto [operand, argument] :
       llvm::zip_equal(kernel.getOperands(), body.getArguments()))
    copy(operand, argument);
  for (Operation &op : body.without_terminator())
    if (failed(evaluate(&op)))
      return failure();
  for (auto [value, result] : llvm::zip_equal(
           body.getTerminator()->getOperands(), kernel.getResults()))
    copy(value, result);
  return success();
}

/// activation(op(lhs)·op(rhs) + bias + sum) on one device.
static Tensor multiply(GemmOp gemm, const Tensor &lhs, const Tensor &rhs,
                       const Tensor *bias, const Tensor *sum) {
  Tensor result(cast<RankedTensorType>(gemm.getResult().getType()).getShape(),
                0);
  size_t rank = result.shape.size();
  int64_t batch = rank == 3 ? result.shape[0] : 1;
  int64_t rows = result.shape[rank - 2], columns = result.shape[rank - 1];
  int64_t depth = lhs.shape[rank - (gemm.getTransposeLhs() ? 2 : 1)];
  for (int64_t index = 0; index < batch * rows * columns; ++index) {
    int64_t column = index % columns, row = index / columns % rows;
    int64_t first = index / columns / rows * depth;
    double value = 0;
    for (int64_t k = 0; k < depth; ++k)
      value +=
          lhs.data[gemm.getTransposeLhs() ? (first + k) * rows + row
                                          : first * rows + row * depth + k] *
          rhs.data[gemm.getTransposeRhs() ? first * columns + column * depth + k
                                          : (first + k) * columns + column];
    if (bias)
      value += bias->data[column];
    if (sum)
      value += sum->data[index];
    result.data[index] = gemm.getRelu() ? std::max(value, 0.0) : value;
  }
  return result;
}

LogicalResult RanksCheck::runGemm(GemmOp gemm) {
  if (gemm.getColumnSums())
    return emitError(gemm) << "has sums of columns, which the reference "
                              "interpreter does not know";
  DeviceTensors results;
  auto find = [&](Value value, int64_t device) {
    return value ? &tensors[value][device] : nullptr;
  };
  for (int64_t device = 0; device < devices.getNumDevices(); ++device)
    results.push_back(multiply(
        gemm, *find(gemm.getLhs(), device), *find(gemm.getRhs(), device),
        find(gemm.getBias(), device), find(gemm.getSum(), device)));
  tensors[gemm.getResult()] = std::move(results);
  return success();
}

/// An op of the place that has been entered.
LogicalResult RanksCheck::evaluate(Operation *op) {
  ++summary.ops;
  if (auto kernel = dyn_cast<KernelOp>(op))
    return runKernel(kernel);
  if (auto gemm = dyn_cast<GemmOp>(op))
    return runGemm(gemm);
  if (auto rows = dyn_cast<RowsOp>(op))
    return runRows(rows);
  if (auto zero = dyn_cast<ZerosOp>(op)) {
    zeros.insert(zero);
    tensors[zero] = DeviceTensors(
        devices.getNumDevices(),
        Tensor(cast<RankedTensorType>(zero.getType()).getShape(), 0));
    return success();
  }
  bool isAddition = isa<AddOp>(op) && !op->hasAttr(idAttrName);
  if (!isAddition && failed(checkMicrobatches(op)))
    return failure();
  return isCollective(op) ? runCollective(op) : runCore(op);
}

LogicalResult RanksCheck::start(int64_t rank, CollectiveStartOp op) {
  Operation *started = getStarted(op);
  if (auto send = dyn_cast<SendOp>(started)) {
    auto [place, isNew] = messages.try_emplace(
        send.getMessage(),
        Message{rank, send, llvm::to_vector(op.getOperands())});
    if (isNew)
      return success();
    InFlightDiagnostic error = emitError(send) << "sends message "
                                               << send.getMessage() << " again";
    error.attachNote(place->second.send.getLoc()) << "it was sent here";
    return error;
  }
  if (isOverPipeline(started))
    ranks[rank].reductions.push_back(op);
  if (isa<ReceiveOp>(started) || isOverPipeline(started))
    return success();
  for (auto [operand, argument] :
       llvm::zip_equal(op.getOperands(), op.getBody().front().getArguments()))
    copy(operand, argument);
  return evaluate(started);
}

LogicalResult RanksCheck::receive(int64_t rank, ReceiveOp op,
                                  CollectiveWaitOp wait) {
  Message &message = messages.find(op.getMessage())->second;
  auto refuse = [&](const llvm::Twine &why) {
    InFlightDiagnostic error = emitError(op)
                               << "receives message " << op.getMessage()
                               << " from rank " << op.getPeer() << ", " << why;
    error.attachNote(message.send.getLoc())
        << "rank " << message.from << " sends it to rank "
        << message.send.getPeer() << " here";
    return error;
  };
  if (message.isReceived)
    return refuse("which was received before");
  if (static_cast<int64_t>(op.getPeer()) != message.from ||
      static_cast<int64_t>(message.send.getPeer()) != rank)
    return refuse("but that rank does not send it to this one");
  if (message.send.getOperandTypes() != op.getResultTypes())
    return refuse("whose values have other types");
  message.isReceived = true;
  auto id = op->getAttrOfType<IntegerAttr>(idAttrName);
  Value source = id ? reference.find(id.getInt()) : Value();
  for (auto [value, result] :
       llvm::zip_equal(message.values, wait.getResults())) {
    copy(value, result);
    auto known = values.find(result);
    if (!source || known == values.end())
      continue;
    Tracked tracked = known->second;
    // A sum crosses behind the loop.
    if (tracked.run >= 0 && tracked.value.getDefiningOp() == loop)
      return refuse("which is the sum up to microbatch " +
                    llvm::Twine(tracked.run));
    tracked.value = source;
    if (failed(check(op, result, std::move(tracked))))
      return failure();
  }
  return success();
}

std::optional<size_t> RanksCheck::findReduction(CollectiveStartOp start) const {
  for (const Rank &rank : ranks)
    for (auto [number, reduction] : llvm::enumerate(rank.reductions))
      if (reduction == start)
        return number;
  return std::nullopt;
}

LogicalResult RanksCheck::reduce(size_t number, CollectiveWaitOp wait) {
  Operation *op = getStarted(wait);
  for (const Rank &rank : ranks) {
    CollectiveStartOp start = rank.reductions[number];
    Operation *other = getStarted(start);
    if (other->getResultTypes() == op->getResultTypes() &&
        other->getAttr("axes") == op->getAttr("axes") &&
        getReduction(op) == ReductionKind::Sum &&
        getReduction(other) == ReductionKind::Sum)
      continue;
    InFlightDiagnostic error =
        emitError(op) << "meets another kind of reduction on another rank";
    error.attachNote(other->getLoc()) << "that one is here";
    return error;
  }
  auto id = op->getAttrOfType<IntegerAttr>(idAttrName);
  auto layout = op->getAttrOfType<ShardingAttr>(layoutAttrName);
  Value source = id && layout ? reference.find(id.getInt()) : Value();
  for (auto [index, result] : llvm::enumerate(wait.getResults())) {
    DeviceTensors sums;
    for (const Rank &rank : ranks) {
      CollectiveStartOp start = rank.reductions[number];
      const DeviceTensors &summands = tensors[start.getOperands()[index]];
      if (sums.empty()) {
        sums = summands;
        continue;
      }
      for (auto [sum, summand] : llvm::zip_equal(sums, summands))
        for (auto [element, value] : llvm::zip_equal(sum.data, summand.data))
          element += value;
    }
    tensors[result] = evaluateCollective(op, index, sums, devices);
    if (!source)
      continue;
    Tracked tracked{source, getPlacementOf(layout, source), {}};
    for (int axis : getCollectiveAxes(op, devices))
      tracked.placement.unreduced &= ~axisBit(axis);
    tracked.bound.isKnown = false;
    if (failed(check(op, result, std::move(tracked))))
      return failure();
  }
  return success();
}

LogicalResult RanksCheck::runOp(int64_t rank, Operation *op) {
  if (!evaluated.insert(op).second)
    return success();
  enterPlaceOf(rank, op);
  if (op->hasTrait<OpTrait::IsTerminator>())
    return returnFrom(rank, op);
  if (auto started = dyn_cast<CollectiveStartOp>(op))
    return start(rank, started);
  auto wait = dyn_cast<CollectiveWaitOp>(op);
  if (!wait)
    return evaluate(op);
  Operation *started = getStarted(wait);
  if (auto message = dyn_cast<ReceiveOp>(started))
    return receive(rank, message, wait);
  if (isOverPipeline(started))
    return reduce(
        *findReduction(wait.getHandle().getDefiningOp<CollectiveStartOp>()),
        wait);
  if (!isa<SendOp>(started))
    for (auto [value, result] :
         llvm::zip_equal(started->getResults(), wait.getResults()))
      copy(value, result);
  return success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

Operation *RanksCheck::getMissing(Operation *op) const {
  auto wait = dyn_cast<CollectiveWaitOp>(op);
  if (!wait)
    return nullptr;
  Operation *started = getStarted(wait);
  if (auto message = dyn_cast<ReceiveOp>(started))
    return messages.count(message.getMessage()) ? nullptr : started;
  std::optional<size_t> number =
      findReduction(wait.getHandle().getDefiningOp<CollectiveStartOp>());
  bool isMissing = number && llvm::any_of(ranks, [&](const Rank &rank) {
                     return rank.reductions.size() <= *number;
                   });
  return isMissing ? started : nullptr;
}

FailureOr<bool> RanksCheck::advance(int64_t rank) {
  bool moved = false;
  Operation *&next = ranks[rank].next;
  for (; next && !getMissing(next); next = next->getNextNode()) {
    if (failed(runOp(rank, next)))
      return failure();
    moved = true;
  }
  return moved;
}

LogicalResult RanksCheck::runAllRanks() {
  bool moves = true;
  while (moves) {
    moves = false;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      FailureOr<bool> moved = advance(static_cast<int64_t>(rank));
      if (failed(moved))
        return failure();
      moves |= *moved;
    }
  }
  std::optional<InFlightDiagnostic> error;
  for (auto [number, rank] : llvm::enumerate(ranks)) {
    if (!rank.next)
      continue;
    Operation *missing = getMissing(rank.next);
    auto message = dyn_cast<ReceiveOp>(missing);
    std::string what =
        message ? "message " + std::to_string(message.getMessage()) +
                      " from rank " + std::to_string(message.getPeer())
                : "the other ranks";
    enterPlaceOf(static_cast<int64_t>(number), rank.next);
    if (!error)
      error.emplace(emitError(missing) << "waits forever for " << what);
    else
      error->attachNote(missing->getLoc())
          << "rank " << number << " waits for " << what << " here";
  }
  return error ? failure() : success();
}

/// The value of the global program that result `name` of `function` must be.
FailureOr<Value> RanksCheck::findResult(func::FuncOp function, StringRef name) {
  StringAttr parameter = findParameterOfCopy(function, name);
  bool rounds = program != global.getName();
  if (parameter)
    name = parameter.getValue();
  if (parameter && rounds)
    if (BlockArgument argument = findArgument(global, name))
      return Value(argument);
  for (unsigned index = 0; !rounds && index < global.getNumResults(); ++index)
    if (auto attr =
            global.getResultAttrOfType<StringAttr>(index, resultAttrName);
        attr && attr.getValue() == name)
      return global.getBody().front().getTerminator()->getOperand(index);
  return function.emitOpError("result '")
         << name << "' is not in the global program";
}

LogicalResult RanksCheck::returnFrom(int64_t rank, Operation *op) {
  func::FuncOp function = ranks[rank].function;
  if (failed(checkMicrobatches(op)))
    return failure();
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    auto name = function.getResultAttrOfType<StringAttr>(index, resultAttrName);
    auto sharding =
        function.getResultAttrOfType<ShardingAttr>(index, shardingAttrName);
    if (!name || !sharding)
      return function.emitOpError("result ")
             << index << " has no `shardc.result` or no `shardc.sharding`";
    FailureOr<Value> source = findResult(function, name.getValue());
    if (failed(source) || failed(checkResult(op, operand, *source, sharding)))
      return failure();
    returned.insert(name.getValue());
  }
  return success();
}

LogicalResult RanksCheck::checkEnd() {
  for (auto &[number, message] : messages)
    if (!message.isReceived)
      return message.send.emitOpError("of rank ")
             << message.from << " sends message " << number
             << ", which no rank receives";
  for (unsigned index = 0;
       program == global.getName() && index < global.getNumResults(); ++index)
    if (auto name =
            global.getResultAttrOfType<StringAttr>(index, resultAttrName);
        name && !returned.contains(name.getValue()))
      return ranks.front().function.emitOpError(
                 "and the programs of the other ranks do not return '")
             << name.getValue() << "'";
  return success();
}
