//===- WriteDecisions.cpp - Decisions of a planner in the IR --------------===//

#include "WriteDecisions.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-propagate"

using namespace mlir;
using namespace shardc;

namespace {

class Writer {
public:
  Writer(ModuleGraph &module, const Decisions &decisions)
      : module(module), graph(module.graph), decisions(decisions),
        context(module.mesh.getContext()),
        meshName(FlatSymbolRefAttr::get(module.mesh.getSymNameAttr())) {}

  LogicalResult run() {
    for (size_t op = 0; op < graph.ops.size(); ++op)
      if (auto loop = dyn_cast_or_null<AccumulateOp>(module.operations[op])) {
        if (failed(checkRows(loop, graph.ops[op])))
          return failure();
        axesOfRows[loop] = decisions.strategies[op].factors[0];
      }
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
  /// Each of several microbatches must have a whole number of rows of every
  /// device.
  LogicalResult checkRows(AccumulateOp loop, const GraphOp &node) {
    int64_t runs = loop.getCount();
    if (runs == 1)
      return success();
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

  /// The strategy of op number `index`: as decided, but for ops that put rows
  /// back where a loop took them from, and so have them sharded like the loop.
  ShardingStrategy getStrategy(int index) {
    ShardingStrategy strategy = decisions.strategies[index];
    Operation *op = module.operations[index];
    if (!isa<ScatterRowsOp>(op))
      return strategy;
    const AxisList &rows = axesOfRows[op->getParentOp()];
    for (AxisList &axes : strategy.factors)
      llvm::erase_if(axes,
                     [&](int axis) { return llvm::is_contained(rows, axis); });
    strategy.factors[0] = rows;
    return strategy;
  }

  void writeOp(int index) {
    Operation *op = module.operations[index];
    ShardingStrategy strategy = getStrategy(index);
    SmallVector<DimShardingAttr> dims;
    for (const AxisList &axes : strategy.factors) {
      for (int axis : axes)
        usedAxes |= isGap(axis) ? 0 : axisBit(axis);
      dims.push_back(
          DimShardingAttr::get(context, getAxisNames(axes, graph.mesh, context),
                               /*isClosed=*/true, std::nullopt));
    }
    auto getNames = [&](AxisSet axes) {
      return getAxisNames(graph.mesh.getList(axes), graph.mesh, context);
    };
    setStrategyAttr(op, StrategyAttr::get(context, dims,
                                          getNames(strategy.partial.operands),
                                          getNames(strategy.partial.rhs)));
    SmallVector<Attribute> origins;
    for (const AxisUse &use : decisions.origins[index]) {
      const std::string &source = graph.values[use.source].name;
      origins.push_back(StringAttr::get(context, graph.mesh.getName(use.axis) +
                                                     ": " + source));
    }
    if (!origins.empty())
      op->setAttr(originAttrName, ArrayAttr::get(context, origins));
    LLVM_DEBUG(llvm::dbgs()
               << describeOp(op) << ": " << getStrategyAttr(op) << " from "
               << ArrayAttr::get(context, origins) << '\n');
  }

  /// The closed sharding of a stored value. Axes of size 1 in its annotation
  /// stay in place.
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
    llvm::DenseMap<int, ShardingAttr> stored;
    setArgAttrs(op, shardingAttrName, [&](unsigned index) {
      int value = function.arguments[index];
      ShardingAttr sharding = getSharding(
          value, op.getArgAttrOfType<ShardingAttr>(index, shardingAttrName));
      stored.try_emplace(value, sharding);
      return sharding;
    });
    setResultAttrs(op, shardingAttrName, [&](unsigned index) {
      int value = function.results[index];
      ShardingAttr sharding = stored.lookup(value);
      return sharding ? sharding
                      : getSharding(value, op.getResultAttrOfType<ShardingAttr>(
                                               index, shardingAttrName));
    });
  }

  void remarkOnUnusedAxes() {
    for (int axis = 0; axis < graph.mesh.getNumAxes(); ++axis)
      if (graph.mesh.getSize(axis) > 1 && !(usedAxes & axisBit(axis)))
        module.mesh.emitRemark("axis \"")
            << graph.mesh.getName(axis)
            << "\" shards nothing: all devices along it do the same work";
  }

  /// Remarks on parameters stored replicated over an axis that shards their use
  /// in the forward or backward pass.
  void remarkOnParameters(ModuleGraph::Function &function) {
    llvm::DenseMap<int, AxisSet> cut;
    for (size_t index = 0; index < graph.ops.size(); ++index) {
      Operation *op = module.operations[index];
      if (!op || op->getParentOfType<func::FuncOp>() != function.op)
        continue;
      auto part = op->getAttrOfType<PartAttr>(partAttrName);
      if (part && part.getValue() == Part::Update)
        continue;
      const GraphOp &node = graph.ops[index];
      for (auto [value, dims] :
           llvm::zip_equal(node.operands, node.rule.operands))
        cut[value] |= getTensorLayout(node.rule, dims,
                                      decisions.strategies[index].factors)
                          .getAxes() &
                      ~decisions.layouts[value].getAxes();
    }
    for (auto [index, value] : llvm::enumerate(function.arguments)) {
      AxisSet axes = cut.lookup(value);
      if (axes == 0 || hasRemark[value] ||
          !isa_and_nonnull<ParameterAttr>(
              function.op.getArgAttr(index, roleAttrName)))
        continue;
      hasRemark[value] = true;
      emitRemark(function.op.getArgument(index).getLoc())
          << graph.values[value].name << " is stored replicated over "
          << graph.mesh.toString(graph.mesh.getList(axes))
          << " but used sharded over it: each device computes with its slice, "
             "and the new value is gathered";
    }
  }

  /// By loop over microbatches.
  llvm::DenseMap<Operation *, AxisList> axesOfRows;
  ModuleGraph &module;
  const ShardingGraph &graph;
  const Decisions &decisions;
  MLIRContext *context;
  FlatSymbolRefAttr meshName;
  AxisSet usedAxes = 0;
  llvm::DenseMap<int, bool> hasRemark;
};

} // namespace

LogicalResult shardc::writeDecisions(ModuleGraph &module,
                                     const Decisions &decisions) {
  return Writer(module, decisions).run();
}
