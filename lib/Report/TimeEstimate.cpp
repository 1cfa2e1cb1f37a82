//===- TimeEstimate.cpp - Time estimates of partitioned programs ----------===//

#include "shardc/Report/TimeEstimate.h"

#include "ReuseDistances.h"
#include "SharedEstimate.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Support/Suggest.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;

llvm::Expected<Machine> shardc::loadMachineFor(MeshOp mesh,
                                               StringRef nameOrFile) {
  llvm::Expected<Machine> machine = loadMachine(nameOrFile);
  if (!machine)
    return machine;
  machine->shareAmong(mesh.getNumDevices());
  SmallVector<LinkAxis> axes;
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    axes.push_back({axis.getName().getValue(), axis.getSize()});
  machine->placeOnHosts(axes);
  return machine;
}

void shardc::remarkUnknownAxes(const Machine &machine, MeshOp mesh) {
  std::vector<std::string> names;
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    names.push_back(axis.getName().str());
  for (const auto &entry : machine.axisLinks)
    if (!llvm::is_contained(names, entry.first))
      emitRemark(mesh.getLoc(), "machine '")
          << machine.name << "' describes links along axis '" << entry.first
          << "', which mesh @" << mesh.getSymName() << " lacks"
          << suggest(entry.first, names);
}

static RankedTensorType getTensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The type in which `op` computes: that of its result, for a GEMM that of its
/// factors.
static ComputeType getComputeType(Operation *op) {
  bool isGemm = isa<DotGeneralOp, GemmOp>(op);
  Value value = isGemm ? op->getOperand(0) : op->getResult(0);
  Type elementType = getTensor(value).getElementType();
  if (elementType.isF64())
    return ComputeType::F64;
  return elementType.isBF16() ? ComputeType::BF16 : ComputeType::F32;
}

/// The value each of whose elements costs an operation, for ops other than
/// GEMMs: the operand of a reduction, else the result; null if `op` computes
/// nothing.
static Value getComputed(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<ConstantOp, IotaOp, BroadcastOp, TransposeOp, ReshapeOp,
            ExtractSliceOp, PadOp, ConcatenateOp, PermuteRowsOp, StopGradientOp,
            MaskOp, ShardingConstraintOp, TransferOp, ScatterRowsOp>(
          [](Operation *) { return Value(); })
      .Case([](ReduceOp reduce) { return reduce.getOperand(); })
      .Default([](Operation *op) { return op->getResult(0); });
}

/// Whether `op` itself computes; for loops their ops do.
static bool isCompute(Operation *op) {
  return isa<ShardingRuleOpInterface, GemmOp, MaskOp>(op) &&
         op->getNumRegions() == 0 && !isa<TransferOp>(op);
}

OpWork shardc::getArithmetic(Operation *op) {
  OpWork work;
  if (!isCompute(op))
    return work;
  work.isGemm = isa<DotGeneralOp, GemmOp>(op);
  if (auto gemm = dyn_cast<GemmOp>(op)) {
    work.isLibraryGemm = true;
    work.form = {gemm.getTransposeLhs(), gemm.getTransposeRhs(),
                 gemm.getSumsLhs() || gemm.getSumsRhs()};
  }
  if (work.isGemm) {
    work.flops = getMatmulFlops(op);
    ArrayRef<int64_t> shape = getTensor(op->getResult(0)).getShape();
    auto elements = static_cast<double>(
        std::max<int64_t>(getTensor(op->getResult(0)).getNumElements(), 1));
    work.columns =
        shape.empty() ? 1
                      : static_cast<double>(std::max<int64_t>(shape.back(), 1));
    work.rows = elements / work.columns;
    work.terms = work.flops / 2 / elements;
  } else if (Value computed = getComputed(op))
    work.flops = getTensor(computed).getNumElements();
  work.computeType = getComputeType(op);
  return work;
}

OpWork shardc::getOpWork(Operation *op, const MemoryTraffic &traffic) {
  OpWork work = getArithmetic(op);
  if (!isCompute(op))
    return work;
  auto addBytes = [&](Value value) {
    work.memoryBytes += getTensor(value).getNumElements() *
                        getElementBytes(getTensor(value).getElementType());
  };
  for (OpOperand &operand : op->getOpOperands())
    if (traffic.isLoaded(operand))
      addBytes(operand.get());
  for (Value result : op->getResults())
    if (traffic.isStored(result))
      addBytes(result);
  return work;
}

