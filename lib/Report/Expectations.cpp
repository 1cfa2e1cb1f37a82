//===- Expectations.cpp - Checks of contracts -----------------------------===//

#include "shardc/Report/Expectations.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Expect.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Report/Explain.h"
#include "shardc/Report/MemoryReport.h"
#include "shardc/Sharding/Layout.h"

using namespace mlir;
using namespace shardc;

namespace {

/// A contract and its location.
struct Contract {
  Attribute attribute;
  Location at;
  func::FuncOp program;
  /// The value that it limits; null for the whole program.
  SourceAttr value;
};

/// A collective or GEMM that breaks a contract.
struct Offender {
  Operation *op;
  int64_t wireBytes;
};

} // namespace

/// The contracts on the module and its functions, for each program.
static SmallVector<Contract> getProgramContracts(ModuleOp module) {
  SmallVector<Contract> contracts;
  auto add = [&](Operation *op, func::FuncOp program) {
    if (auto list = op->getAttrOfType<ArrayAttr>(expectAttrName))
      for (Attribute attribute : list)
        contracts.push_back({attribute, op->getLoc(), program, SourceAttr()});
  };
  for (func::FuncOp program : getExplainedPrograms(module)) {
    add(module, program);
    add(program, program);
  }
  return contracts;
}

/// Adds the contracts that `source`, at `at`, has on its value, once.
static void addValueContracts(SmallVectorImpl<Contract> &contracts,
                              SourceAttr source, Location at,
                              func::FuncOp program) {
  if (!source || !source.getExpect())
    return;
  for (const Contract &known : contracts)
    if (known.value == source && known.at == at && known.program == program)
      return;
  for (Attribute attribute : source.getExpect())
    contracts.push_back({attribute, at, program, source});
}

static bool isInRegion(MoveAttr move, StringAttr region) {
  for (MoveEndAttr end : {move.getProducer(), move.getConsumer()})
    if (SourceAttr source = getSource(end.getAt());
        source && source.getRegion() == region)
      return true;
  return false;
}

/// Whether `move` moves the forward value of the contract.
static bool isOfValue(MoveAttr move, const Contract &contract) {
  MoveEndAttr producer = move.getProducer();
  return getSource(producer.getAt()) == contract.value &&
         Location(producer.getAt()) == contract.at &&
         (!producer.getPart() ||
          producer.getPart().getValue() == Part::Forward);
}

/// The part of collective `op` that the contract counts; nullopt if none.
static std::optional<Offender> getOffender(Operation *op,
                                           const CollectiveFilter &filter,
                                           const Contract &contract) {
  std::optional<CollectiveEntry> entry = getCollectiveEntry(op);
  if (!entry || (filter.kind && *filter.kind != entry->kind) ||
      (filter.part && *filter.part != entry->part) ||
      (filter.axis && !llvm::is_contained(entry->axes, filter.axis.getValue())))
    return std::nullopt;
  if (!filter.region && !contract.value)
    return Offender{op, entry->wireBytes};
  Offender offender{op, 0};
  bool isCounted = false;
  auto moves = getMoves(op->getLoc(), op->getNumOperands());
  SmallVector<int64_t> wireBytes = getTensorWireBytes(op);
  for (unsigned index = 0; index < moves.size(); ++index)
    if (llvm::any_of(moves[index], [&](MoveAttr move) {
          return (!filter.region || isInRegion(move, filter.region)) &&
                 (!contract.value || isOfValue(move, contract));
        })) {
      isCounted = true;
      offender.wireBytes += wireBytes[index];
    }
  if (!isCounted)
    return std::nullopt;
  return offender;
}

using ExplainFn = function_ref<CollectiveNote(Operation *)>;

/// One note per offender.
static void addNotes(InFlightDiagnostic &error, ArrayRef<Offender> offenders,
                     ExplainFn explain) {
  for (const Offender &offender : offenders) {
    CollectiveNote note = explain(offender.op);
    error.attachNote(note.at) << note.text;
  }
}

static LogicalResult check(const Contract &contract, ExplainFn explain) {
  std::optional<CollectiveFilter> filter = getFilter(contract.attribute);
  if (!filter)
    return success();
  SmallVector<Offender> offenders;
  int64_t bytes = 0;
  func::FuncOp program = contract.program;
  program.walk([&](Operation *op) {
    if (std::optional<Offender> found = getOffender(op, *filter, contract)) {
      bytes += found->wireBytes;
      offenders.push_back(*found);
    }
  });
  auto limit = dyn_cast<MaxBytesAttr>(contract.attribute);
  int64_t expected =
      limit ? limit.getLimit()
            : cast<MaxCollectivesAttr>(contract.attribute).getLimit();
  int64_t found = limit ? bytes : static_cast<int64_t>(offenders.size());
  if (found <= expected)
    return success();
  InFlightDiagnostic error = emitError(contract.at);
  error << "contract broken: @" << program.getName() << ": found " << found
        << ", expected at most " << expected << ' '
        << filter->toString(limit ? "bytes on the wire" : "collectives");
  if (contract.value)
    error << " for this value";
  auto explainChain = [](Operation *op) {
    return CollectiveNote{getGuiltyLocation(op),
                          getNoteText(explainCollective(op), {})};
  };
  addNotes(error, offenders, explain ? explain : ExplainFn(explainChain));
  if (!explain)
    error.attachNote(contract.at) << "shardc-compile --ignore-expect --explain "
                                     "says what would remove them";
  return failure();
}

