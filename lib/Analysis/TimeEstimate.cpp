//===- TimeEstimate.cpp - How long a partitioned program takes ------------===//

#include "shardc/Analysis/TimeEstimate.h"

#include "shardc/Analysis/CommunicationReport.h"
#include "shardc/Dialect/Shardc/IR/VerifySharding.h"
#include "shardc/Support/Suggest.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;

llvm::Expected<Machine> shardc::loadMachineFor(MeshOp mesh,
                                               StringRef nameOrFile) {
  llvm::Expected<Machine> machine = loadMachine(nameOrFile);
  if (machine)
    machine->shareAmong(mesh.getNumDevices());
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

static Arithmetic getArithmetic(Type elementType) {
  if (elementType.isF64())
    return Arithmetic::F64;
  return elementType.isBF16() ? Arithmetic::BF16 : Arithmetic::F32;
}

static int64_t getElementwiseFlops(Operation *op) {
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case<ConstantOp, IotaOp, BroadcastOp, TransposeOp, ReshapeOp,
            StopGradientOp, MaskOp>([](Operation *) { return 0; })
      .Case([](ReduceOp reduce) {
        return getTensor(reduce.getOperand()).getNumElements();
      })
      .Default([](Operation *op) {
        return getTensor(op->getResult(0)).getNumElements();
      });
}

OpWork shardc::getOpWork(Operation *op, const MemoryTraffic &traffic) {
  OpWork work;
  bool isCompute = isa<ShardingRuleOpInterface, GemmOp, MaskOp>(op);
  if (!isCompute || op->getNumRegions() > 0)
    return work;
  work.isProduct = isa<DotGeneralOp, GemmOp>(op);
  work.flops = work.isProduct ? getMatmulFlops(op) : getElementwiseFlops(op);
  work.arithmetic = getArithmetic(getTensor(op->getResult(0)).getElementType());
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

double shardc::getComputeSeconds(const Machine &machine, const OpWork &work) {
  if (work.isProduct)
    return work.flops / machine.getProductFlopsPerSecond(work.arithmetic);
  // Outside of products, bf16 is computed in f32.
  Arithmetic arithmetic =
      work.arithmetic == Arithmetic::BF16 ? Arithmetic::F32 : work.arithmetic;
  return work.flops / machine.getFlopsPerSecond(arithmetic);
}

double shardc::getMemorySeconds(const Machine &machine, const OpWork &work) {
  return work.memoryBytes / machine.memoryBytesPerSecond;
}

double shardc::getCollectiveSeconds(const Machine &machine, Operation *op) {
  std::optional<CollectiveCost> cost = getCollectiveCost(op);
  if (!cost)
    return 0;
  MeshOp mesh = lookupMesh(op, op->getAttrOfType<FlatSymbolRefAttr>("mesh"));
  SmallVector<LinkAxis> axes;
  for (auto axis :
       op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>())
    axes.push_back({axis.getValue(), mesh.getAxisSize(axis.getValue())});
  return getCollectiveSeconds(machine, cost->kind, cost->wireBytes, axes);
}

namespace {

/// Runs ops in program order on two queues, one of compute and one of links.
class Timeline {
public:
  Timeline(func::FuncOp function, const Machine &machine)
      : traffic(function), machine(machine) {
    run(function.getBody().front(), 0);
    estimate.overlappedSeconds = std::max(computeFree, linksFree);
  }

  TimeEstimate estimate;

private:
  /// Runs the ops of `block`, which start at `begin` at the earliest.
  void run(Block &block, double begin) {
    for (Operation &op : block) {
      double start = begin;
      for (Value operand : op.getOperands())
        start = std::max(start, ready.lookup(operand));
      // The body of a kernel, or of another op that only encloses ops.
      for (Region &region : op.getRegions())
        for (Block &body : region) {
          run(body, start);
          for (Value yielded : body.getTerminator()->getOperands())
            start = std::max(start, ready.lookup(yielded));
        }
      double end = op.getNumRegions() ? start : runOp(&op, start);
      for (Value result : op.getResults())
        ready[result] = end;
    }
  }

  /// Adds up `op` and returns when it ends.
  double runOp(Operation *op, double start) {
    OpWork work = getOpWork(op, traffic);
    double compute = getComputeSeconds(machine, work);
    double memory = getMemorySeconds(machine, work);
    double communication = getCollectiveSeconds(machine, op);
    estimate.computeSeconds += compute;
    estimate.memorySeconds += memory;
    estimate.communicationSeconds += communication;
    double seconds = compute + memory + communication;
    // What takes no time waits for no queue.
    if (seconds == 0)
      return start;
    // Virtual devices that share one computer move data with its cores.
    bool isOnLinks = communication > 0 && !machine.isShared;
    double &free = isOnLinks ? linksFree : computeFree;
    free = std::max(free, start) + seconds;
    return free;
  }

  MemoryTraffic traffic;
  const Machine &machine;
  /// When each value is there, and when each queue is free again.
  llvm::DenseMap<Value, double> ready;
  double computeFree = 0, linksFree = 0;
};

} // namespace

TimeEstimate shardc::estimateTime(func::FuncOp function,
                                  const Machine &machine) {
  return Timeline(function, machine).estimate;
}
