//===- Explain.cpp - Explanations from the IR -----------------------------===//

#include "shardc/Report/Explain.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Report/RankPrograms.h"
#include "shardc/Report/TimeEstimate.h"

#include "llvm/ADT/StringExtras.h"

#include <numeric>

using namespace mlir;
using namespace shardc;

static int64_t getNumBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * getElementBytes(tensor.getElementType());
}

static AxisOrigin readOrigin(OriginAttr attr) {
  AxisOrigin origin{attr.getAxis().str(), attr.getName().str(), "", {}};
  if (attr.getAt())
    origin.source = getSourceText(attr.getAt());
  if (attr.getThrough())
    for (auto at : attr.getThrough().getAsRange<LocationAttr>()) {
      SourceAttr source = getSource(at);
      origin.through.push_back(
          {source ? source.getOp().str() : "op", getSourceText(at)});
    }
  return origin;
}

static ChainEnd readEnd(MoveEndAttr attr) {
  ChainEnd end;
  end.op = attr.getOp().str();
  if (attr.getPart())
    end.part = stringifyPart(attr.getPart().getValue()).str();
  end.source = getSourceText(attr.getAt());
  for (auto name : attr.getArguments().getAsRange<StringAttr>())
    end.arguments.push_back(name.str());
  for (auto origin : attr.getOrigins().getAsRange<OriginAttr>())
    end.origins.push_back(readOrigin(origin));
  return end;
}

static MovedTensor readMove(MoveAttr move, const MeshAxes &mesh) {
  MovedTensor tensor;
  tensor.name = move.getTensor().str();
  tensor.move = move.getId();
  tensor.shape = move.getType().getShape().vec();
  llvm::raw_string_ostream(tensor.dtype) << move.getType().getElementType();
  tensor.from = toString(getLayout(move.getFrom(), mesh), mesh);
  tensor.to = toString(getLayout(move.getTo(), mesh), mesh);
  tensor.producer = readEnd(move.getProducer());
  tensor.consumer = readEnd(move.getConsumer());
  return tensor;
}

SmallVector<int64_t> shardc::getTensorWireBytes(Operation *collective) {
  CollectiveCost cost = *getCollectiveCost(collective);
  int64_t total = getCollectiveEntry(collective)->wireBytes;
  if (collective->getNumOperands() == 1 || cost.wireBytes == 0)
    return SmallVector<int64_t>(collective->getNumOperands(), total);
  SmallVector<int64_t> wireBytes;
  for (unsigned index = 0; index < collective->getNumOperands(); ++index) {
    int64_t bytes = getNumBytes(collective->getOperand(index).getType());
    if (isa<AllGatherOp>(collective))
      bytes *= cost.groupSize;
    if (isa<ReduceScatterOp>(collective))
      bytes =
          cost.groupSize * getNumBytes(collective->getResult(index).getType());
    // The report sums over several runs.
    wireBytes.push_back(total / cost.wireBytes *
                        getWireBytes(cost.kind, bytes, cost.groupSize));
  }
  return wireBytes;
}

static bool isGatheredFor(Operation *op, Part pass) {
  auto attr = op->getAttrOfType<PartAttr>(gatheredForAttrName);
  return attr && attr.getValue() == pass;
}

ExplainedCollective shardc::explainCollective(Operation *op) {
  CollectiveEntry entry = *getCollectiveEntry(op);
  ExplainedCollective result;
  result.kind = toString(entry.kind).str();
  result.axes = entry.axes;
  result.groupSize = entry.groupSize;
  result.bytes = entry.bytes;
  result.wireBytes = entry.wireBytes;
  result.runs = entry.runs;
  result.part = stringifyPart(entry.part).str();
  result.cause = entry.cause;
  result.isGatheredAgain =
      isGatheredFor(op, Part::Backward) &&
      llvm::any_of(op->getOperand(0).getUsers(), [](Operation *other) {
        return isGatheredFor(other, Part::Forward);
      });
  FailureOr<MeshOp> meshOp = getMesh(op->getParentOfType<ModuleOp>());
  if (succeeded(meshOp)) {
    MeshAxes mesh = getMeshAxes(*meshOp);
    SmallVector<int64_t> wireBytes = getTensorWireBytes(op);
    for (auto [index, moves] :
         llvm::enumerate(getMoves(op->getLoc(), op->getNumOperands()))) {
      // The outermost of nested reductions has the user of the sum.
      MovedTensor tensor = readMove(moves.back(), mesh);
      if (moves.size() > 1) {
        tensor.name = moves.front().getTensor().str();
        tensor.move = moves.front().getId();
        tensor.from = toString(getLayout(moves.front().getFrom(), mesh), mesh);
        ChainEnd inner = readEnd(moves.front().getProducer());
        inner.origins.insert(inner.origins.end(),
                             tensor.producer.origins.begin(),
                             tensor.producer.origins.end());
        tensor.producer = std::move(inner);
      }
      if (auto transfer = dyn_cast<TransferOp>(op)) {
        tensor.producer.stage = transfer.getSource();
        tensor.consumer.stage = transfer.getTarget();
      }
      tensor.wireBytes = wireBytes[index];
      result.tensors.push_back(std::move(tensor));
    }
  }
  llvm::stable_sort(result.tensors,
                    [](const MovedTensor &lhs, const MovedTensor &rhs) {
                      return lhs.wireBytes > rhs.wireBytes;
                    });
  result.guilty = getSourceText(getGuiltyLocation(op));
  return result;
}