/// The measured times of GEMMs as `work`; null: there are none.
static const GemmTimes *findTimes(const Machine &machine, const OpWork &work) {
  if (!work.isLibraryGemm)
    return nullptr;
  const GemmTimes &times = machine.getGemmTimes(work.computeType);
  return times.isEmpty() ? nullptr : &times;
}

double shardc::getComputeSeconds(const Machine &machine, const OpWork &work) {
  if (const GemmTimes *times = findTimes(machine, work)) {
    double seconds =
        times->getSeconds(work.rows, work.columns, work.terms, work.form);
    if (machine.numSharing == 1 || machine.concurrentCommandSeconds == 0)
      return static_cast<double>(machine.numSharing) * seconds;
    // Small ones of several devices are beside each other.
    return std::max(
        {seconds, machine.commandSeconds,
         work.flops / machine.getMatmulFlopsPerSecond(work.computeType)});
  }
  if (work.isGemm) {
    double seconds =
        work.flops / machine.getMatmulFlopsPerSecond(work.computeType);
    return work.terms == 0 ? seconds
                           : seconds * machine.getShortSides(work.computeType)
                                           .getSlowdown(work.rows, work.columns,
                                                        work.terms);
  }
  // Outside of GEMMs, bf16 is computed in f32.
  ComputeType computeType = work.computeType == ComputeType::BF16
                                ? ComputeType::F32
                                : work.computeType;
  return work.flops / machine.getFlopsPerSecond(computeType);
}

/// Whether the time of a GEMM is that of one with its accesses, as it was
/// measured: of both the larger counts.
static bool hasAccesses(const Machine &machine, const OpWork &work) {
  return findTimes(machine, work) ||
         (work.isGemm && work.terms > 0 &&
          !machine.getShortSides(work.computeType).isEmpty());
}

double shardc::getMemorySeconds(const Machine &machine, const OpWork &work) {
  double seconds = work.memoryBytes / machine.memoryBytesPerSecond;
  return hasAccesses(machine, work)
             ? std::max(0.0, seconds - getComputeSeconds(machine, work))
             : seconds;
}

static bool isCommand(Operation *op) {
  return isa<KernelOp, GemmOp, ZerosOp>(op);
}

double shardc::getStartSeconds(const Machine &machine, Operation *op) {
  return isCommand(op) && !findTimes(machine, getArithmetic(op))
             ? machine.commandSeconds
             : 0;
}

OpSeconds shardc::getOpSeconds(const Machine &machine, Operation *op,
                               const MemoryTraffic &traffic) {
  OpSeconds seconds;
  if (!isCompute(op))
    return seconds;
  int64_t runs = getNumRuns(op);
  // One element, or one multiplication and addition.
  OpWork one;
  one.isGemm = isa<DotGeneralOp>(op);
  one.computeType = getComputeType(op);
  one.flops = one.isGemm ? 2 : 1;
  double computeType = runs * getComputeSeconds(machine, one);
  if (one.isGemm)
    seconds.perPoint = computeType;
  Value computed = one.isGemm ? Value() : getComputed(op);
  auto add = [&](Value value, bool isComputed, bool isMoved) {
    one.memoryBytes = getElementBytes(getTensor(value).getElementType());
    seconds.perElement.push_back(
        (isComputed ? computeType : 0) +
        (isMoved ? runs * getMemorySeconds(machine, one) : 0));
  };
  for (OpOperand &operand : op->getOpOperands())
    add(operand.get(), isa<ReduceOp>(op) && operand.get() == computed,
        traffic.isLoaded(operand));
  for (Value result : op->getResults())
    add(result, result == computed, traffic.isStored(result));
  return seconds;
}

void shardc::setSeconds(ModuleGraph &module, const Machine &machine) {
  for (ModuleGraph::Function &function : module.functions) {
    MemoryTraffic traffic(function.op);
    for (int index = function.firstOp; index < function.endOp; ++index)
      if (Operation *op = module.operations[index]) {
        GraphOp &node = module.graph.ops[index];
        node.seconds = getOpSeconds(machine, op, traffic);
        // Results that exist for moves alone, as parts of another one, take no
        // time.
        if (!node.seconds.perElement.empty())
          node.seconds.perElement.resize(node.operands.size() +
                                         node.results.size());
      }
  }
}

