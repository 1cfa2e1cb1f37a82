//===- PlanProgram.cpp - A scheduled function as a command list -----------===//

#include "CommandList.h"
#include "PlanTables.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/FunctionMemory.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/MemoryPlan.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Report/CommunicationReport.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc {

namespace {

/// Writes one program.
class ProgramWriter {
public:
  ProgramWriter(PlanContext &plan, func::FuncOp function)
      : plan(plan), builder(plan.builder), function(function),
        tasks(getTaskNumbers(function)), commands(builder, tasks) {}

  flatbuffers::Offset<fb::Program> write();

private:
  PlanContext &plan;
  flatbuffers::FlatBufferBuilder &builder;
  func::FuncOp function;
  /// With a pipeline, the numbers of the rank's tasks by their names.
  llvm::StringMap<int32_t> tasks;
  llvm::DenseMap<Value, uint32_t> numbers;
  llvm::DenseMap<Value, int64_t> offsets;
  std::vector<flatbuffers::Offset<fb::Buffer>> buffers;
  /// Of each buffer the bytes in all runs.
  std::vector<ByteRange> ranges;
  CommandList commands;
  std::vector<flatbuffers::Offset<fb::CollectiveReport>> reports;
  std::vector<flatbuffers::Offset<fb::Result>> results;
  std::vector<uint32_t> resultBuffers;
  /// The collectives in flight, by their starts.
  llvm::DenseMap<Operation *, uint32_t> startCommands;
  uint64_t wireBytes = 0, flops = 0;

  void addBuffer(Value value, int64_t offset, int64_t runs = 1);
  void addBuffers(Block &block);
  void addCommands(Block &block);
  void addLoop(AccumulateOp loop);
  void addKernel(KernelOp kernel);
  flatbuffers::Offset<fb::LaunchPart> writeLaunchPart(DictionaryAttr part);
  void addGemm(GemmOp gemm);
  void addStart(CollectiveStartOp start);
  void addSend(CollectiveStartOp start, SendOp send);
  void addReceive(CollectiveStartOp start, ReceiveOp receive);
  void addWait(CollectiveWaitOp wait);
  void addUploads();
  std::optional<std::vector<uint32_t>> getInputs() const;
  void addResults();
  void addDownloads();

  StreamCommand access(ArrayRef<uint32_t> reads, ArrayRef<uint32_t> writes,
                       fb::Stream stream = fb::Stream::Compute) const;
};

/// With several runs each takes the next bytes.
void ProgramWriter::addBuffer(Value value, int64_t offset, int64_t runs) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t stride = runs > 1 ? getNumBytes(type) : 0;
  numbers[value] = buffers.size();
  offsets[value] = offset;
  ranges.push_back({offset, offset + runs * getNumBytes(type)});
  auto shape = getShapeVector(type.getShape());
  buffers.push_back(fb::CreateBufferDirect(builder, offset, getNumBytes(type),
                                           getDType(type.getElementType()),
                                           &shape, stride));
}

void ProgramWriter::addBuffers(Block &block) {
  for (Operation &op : block) {
    if (isa<CollectiveStartOp>(op))
      continue;
    auto places = op.getAttrOfType<DenseI64ArrayAttr>(offsetsAttrName);
    for (OpResult result : op.getResults())
      addBuffer(result, places[result.getResultNumber()]);
    auto loop = dyn_cast<AccumulateOp>(op);
    if (!loop)
      continue;
    // A run takes the next part of each operand.
    for (auto [slice, operand] :
         llvm::zip_equal(loop.getSlices(), loop.getOperands()))
      addBuffer(slice, offsets.lookup(operand), loop.getCount());
    for (auto [sum, result] :
         llvm::zip_equal(loop.getSums(), loop.getResults())) {
      numbers[sum] = numbers.lookup(result);
      offsets[sum] = offsets.lookup(result);
    }
    addBuffers(loop.getBody().front());
  }
}