/// The first annotation among the origins; null if there is none.
static LocationAttr findAnnotation(MoveEndAttr end) {
  for (auto origin : end.getOrigins().getAsRange<OriginAttr>())
    if (origin.getAt())
      return origin.getAt();
  return {};
}

Location shardc::getGuiltyLocation(Operation *collective) {
  // The last op of a stage.
  if (isa<TransferOp>(collective))
    return collective->getLoc();
  auto moves = getMoves(collective->getLoc(), collective->getNumOperands());
  if (moves.empty())
    return collective->getLoc();
  // Of the largest tensor.
  unsigned largest = 0;
  for (unsigned index = 1; index < moves.size(); ++index)
    if (getNumBytes(collective->getOperand(index).getType()) >
        getNumBytes(collective->getOperand(largest).getType()))
      largest = index;
  MoveAttr move = moves[largest].front();
  if (move.getConsumer().getOp() == "sharding_constraint")
    return move.getConsumer().getAt();
  for (MoveEndAttr end : {move.getProducer(), move.getConsumer()})
    if (LocationAttr at = findAnnotation(end))
      return at;
  return move.getConsumer().getAt();
}

/// The bytes of the parameters and states among the arguments.
static int64_t getStateBytes(func::FuncOp function) {
  int64_t bytes = 0;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (isa_and_nonnull<ParameterAttr, StateAttr>(
            function.getArgAttr(index, roleAttrName)))
      bytes += getNumBytes(function.getArgument(index).getType());
  return bytes;
}

ProgramCost shardc::getProgramCost(func::FuncOp function,
                                   const Machine &machine) {
  CommunicationReport report = getCommunicationReport(function);
  TimeEstimate time = estimateTime(function, machine);
  ProgramCost cost{report.wireBytesPerDevice, report.matmulFlopsPerDevice,
                   getStateBytes(function), time.getSeconds(),
                   time.inputSeconds};
  if (ArrayRef<int64_t> byRank = report.wireBytesByRank; !byRank.empty())
    cost.sumOfWireBytes =
        std::accumulate(byRank.begin(), byRank.end(), int64_t(0));
  return cost;
}

FailureOr<Explanation> shardc::explain(ModuleOp module,
                                       const Machine &machine) {
  FailureOr<MeshOp> mesh = getMesh(module);
  if (failed(mesh))
    return failure();
  Explanation explanation;
  explanation.machine = machine.name;
  for (auto axis : mesh->getAxes().getAsRange<MeshAxisAttr>())
    explanation.mesh += (explanation.mesh.empty() ? "" : ", ") +
                        axis.getName().str() + "=" +
                        std::to_string(axis.getSize());
  for (func::FuncOp function : getExplainedPrograms(module)) {
    ExplainedProgram program;
    program.name = function.getName().str();
    program.cost = getProgramCost(function, machine);
    function.walk([&](Operation *op) {
      if (!getCollectiveCost(op))
        return;
      program.collectives.push_back(explainCollective(op));
      program.collectives.back().seconds =
          program.collectives.back().runs * getCollectiveSeconds(machine, op);
    });
    explanation.programs.push_back(std::move(program));
  }
  return explanation;
}

void shardc::setPipelineCosts(Explanation &explanation, ModuleOp planned,
                              const Machine &machine) {
  for (ExplainedProgram &program : explanation.programs) {
    SmallVector<func::FuncOp> ranks = getRankPrograms(planned, program.name);
    if (ranks.empty())
      continue;
    ProgramCost &cost = program.cost;
    cost.seconds = estimateSeconds(ranks, machine);
    cost.inputSeconds = 0;
    cost.wireBytes = cost.matmulFlops = cost.stateBytes = 0;
    cost.peakBytes = cost.sumOfWireBytes = 0;
    for (func::FuncOp rank : ranks) {
      // Ops without a stage are in the programs that need them alone, and some
      // are repeated.
      CommunicationReport report = getCommunicationReport(rank);
      cost.wireBytes = std::max(cost.wireBytes, report.wireBytesPerDevice);
      *cost.sumOfWireBytes += report.wireBytesPerDevice;
      cost.matmulFlops =
          std::max(cost.matmulFlops, report.matmulFlopsPerDevice);
      cost.stateBytes = std::max(cost.stateBytes, getStateBytes(rank));
      cost.inputSeconds =
          std::max(cost.inputSeconds, getInputSeconds(machine, rank));
      cost.peakBytes = std::max(
          *cost.peakBytes,
          rank->getAttrOfType<IntegerAttr>(peakBytesAttrName).getInt());
    }
  }
}