/// The shards of an argument that differ: as many as the devices along the axes
/// that shard it.
static double countShards(func::FuncOp function, BlockArgument argument) {
  auto sharding = function.getArgAttrOfType<ShardingAttr>(
      argument.getArgNumber(), shardingAttrName);
  FailureOr<MeshOp> mesh = getMesh(function->getParentOfType<ModuleOp>());
  double shards = 1;
  for (int64_t dim = 0; sharding && succeeded(mesh) && dim < sharding.getRank();
       ++dim)
    for (StringAttr axis : sharding.getAxes(dim))
      shards *= static_cast<double>(mesh->getAxisSize(axis.getValue()));
  return shards;
}

double shardc::getInputSeconds(const Machine &machine, func::FuncOp function) {
  if (machine.hostBytesPerSecond == 0)
    return 0;
  double bytes = 0;
  for (BlockArgument argument : function.getArguments())
    if (isa_and_nonnull<InputAttr, LabelAttr>(
            function.getArgAttr(argument.getArgNumber(), roleAttrName)))
      bytes += getBytes(argument) *
               (machine.isShared ? countShards(function, argument) : 1);
  return bytes / machine.hostBytesPerSecond;
}

double shardc::getCollectiveSeconds(const Machine &machine, Operation *op) {
  std::optional<CollectiveCost> cost = getCollectiveCost(op);
  if (!cost)
    return 0;
  FailureOr<MeshOp> mesh = getMesh(op->getParentOfType<ModuleOp>());
  if (failed(mesh))
    return 0;
  // Outermost first, whatever the order of a collective.
  SmallVector<StringAttr> moved(getMovedAxes(op));
  SmallVector<LinkAxis> axes;
  int64_t apart = mesh->getNumDevices();
  for (auto axis : mesh->getAxes().getAsRange<MeshAxisAttr>()) {
    apart /= axis.getSize();
    if (llvm::is_contained(moved, axis.getName()))
      axes.push_back({axis.getName().getValue(), axis.getSize(), apart});
  }
  return getCollectiveSeconds(machine, cost->kind, cost->wireBytes, axes);
}

double shardc::getSerialSeconds(const Machine &machine, Operation *op,
                                const MemoryTraffic &traffic) {
  double seconds = 0;
  op->walk([&](Operation *inner) {
    OpWork work = getOpWork(inner, traffic);
    seconds +=
        getStartSeconds(machine, inner) + getComputeSeconds(machine, work) +
        getMemorySeconds(machine, work) + getCollectiveSeconds(machine, inner);
  });
  return seconds;
}

namespace {

/// List scheduling in program order on two queues, one of compute and one of
/// links.
class Timeline {
public:
  Timeline(func::FuncOp function, const Machine &machine)
      : traffic(function), machine(machine) {
    if (machine.hasCommandTimes() && hasKernels(function)) {
      distances.emplace(function);
      // In the step before, everything has been accessed.
      run(function.getBody().front(), 0);
      estimate = {};
      ready.clear();
      linksFree = 0;
      estimate.computeSeconds = computeFree = machine.stepSeconds;
    }
    run(function.getBody().front(), 0);
    estimate.inputSeconds = getInputSeconds(machine, function);
    estimate.overlappedSeconds =
        std::max({computeFree, linksFree, estimate.inputSeconds});
  }

  TimeEstimate estimate;

private:
  /// Runs the ops of `block`, which start at `begin` at the earliest.
  void run(Block &block, double begin) {
    for (Operation &op : block) {
      if (isa<func::FuncOp, AccumulateOp>(block.getParentOp()))
        enclosing = &op;
      double start = begin;
      for (Value operand : op.getOperands())
        start = std::max(start, ready.lookup(operand));
      const bool isWhole = distances && isCommand(&op);
      if (distances)
        distances->place(&op);
      // The body of a kernel, or of another op that only encloses ops.
      if (!isWhole)
        for (Region &region : op.getRegions())
          for (Block &body : region) {
            run(body, start);
            for (Value yielded : body.getTerminator()->getOperands())
              start = std::max(start, ready.lookup(yielded));
          }
      double end = op.getNumRegions() && !isWhole ? start : runOp(&op, start);
      for (Value result : op.getResults())
        ready[result] = end;
    }
  }

