//===- Propagate.cpp - Decide how every op is sharded ---------------------===//
//
// Writes what a planner decides into the IR: `shardc.assignment` and
// `shardc.origin` on ops, closed `shardc.sharding` on arguments and results.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/CheapestPlan.h"
#include "shardc/Analysis/CommunicationReport.h"
#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/Analysis/PartialSums.h"
#include "shardc/Analysis/Propagation.h"
#include "shardc/Analysis/TimeEstimate.h"
#include "shardc/Dialect/Shardc/Transforms/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_PROPAGATEPASS
#include "shardc/Dialect/Shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct Decisions : PlanDecisions {
  /// Per op where its axes came from.
  std::vector<SmallVector<AxisUse>> origins;
};

/// The annotations flow; see Propagation.
Decisions follow(const ShardingGraph &graph) {
  Propagation propagation(graph);
  propagation.run();
  Decisions decisions;
  std::vector<FactorAxes> factors;
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    factors.push_back(propagation.getFactors(op));
    decisions.origins.push_back(propagation.getOrigins(op));
  }
  for (size_t value = 0; value < graph.values.size(); ++value)
    decisions.layouts.push_back(propagation.getLayout(value));
  std::vector<PartialAxes> partial =
      findPartialSums(graph, factors, decisions.layouts);
  for (auto [axes, sums] : llvm::zip_equal(factors, partial)) {
    // What an op works on as partial sums does not shard it.
    for (AxisList &list : axes)
      llvm::erase_if(list, [&, all = sums.all()](int axis) {
        return !isGap(axis) && (all & axisBit(axis));
      });
    decisions.assignments.push_back({axes, sums});
  }
  return decisions;
}

/// The least cost; see CheapestPlan.
class CheapestPlanner {
public:
  CheapestPlanner(ModuleGraph &module, const CollectivePrices &prices,
                  int64_t maxAssignments, int64_t maxBranchOptions)
      : module(module), graph(module.graph), prices(prices),
        maxAssignments(maxAssignments),
        maxBranchOptions(maxBranchOptions > 0 ? maxBranchOptions
                                              : defaultBranchOptions) {}

  FailureOr<Decisions> run() {
    int numAxes = 0;
    for (int axis = 0; axis < graph.mesh.getNumAxes(); ++axis)
      numAxes += graph.mesh.getSize(axis) > 1;
    if (numAxes > maxSearchedAxes) {
      module.mesh.emitOpError("has ")
          << numAxes << " axes of more than one device; partition=cheapest "
          << "searches meshes of at most " << maxSearchedAxes;
      return failure();
    }
    decisions.origins.resize(graph.ops.size());
    for (const GraphOp &op : graph.ops)
      decisions.assignments.emplace_back().factors.resize(
          op.rule.factors.size());
    for (ModuleGraph::Function &function : module.functions)
      if (failed(search(function)))
        return failure();
    decisions.layouts = getLayoutsAtRest(graph, atRest);
    return std::move(decisions);
  }

private:
  LogicalResult search(ModuleGraph::Function &function) {
    func::FuncOp op = function.op;
    SearchProblem problem(graph, function.firstOp, function.endOp, prices,
                          atRest);
    if (maxAssignments > 0 && problem.getNumOptions() > maxAssignments)
      return op.emitOpError("has ") << problem.getNumOptions()
                                    << " ways to shard single ops, more than "
                                    << maxAssignments << " (max-assignments)";
    CheapestPlan plan = findCheapestPlan(problem, prices, maxBranchOptions,
                                         maxAssignments > 0 ? maxAssignments
                                                            : defaultSearchWork,
                                         /*becomesNarrow=*/maxAssignments == 0);
    if (plan.options.empty()) {
      if (plan.lowerBound == unreachable)
        return op.emitOpError("cannot be partitioned: no plan keeps all of its "
                              "annotations");
      return op.emitOpError("is too large for an exact search, which found no "
                            "plan; use --partition=follow");
    }
    if (graph.memoryPrice == 0 && !PlanCost{getObjective().str(), plan.cost,
                                            plan.lowerBound, std::nullopt}
                                       .isProved())
      op.emitWarning("the search for the cheapest plan was cut off: ")
          << getCostText(getObjective(), plan.cost)
          << " are not proved to be the least, which is at least "
          << getCostText(getObjective(), plan.lowerBound);
    problem.apply(plan.options, decisions.assignments, atRest);
    writeCost(op, plan);
    return success();
  }

  /// What no plan undercuts, as far as is known: prices of memory say nothing
  /// about plans that need not pay them.
  double getLeast(const CheapestPlan &plan) const {
    if (graph.memoryPrice > 0)
      return 0;
    return std::min(plan.lowerBound, plan.price.getCost());
  }

  StringRef getObjective() const {
    return prices.hasStarts() ? "time" : "bytes";
  }