void ProgramWriter::addCommands(Block &block) {
  for (Operation &op : block.without_terminator())
    llvm::TypeSwitch<Operation *>(&op)
        .Case<KernelOp>([&](KernelOp kernel) { addKernel(kernel); })
        .Case<GemmOp>([&](GemmOp gemm) { addGemm(gemm); })
        .Case<AccumulateOp>([&](AccumulateOp loop) { addLoop(loop); })
        .Case<ZerosOp>([&](ZerosOp zeros) {
          uint32_t buffer = numbers.lookup(zeros.getResult());
          commands.add(zeros, fb::Operation::Clear,
                       fb::CreateClear(builder, buffer), access({}, {buffer}));
        })
        .Case<CollectiveStartOp>(
            [&](CollectiveStartOp start) { addStart(start); })
        .Case<CollectiveWaitOp>([&](CollectiveWaitOp wait) { addWait(wait); });
}

void ProgramWriter::addLoop(AccumulateOp loop) {
  for (Value result : loop.getResults())
    commands.add(loop, fb::Operation::Clear,
                 fb::CreateClear(builder, numbers.lookup(result)),
                 access({}, {numbers.lookup(result)}));
  commands.beginLoop(loop, loop.getCount());
  addCommands(loop.getBody().front());
  commands.endLoop();
}

flatbuffers::Offset<fb::LaunchPart>
ProgramWriter::writeLaunchPart(DictionaryAttr part) {
  auto getNumbers = [&](StringRef name) {
    ArrayRef<int64_t> numbers =
        part.getAs<DenseI64ArrayAttr>(name).asArrayRef();
    return std::vector<uint16_t>(numbers.begin(), numbers.end());
  };
  auto buffers = getNumbers("buffers"), axes = getNumbers("axes");
  ArrayRef<int64_t> perIteration =
      part.getAs<DenseI64ArrayAttr>("bytes").asArrayRef();
  std::vector<uint64_t> bytes;
  if (llvm::any_of(perIteration, [](int64_t count) { return count > 0; }))
    bytes.assign(perIteration.begin(), perIteration.end());
  return fb::CreateLaunchPartDirect(
      builder, part.getAs<IntegerAttr>("extent").getInt(), &buffers, &axes,
      bytes.empty() ? nullptr : &bytes);
}

void ProgramWriter::addKernel(KernelOp kernel) {
  auto symbol = kernel->getAttrOfType<StringAttr>(symbolAttrName);
  // The iterations on a CPU, the blocks on a GPU.
  auto extent = kernel->getAttrOfType<IntegerAttr>(extentAttrName);
  auto threads = kernel->getAttrOfType<IntegerAttr>(threadsAttrName);
  auto getNumber = [&](StringAttr symbol) {
    return plan.kernels.insert({symbol, uint32_t(plan.kernels.size())})
        .first->second;
  };
  uint32_t number = getNumber(symbol), groupNumber = 0, groupDevices = 0;
  int32_t groupShared = -1;
  if (auto group = kernel->getAttrOfType<StringAttr>(groupSymbolAttrName)) {
    groupNumber = getNumber(group);
    groupDevices =
        kernel->getAttrOfType<IntegerAttr>(groupDevicesAttrName).getInt();
    if (auto shared = kernel->getAttrOfType<IntegerAttr>(groupSharedAttrName))
      groupShared = shared.getInt();
  }
  std::vector<uint32_t> used;
  for (Value operand : kernel.getOperands())
    used.push_back(numbers.lookup(operand));
  for (Value result : kernel.getResults())
    used.push_back(numbers.lookup(result));
  std::vector<flatbuffers::Offset<fb::LaunchPart>> parts;
  if (auto list = kernel->getAttrOfType<ArrayAttr>(partsAttrName))
    for (Attribute part : list)
      parts.push_back(writeLaunchPart(cast<DictionaryAttr>(part)));
  uint64_t launchFlops = 0;
  kernel.getBody().walk(
      [&](Operation *op) { launchFlops += getMatmulFlops(op); });
  flops += getNumRuns(kernel) * launchFlops;
  ArrayRef<uint32_t> reads = ArrayRef(used).take_front(kernel.getNumOperands());
  ArrayRef<uint32_t> writes = ArrayRef(used).take_back(kernel.getNumResults());
  commands.add(kernel, fb::Operation::Launch,
               fb::CreateLaunchDirect(
                   builder, number, &used, extent ? extent.getInt() : 1,
                   /*grain=*/1, kernel.getNumResults(),
                   threads ? threads.getInt() : 0,
                   parts.empty() ? nullptr : &parts, launchFlops, groupNumber,
                   groupDevices, groupShared),
               access(reads, writes));
}