  /// Adds the time of `op` and returns when it ends.
  double runOp(Operation *op, double start) {
    OpWork work;
    double compute = 0, memory = 0;
    if (distances && isCommand(op)) {
      priceCommand(op, work, compute, memory);
    } else {
      work = getOpWork(op, traffic);
      compute = getComputeSeconds(machine, work);
      memory = getMemorySeconds(machine, work);
      if (distances && getCollectiveCost(op))
        for (ValueRange values :
             {ValueRange(op->getOperands()), ValueRange(op->getResults())})
          for (Value value : values)
            distances->access(value, getBytes(value));
    }
    int64_t runs = getNumRuns(op);
    compute *= runs;
    memory *= runs;
    double communication = runs * getCollectiveSeconds(machine, op);
    estimate.computeSeconds += compute;
    estimate.memorySeconds += memory;
    estimate.communicationSeconds += communication;
    const double seconds = compute + memory + communication;
    // An op that takes no time waits for no queue.
    if (seconds == 0)
      return start;
    // Virtual devices that share one computer move data with its cores.
    const double byDevice =
        communication > 0 && !machine.isShared ? 1 - machine.overlap : 1;
    double begin = communication > 0 ? std::max(start, linksFree) : start;
    // The device has a hand in this part: it waits for the device, and the
    // device for it, as long as they would if it were all, times the part.
    begin += byDevice * std::max(0.0, computeFree - begin);
    const double end = begin + seconds;
    if (communication > 0)
      linksFree = end;
    computeFree += byDevice * (std::max(0.0, begin - computeFree) + seconds);
    addSpan(end, seconds, communication > 0, runs, work);
    return end;
  }

  /// The time of a command, with its start, and of its accesses by what has
  /// been accessed since. `work`: that of all its GEMMs, and its bytes.
  void priceCommand(Operation *op, OpWork &work, double &compute,
                    double &memory) {
    compute = getStartSeconds(machine, op);
    bool hasMeasured = false;
    op->walk([&](Operation *inner) {
      OpWork own = getArithmetic(inner);
      compute += getComputeSeconds(machine, own);
      hasMeasured |= hasAccesses(machine, own);
      if (own.isGemm) {
        work.isGemm = true;
        work.flops += own.flops;
      }
    });
    // By place of an operand.
    llvm::SmallDenseMap<int64_t, double> ofOperands;
    auto add = [&](Value value, double distance) {
      const double bytes = getBytes(value);
      work.memoryBytes += bytes;
      memory += machine.memory.empty()
                    ? bytes / machine.memoryBytesPerSecond
                    : bytes * getSecondsPerByte(machine.memory, distance);
    };
    for (Value operand : op->getOperands()) {
      double distance = distances->access(operand, getBytes(operand));
      ofOperands.try_emplace(distances->getPlace(operand), distance);
      add(operand, distance);
    }
    // What replaces an operand goes back to where that came from.
    for (Value result : op->getResults())
      add(result, std::max(distances->access(result, getBytes(result)),
                           ofOperands.lookup(distances->getPlace(result))));
    if (hasMeasured)
      memory = std::max(0.0, memory - compute);
  }

  /// Adds an op of `enclosing` that ends at `end` to its span.
  void addSpan(double end, double seconds, bool communicates, int64_t runs,
               const OpWork &work) {
    if (estimate.spans.empty() || estimate.spans.back().op != enclosing)
      estimate.spans.push_back({enclosing, end - seconds});
    OpSpan &span = estimate.spans.back();
    span.seconds = end - span.startSeconds;
    span.communicates |= communicates;
    span.gemmFlops += work.isGemm ? runs * work.flops : 0;
    span.memoryBytes += runs * work.memoryBytes;
  }

  MemoryTraffic traffic;
  const Machine &machine;
  /// If the commands are priced as a whole.
  std::optional<ReuseDistances> distances;
  /// The time at which each value is complete, and each queue free again.
  llvm::DenseMap<Value, double> ready;
  double computeFree = 0, linksFree = 0;
  /// The op of the function or of a loop's body that is run.
  Operation *enclosing = nullptr;
};

} // namespace

TimeEstimate shardc::estimateTime(func::FuncOp function,
                                  const Machine &machine) {
  if (machine.computer && hasKernels(function))
    return estimateSharedTime(function, machine);
  return Timeline(function, machine).estimate;
}