LogicalResult shardc::checkExpectedCollectives(ModuleOp module,
                                               ExplainFn explain) {
  SmallVector<Contract> contracts = getProgramContracts(module);
  for (func::FuncOp program : getExplainedPrograms(module))
    program.walk([&](Operation *op) {
      if (getCollectiveCost(op))
        for (const auto &moves : getMoves(op->getLoc(), op->getNumOperands()))
          for (MoveAttr move : moves) {
            Location at = move.getProducer().getAt();
            addValueContracts(contracts, getSource(at), at, program);
          }
    });
  // Programs have much in common: a contract is reported for the first that
  // breaks it.
  llvm::DenseSet<std::pair<Attribute, Attribute>> broken;
  for (const Contract &contract : contracts)
    if (!broken.contains({contract.attribute, LocationAttr(contract.at)}) &&
        failed(check(contract, explain)))
      broken.insert({contract.attribute, LocationAttr(contract.at)});
  return success(broken.empty());
}

/// Axes of more than one device that shard no factor of `op`.
static AxisSet getIdleAxes(Operation *op, const MeshAxes &mesh) {
  StrategyAttr strategy = getStrategyAttr(op);
  if (!strategy)
    return 0;
  AxisSet idle = 0;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    if (mesh.getSize(axis) > 1)
      idle |= axisBit(axis);
  for (DimShardingAttr factor : strategy.getFactors())
    for (StringAttr name : factor.getAxes())
      if (int axis = mesh.find(name.getValue()); axis >= 0)
        idle &= ~axisBit(axis);
  return idle;
}

LogicalResult shardc::checkExpectedFlops(ModuleOp module) {
  FailureOr<MeshOp> meshOp = getMesh(module);
  if (failed(meshOp))
    return failure();
  MeshAxes mesh = getMeshAxes(*meshOp);
  SmallVector<Contract> contracts = getProgramContracts(module);
  for (func::FuncOp program : getExplainedPrograms(module))
    program.walk([&](DotGeneralOp dot) {
      addValueContracts(contracts, getSource(dot.getLoc()), dot.getLoc(),
                        program);
    });
  llvm::DenseSet<Attribute> broken;
  for (const Contract &contract : contracts) {
    if (!isa<NoRedundantFlopsAttr>(contract.attribute) ||
        broken.contains(LocationAttr(contract.at)))
      continue;
    SmallVector<std::pair<DotGeneralOp, AxisSet>> redundant;
    int64_t global = 0, done = 0;
    func::FuncOp program = contract.program;
    program.walk([&](DotGeneralOp dot) {
      if (contract.value && dot.getLoc() != contract.at)
        return;
      AxisSet idle = getIdleAxes(dot, mesh);
      int64_t flops = getNumRuns(dot) * getMatmulFlops(dot);
      global += flops;
      done += flops * mesh.getNumShards(idle);
      if (idle)
        redundant.push_back({dot, idle});
    });
    if (redundant.empty())
      continue;
    broken.insert(LocationAttr(contract.at));
    InFlightDiagnostic error = emitError(contract.at);
    error << "contract broken: @" << program.getName() << ": found " << done
          << ", expected " << global
          << " FLOPs of GEMMs on all devices together";
    if (contract.value)
      error << " for this value";
    for (auto [dot, idle] : redundant) {
      auto part = dot->getAttrOfType<PartAttr>(partAttrName);
      error.attachNote(dot.getLoc())
          << "this GEMM "
          << (part && part.getValue() == Part::Backward ? "(of its gradient) "
                                                        : "")
          << "is computed " << mesh.getNumShards(idle)
          << " times: " << mesh.toString(mesh.getList(idle))
          << " shards none of its factors";
    }
  }
  return success(broken.empty());
}

LogicalResult shardc::checkExpectedMemory(ModuleOp module) {
  auto arena = module->getAttrOfType<IntegerAttr>(arenaBytesAttrName);
  auto contracts = module->getAttrOfType<ArrayAttr>(expectAttrName);
  if (!arena || !contracts)
    return success();
  LogicalResult result = success();
  for (Attribute contract : contracts) {
    auto limit = dyn_cast<MaxMemoryAttr>(contract);
    if (!limit || arena.getInt() <= limit.getLimit())
      continue;
    result = failure();
    InFlightDiagnostic error = module.emitError()
                               << "contract broken: found " << arena.getInt()
                               << ", expected at most " << limit.getLimit()
                               << " bytes of memory per device";
    attachLargest(error, MemoryReport(module));
  }
  return result;
}