void ProgramWriter::addGemm(GemmOp gemm) {
  flops += getNumRuns(gemm) * getMatmulFlops(gemm);
  uint32_t c = numbers.lookup(gemm.getResult());
  Value sum = gemm.getSum();
  if (sum && offsets.lookup(sum) != offsets.lookup(gemm.getResult()))
    commands.add(gemm, fb::Operation::Copy,
                 fb::CreateCopy(builder, numbers.lookup(sum), c),
                 access({numbers.lookup(sum)}, {c}));
  llvm::SmallVector<uint32_t> reads, writes;
  for (Value operand : gemm->getOperands())
    if (operand != sum)
      reads.push_back(numbers.lookup(operand));
  for (Value result : gemm->getResults())
    writes.push_back(numbers.lookup(result));
  commands.add(gemm, fb::Operation::Gemm, writeGemm(plan, gemm, numbers),
               access(reads, writes));
}

void ProgramWriter::addSend(CollectiveStartOp start, SendOp send) {
  std::vector<uint32_t> buffers;
  for (Value operand : start->getOperands())
    buffers.push_back(numbers.lookup(operand));
  startCommands[start] = commands.size();
  commands.add(start, fb::Operation::Send,
               fb::CreateSendDirect(builder, &buffers, send.getPeer(),
                                    send.getMessage(), reports.size()),
               access(buffers, {}, fb::Stream::Communication));
  reports.push_back(writeCollectiveReport(plan, send));
  wireBytes += getCollectiveCost(send)->wireBytes;
}

void ProgramWriter::addReceive(CollectiveStartOp start, ReceiveOp receive) {
  std::vector<uint32_t> buffers;
  for (Value result : start.getWait()->getResults())
    buffers.push_back(numbers.lookup(result));
  startCommands[start] = commands.size();
  commands.add(start, fb::Operation::Receive,
               fb::CreateReceiveDirect(builder, &buffers, receive.getPeer(),
                                       receive.getMessage()),
               access({}, buffers, fb::Stream::Communication));
}

void ProgramWriter::addStart(CollectiveStartOp start) {
  Operation *op = start.getCollective();
  if (auto send = dyn_cast<SendOp>(op))
    return addSend(start, send);
  if (auto receive = dyn_cast<ReceiveOp>(op))
    return addReceive(start, receive);
  CollectiveWaitOp wait = start.getWait();
  llvm::SmallVector<uint32_t> reads, writes;
  for (auto [operand, result] :
       llvm::zip_equal(start->getOperands(), wait->getResults())) {
    reads.push_back(numbers.lookup(operand));
    writes.push_back(numbers.lookup(result));
  }
  startCommands[start] = commands.size();
  commands.add(start, fb::Operation::CollectiveStart,
               writeCollective(plan, op, reads, writes, reports.size()),
               access(reads, writes, fb::Stream::Communication));
  reports.push_back(writeCollectiveReport(plan, op));
  wireBytes += getNumRuns(op) * getCollectiveCost(op)->wireBytes;
}

void ProgramWriter::addWait(CollectiveWaitOp wait) {
  if (plan.hasStreams)
    return;
  commands.add(
      wait, fb::Operation::CollectiveWait,
      fb::CreateCollectiveWait(builder, startCommands.lookup(wait.getStart())));
}

/// The arguments that the host gives.
static SmallVector<BlockArgument> getFedArguments(func::FuncOp function) {
  SmallVector<BlockArgument> fed;
  for (BlockArgument argument : function.getArguments())
    if (isa_and_nonnull<InputAttr, LabelAttr>(
            getRole(function, argument.getArgNumber())))
      fed.push_back(argument);
  return fed;
}

/// Uploads come in the order of the arguments.
void ProgramWriter::addUploads() {
  for (BlockArgument argument : getFedArguments(function)) {
    StringRef name = getRoleName(function, argument.getArgNumber());
    commands.add(function, fb::Operation::Upload,
                 fb::CreateUpload(builder, plan.inputs.lookup(name)),
                 access({}, {numbers.lookup(argument)}, fb::Stream::Copies));
  }
}