  void writeCost(func::FuncOp op, const CheapestPlan &plan) {
    Builder builder(op.getContext());
    op->setAttr(
        "shardc.cost",
        CostAttr::get(op.getContext(), builder.getStringAttr(getObjective()),
                      builder.getF64FloatAttr(plan.price.getCost()),
                      builder.getF64FloatAttr(getLeast(plan)), FloatAttr()));
    if (!prices.hasStarts())
      return;
    SmallVector<Attribute> starts;
    for (const CollectiveStart &start : plan.price.starts)
      starts.push_back(
          StartAttr::get(op.getContext(), start.part, start.kind.first,
                         getAxisNames(graph.mesh.getList(start.kind.second),
                                      graph.mesh, op.getContext())));
    op->setAttr("shardc.starts", builder.getArrayAttr(starts));
  }

  ModuleGraph &module;
  const ShardingGraph &graph;
  const CollectivePrices &prices;
  int64_t maxAssignments, maxBranchOptions;
  Decisions decisions;
  SearchProblem::AtRest atRest;
};

/// How decisions are written down.
class Writer {
public:
  Writer(ModuleGraph &module, Decisions decisions)
      : module(module), graph(module.graph), decisions(std::move(decisions)),
        context(module.mesh.getContext()),
        meshName(FlatSymbolRefAttr::get(module.mesh.getSymNameAttr())) {}

  LogicalResult run() {
    for (size_t op = 0; op < graph.ops.size(); ++op)
      if (auto loop = dyn_cast_or_null<AccumulateOp>(module.operations[op]);
          loop && failed(checkRows(loop, graph.ops[op])))
        return failure();
    for (size_t op = 0; op < graph.ops.size(); ++op)
      if (module.operations[op])
        writeOp(op);
    for (ModuleGraph::Function &function : module.functions)
      writeFunction(function);
    remarkOnUnusedAxes();
    for (ModuleGraph::Function &function : module.functions)
      remarkOnParameters(function);
    return success();
  }

private:
  /// Every device must find a whole number of rows of its own for each run.
  LogicalResult checkRows(AccumulateOp loop, const GraphOp &node) {
    int64_t runs = loop.getCount();
    for (auto [value, operand] :
         llvm::zip_equal(node.operands, loop.getOperands())) {
      const AxisList &axes = decisions.layouts[value].dims[0];
      int64_t shards = graph.mesh.getNumShards(axes);
      int64_t rows = graph.values[value].shape[0];
      if (rows % (runs * shards) != 0)
        return emitError(operand.getLoc())
               << graph.values[value].name << " has " << rows << " rows over "
               << graph.mesh.toString(axes) << ", which " << runs
               << " microbatches do not divide evenly: expected a batch size "
                  "that is a multiple of "
               << runs << " microbatches x " << shards
               << " shards = " << runs * shards;
    }
    return success();
  }

  void writeOp(int index) {
    Operation *op = module.operations[index];
    const Assignment &assignment = decisions.assignments[index];
    SmallVector<DimShardingAttr> dims;
    for (const AxisList &axes : assignment.factors) {
      for (int axis : axes)
        usedAxes |= isGap(axis) ? 0 : axisBit(axis);
      dims.push_back(
          DimShardingAttr::get(context, getAxisNames(axes, graph.mesh, context),
                               /*isClosed=*/true, std::nullopt));
    }
    auto getNames = [&](AxisSet axes) {
      return getAxisNames(graph.mesh.getList(axes), graph.mesh, context);
    };
    op->setAttr("shardc.assignment",
                AssignmentAttr::get(context, dims,
                                    getNames(assignment.partial.operands),
                                    getNames(assignment.partial.rhs)));
    SmallVector<Attribute> origins;
    for (const AxisUse &use : decisions.origins[index]) {
      const std::string &source = graph.values[use.source].name;
      origins.push_back(StringAttr::get(context, graph.mesh.getName(use.axis) +
                                                     ": " + source));
    }
    if (!origins.empty())
      op->setAttr("shardc.origin", ArrayAttr::get(context, origins));
  }

  /// The closed sharding of a value at rest; axes of size 1 in its annotation
  /// stay where the user put them.
  ShardingAttr getSharding(int value, ShardingAttr annotation) {
    const Layout &layout = decisions.layouts[value];
    SmallVector<DimShardingAttr> dims;
    Layout annotated =
        annotation ? getLayout(annotation, graph.mesh) : Layout();
    for (auto [index, axes] : llvm::enumerate(layout.dims)) {
      for (int axis : axes)
        usedAxes |= axisBit(axis);
      SmallVector<StringAttr> names = getAxisNames(axes, graph.mesh, context);
      if (annotation && annotated.dims[index] == axes)
        names = SmallVector<StringAttr>(annotation.getAxes(index));
      dims.push_back(DimShardingAttr::get(context, names, /*isClosed=*/true,
                                          std::nullopt));
    }
    return ShardingAttr::get(context, meshName, dims, {}, {},
                             annotation ? annotation.getUneven()
                                        : std::nullopt);
  }