/// The numbers of the tensors that the host gives, if the program, on all ranks
/// together, does not take all inputs and labels.
std::optional<std::vector<uint32_t>> ProgramWriter::getInputs() const {
  llvm::StringSet<> names;
  for (auto other :
       function->getParentOfType<ModuleOp>().getOps<func::FuncOp>())
    if (getProgramName(other) == getProgramName(function))
      for (BlockArgument argument : getFedArguments(other))
        names.insert(getRoleName(other, argument.getArgNumber()));
  if (names.size() == plan.inputs.size())
    return std::nullopt;
  std::vector<uint32_t> inputs;
  for (BlockArgument argument : getFedArguments(function))
    inputs.push_back(
        plan.inputs.lookup(getRoleName(function, argument.getArgNumber())));
  llvm::sort(inputs);
  return inputs;
}

void ProgramWriter::addResults() {
  Operation *terminator = function.getBody().front().getTerminator();
  std::vector<BlockArgument> donors = getDonors(function);
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    // Nothing reads new parameters and states from there: they take their
    // tensors' places.
    if (donors[index] ||
        !function.getResultAttrOfType<StringAttr>(index, resultAttrName))
      continue;
    uint32_t buffer = numbers.lookup(operand.get());
    resultBuffers.push_back(buffer);
    results.push_back(writeResult(plan, function, index, buffer));
  }
}

/// Each starts as soon as its value is complete, by its events.
void ProgramWriter::addDownloads() {
  for (auto [number, buffer] : llvm::enumerate(resultBuffers))
    commands.add(function, fb::Operation::Download,
                 fb::CreateDownload(builder, number),
                 access({buffer}, {}, fb::Stream::Copies));
}

/// A collective touches its tensors with the padding behind them.
StreamCommand ProgramWriter::access(ArrayRef<uint32_t> reads,
                                    ArrayRef<uint32_t> writes,
                                    fb::Stream stream) const {
  StreamCommand command;
  command.stream = unsigned(stream);
  auto getRange = [&](uint32_t buffer) {
    auto [begin, end] = ranges[buffer];
    bool isPadded = stream == fb::Stream::Communication;
    return ByteRange{begin, isPadded ? alignBytes(end) : end};
  };
  llvm::append_range(command.reads, llvm::map_range(reads, getRange));
  llvm::append_range(command.writes, llvm::map_range(writes, getRange));
  return command;
}

flatbuffers::Offset<fb::Program> ProgramWriter::write() {
  for (BlockArgument argument : function.getArguments())
    addBuffer(argument, function
                            .getArgAttrOfType<IntegerAttr>(
                                argument.getArgNumber(), offsetAttrName)
                            .getInt());
  addBuffers(function.getBody().front());
  if (plan.hasStreams)
    addUploads();
  addCommands(function.getBody().front());
  addResults();
  if (plan.hasStreams)
    addDownloads();
  auto commandTables = commands.write(plan.hasStreams);
  auto time = writeTimeEstimate(plan, function);
  auto regather = writeRegather(plan, function);
  auto cost = writePlanCost(plan, function);
  auto recompute = writeRecompute(plan, function);
  auto getCount = [&](StringRef name) {
    auto attr = function->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  auto rank = function->getAttrOfType<IntegerAttr>(rankAttrName);
  auto taskTables = writeTasks(plan, function);
  std::optional<std::vector<uint32_t>> inputs = getInputs();
  return fb::CreateProgramDirect(
      builder, getProgramName(function).str().c_str(), &buffers, &commandTables,
      &results, &reports, wireBytes, flops, getCount(peakBytesAttrName),
      getCount(globalMatmulFlopsAttrName), time, regather, cost,
      rank ? rank.getInt() : -1, taskTables.empty() ? nullptr : &taskTables,
      recompute, inputs ? &*inputs : nullptr);
}

} // namespace

flatbuffers::Offset<fb::Program> writeProgram(PlanContext &plan,
                                              func::FuncOp function) {
  return ProgramWriter(plan, function).write();
}

} // namespace shardc