  void writeFunction(ModuleGraph::Function &function) {
    func::FuncOp op = function.op;
    llvm::DenseMap<int, ShardingAttr> atRest;
    for (auto [index, value] : llvm::enumerate(function.arguments)) {
      auto annotation =
          op.getArgAttrOfType<ShardingAttr>(index, "shardc.sharding");
      ShardingAttr sharding = getSharding(value, annotation);
      atRest.try_emplace(value, sharding);
      op.setArgAttr(index, "shardc.sharding", sharding);
    }
    for (auto [index, value] : llvm::enumerate(function.results)) {
      auto annotation =
          op.getResultAttrOfType<ShardingAttr>(index, "shardc.sharding");
      ShardingAttr sharding = atRest.lookup(value);
      op.setResultAttr(index, "shardc.sharding",
                       sharding ? sharding : getSharding(value, annotation));
    }
  }

  void remarkOnUnusedAxes() {
    for (int axis = 0; axis < graph.mesh.getNumAxes(); ++axis)
      if (graph.mesh.getSize(axis) > 1 && !(usedAxes & axisBit(axis)))
        module.mesh.emitRemark("axis \"")
            << graph.mesh.getName(axis)
            << "\" shards nothing: all devices along it do the same work";
  }

  /// Parameters that rest replicated over an axis that cuts their use in the
  /// forward or backward pass.
  void remarkOnParameters(ModuleGraph::Function &function) {
    llvm::DenseMap<int, AxisSet> cut;
    for (size_t index = 0; index < graph.ops.size(); ++index) {
      Operation *op = module.operations[index];
      if (!op || op->getParentOfType<func::FuncOp>() != function.op)
        continue;
      auto part = op->getAttrOfType<PartAttr>("shardc.part");
      if (part && part.getValue() == Part::Update)
        continue;
      const GraphOp &node = graph.ops[index];
      for (auto [value, dims] :
           llvm::zip_equal(node.operands, node.rule.operands))
        cut[value] |= getTensorLayout(node.rule, dims,
                                      decisions.assignments[index].factors)
                          .getAxes() &
                      ~decisions.layouts[value].getAxes();
    }
    for (auto [index, value] : llvm::enumerate(function.arguments)) {
      AxisSet axes = cut.lookup(value);
      if (axes == 0 || hasRemark[value] ||
          !isa_and_nonnull<ParameterAttr>(
              function.op.getArgAttr(index, "shardc.role")))
        continue;
      hasRemark[value] = true;
      emitRemark(function.op.getArgument(index).getLoc())
          << graph.values[value].name << " is replicated over "
          << graph.mesh.toString(graph.mesh.getList(axes))
          << " at rest but used sharded over it: each device computes with its "
             "slice, and the new value is gathered";
    }
  }

  ModuleGraph &module;
  const ShardingGraph &graph;
  Decisions decisions;
  MLIRContext *context;
  FlatSymbolRefAttr meshName;
  AxisSet usedAxes = 0;
  llvm::DenseMap<int, bool> hasRemark;
};

struct PropagatePass : shardc::impl::PropagatePassBase<PropagatePass> {
  using Base = shardc::impl::PropagatePassBase<PropagatePass>;
  using Base::Base;

  /// Prices moves and ops by time, and says so in the module.
  FailureOr<CollectivePrices> priceByTime(ModuleGraph &module) {
    llvm::Expected<Machine> loaded = loadMachineFor(module.mesh, machine);
    if (!loaded) {
      getOperation().emitError("machine: ")
          << llvm::toString(loaded.takeError());
      return failure();
    }
    setSeconds(module, *loaded);
    const MeshAxes &mesh = module.graph.mesh;
    CollectivePrices prices(mesh, *loaded);
    Builder builder(&getContext());
    NamedAttrList rates;
    for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
      rates.set(mesh.getName(axis),
                builder.getF64FloatAttr(prices.getSecondsPerByte()[axis]));
    getOperation()->setAttr("shardc.seconds_per_byte",
                            rates.getDictionary(&getContext()));
    return prices;
  }

  FailureOr<Decisions> decide(ModuleGraph &module) {
    if (partition == "follow")
      return follow(module.graph);
    if (partition != "cheapest") {
      getOperation().emitError("unknown partition '")
          << partition << "', expected follow or cheapest";
      return failure();
    }
    if (objective != "time" && objective != "bytes") {
      getOperation().emitError("unknown objective '")
          << objective << "', expected time or bytes";
      return failure();
    }
    FailureOr<CollectivePrices> prices = CollectivePrices();
    if (objective == "time")
      prices = priceByTime(module);
    if (failed(prices))
      return failure();
    module.graph.memoryPrice = memoryPrice;
    return CheapestPlanner(module, *prices, maxAssignments, maxBranchOptions)
        .run();
  }

  void runOnOperation() override {
    FailureOr<ModuleGraph> module = ModuleGraph::build(getOperation());
    if (failed(module))
      return signalPassFailure();
    FailureOr<Decisions> decisions = decide(*module);
    if (failed(decisions) ||
        failed(Writer(*module, std::move(*decisions)).run()))
      return signalPassFailure();
    if (partition != "follow")
      getOperation()->setAttr("shardc.partition",
                              StringAttr::get(&getContext(), partition));
  }
};

} // namespace
