//===- Partition.cpp - SPMD partitioning ----------------------------------===//
//
// Rewrites the global program into that of one device (GSPMD, arXiv 2105.04663,
// section 4). Types become local and reshards become collectives. Ops that need
// global indices get the sharding of their result. Padding is masked before an
// op would sum or maximise over it; it is undefined everywhere else.
//
//===----------------------------------------------------------------------===//

#include "ExpandReshard.h"
#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/MeshSteps.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Analysis/OpLayouts.h"
#include "shardc/CostModel/WireBytes.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/Support/Debug.h"

#include <limits>
#include <map>

#define DEBUG_TYPE "shardc-partition"

namespace shardc {
#define GEN_PASS_DEF_PARTITIONPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// The global tensor of which a local value is a shard.
struct GlobalTensor {
  RankedTensorType type;
  Layout layout;
};

/// Partitions one function.
class Partitioner {
public:
  Partitioner(func::FuncOp function, MeshOp meshOp, ReshardPlanner &planner)
      : function(function), mesh(getMeshAxes(meshOp)), planner(planner),
        meshName(FlatSymbolRefAttr::get(meshOp.getSymNameAttr())),
        builder(function.getContext()) {}

  LogicalResult run() {
    Block &block = function.getBody().front();
    // Reports compare the work of all devices with that of the global program.
    int64_t flops = 0;
    function.walk(
        [&](Operation *op) { flops += getNumRuns(op) * getMatmulFlops(op); });
    function->setAttr(globalMatmulFlopsAttrName,
                      builder.getI64IntegerAttr(flops));
    if (failed(partitionArguments(block)) || failed(partitionBlock(block)))
      return failure();
    return partitionResults(block);
  }

private:
  LogicalResult partitionBlock(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto reshard = dyn_cast<ReshardOp>(op))
        expand(reshard);
      else if (!op.hasTrait<OpTrait::IsTerminator>() &&
               failed(partitionOp(&op)))
        return failure();
    }
    return success();
  }

  RankedTensorType getLocalType(const GlobalTensor &tensor) {
    return tensor.type.clone(
        tensor.layout.getLocalShape(tensor.type.getShape(), mesh));
  }

  LogicalResult partitionArguments(Block &block) {
    for (BlockArgument argument : block.getArguments()) {
      unsigned index = argument.getArgNumber();
      auto sharding =
          function.getArgAttrOfType<ShardingAttr>(index, shardingAttrName);
      if (!sharding)
        return emitError(argument.getLoc(), "argument ")
               << index << " has no `shardc.sharding`";
      GlobalTensor tensor{cast<RankedTensorType>(argument.getType()),
                          getLayout(sharding, mesh)};
      argument.setType(getLocalType(tensor));
      tensors[argument] = tensor;
    }
    setArgAttrs(function, globalShapeAttrName, [&](unsigned index) {
      return builder.getDenseI64ArrayAttr(
          tensors[block.getArgument(index)].type.getShape());
    });
    return success();
  }

  LogicalResult partitionResults(Block &block) {
    Operation *terminator = block.getTerminator();
    for (OpOperand &operand : terminator->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      GlobalTensor tensor = tensors[operand.get()];
      auto sharding =
          function.getResultAttrOfType<ShardingAttr>(index, shardingAttrName);
      if (!sharding || getLayout(sharding, mesh) != tensor.layout)
        return terminator->emitOpError("operand ")
               << index << " is " << toString(tensor.layout, mesh)
               << ", which is not the sharding of the result; "
                  "shardc-insert-reshards must run first";
    }
    setResultAttrs(function, globalShapeAttrName, [&](unsigned index) {
      return builder.getDenseI64ArrayAttr(
          tensors[terminator->getOperand(index)].type.getShape());
    });
    function.setType(builder.getFunctionType(block.getArgumentTypes(),
                                             terminator->getOperandTypes()));
    return success();
  }

  LogicalResult partitionOp(Operation *op) {
    // The sharding rule needs global shapes, which the operands have lost.
    SmallVector<Type> local(op->getOperandTypes());
    for (Value operand : op->getOperands())
      operand.setType(tensors[operand].type);
    FailureOr<OpLayouts> layouts = OpLayouts::get(op, mesh);
    for (auto [operand, type] : llvm::zip_equal(op->getOperands(), local))
      operand.setType(type);
    if (failed(layouts))
      return failure();

    for (auto [index, operand] : llvm::enumerate(op->getOpOperands())) {
      GlobalTensor tensor = tensors[operand.get()];
      const Layout &wanted = layouts->operands[index];
      if (tensor.layout != wanted)
        return op->emitOpError("operand ")
               << index << " is " << toString(tensor.layout, mesh)
               << " but wanted as " << toString(wanted, mesh)
               << "; shardc-insert-reshards must run first";
    }
    // The partition check compares numbered ops with the global program.
    if (op->hasAttr(idAttrName))
      op->setAttr(layoutAttrName,
                  getSharding(layouts->results[0], mesh, meshName));
    setStrategyAttr(op, nullptr);
    op->removeAttr(originAttrName);
    auto loop = dyn_cast<AccumulateOp>(op);
    SmallVector<Value> results(op->getResults());
    if (loop)
      results.assign(loop.getSlices().begin(), loop.getSlices().end());
    else
      maskOperands(op, *layouts);
    for (auto [result, layout] : llvm::zip_equal(results, layouts->results)) {
      GlobalTensor tensor{cast<RankedTensorType>(result.getType()), layout};
      result.setType(getLocalType(tensor));
      tensors[result] = tensor;
    }
    if (loop)
      return partitionBody(loop, isStrided(layouts->results[0].dims[0]));
    if (auto rows = dyn_cast<PermuteRowsOp>(op))
      if (const AxisList &axes = layouts->results[0].dims[rows.getDim()];
          !axes.empty()) {
        sendRows(rows, axes);
        return success();
      }
    if (isInStridedRows && knowsMicrobatch(op))
      return op->emitOpError(
          "needs the rows of its microbatch, of which strided "
          "shards are no block");
    localizeAttributes(op);
    return success();
  }

  /// Replaces an op on rows of which each device over `axes` has one.
  void sendRows(PermuteRowsOp op, const AxisList &axes) {
    SmallVector<Attribute> names;
    for (StringAttr name : getAxisNames(axes, mesh, builder.getContext()))
      names.push_back(name);
    ArrayAttr list = builder.getArrayAttr(names);
    builder.setInsertionPoint(op);
    auto permute = builder.create<CollectivePermuteOp>(
        op.getLoc(), op.getType(), op.getOperand(), meshName, list, list,
        op.getSourcesAttr());
    for (StringRef kept : {idAttrName, layoutAttrName, partAttrName})
      if (Attribute attr = op->getAttr(kept))
        permute->setAttr(kept, attr);
    permute->setAttr(causeAttrName,
                     builder.getStringAttr(describeOp(op) + ": rows over " +
                                           mesh.toString(axes)));
    tensors[permute] = tensors[op];
    op.replaceAllUsesWith(permute.getResult());
    op.erase();
  }

  static bool knowsMicrobatch(Operation *op) {
    if (auto iota = dyn_cast<IotaOp>(op))
      return iota.getMicrobatch().has_value();
    auto random = dyn_cast<RandomUniformOp>(op);
    return random && random.getMicrobatch();
  }

  LogicalResult partitionBody(AccumulateOp loop, bool hasStridedRows) {
    isInStridedRows = hasStridedRows;
    if (failed(partitionBlock(loop.getBody().front())))
      return failure();
    isInStridedRows = false;
    for (auto [result, summand] :
         llvm::zip_equal(loop.getResults(), loop.getYield().getOperands())) {
      GlobalTensor tensor = tensors[summand];
      result.setType(summand.getType());
      tensors[result] = tensor;
    }
    return success();
  }

  /// Masks the padding of every dimension that `op` sums or maximises over.
  void maskOperands(Operation *op, const OpLayouts &layouts) {
    const ShardingRule &rule = layouts.rule;
    SmallVector<bool> isPadded;
    bool isMax = false;
    for (auto [factor, axes] :
         llvm::zip_equal(rule.factors, layouts.strategy.factors)) {
      bool combines =
          factor.kind == FactorKind::Sum || factor.kind == FactorKind::Max;
      isPadded.push_back(combines &&
                         factor.size % mesh.getNumShards(axes) != 0);
      isMax |= isPadded.back() && factor.kind == FactorKind::Max;
    }
    for (auto [operand, dims] :
         llvm::zip_equal(op->getOpOperands(), rule.operands)) {
      SmallVector<int64_t> masked;
      for (auto [index, factors] : llvm::enumerate(dims))
        if (int factor = getShardedFactor(rule, factors);
            factor >= 0 && isPadded[factor])
          masked.push_back(index);
      if (!masked.empty())
        operand.set(mask(operand.get(), masked, isMax, op));
    }
  }

  static double getLowest(Type type) {
    if (isa<FloatType>(type))
      return -std::numeric_limits<double>::infinity();
    return -std::exp2(type.getIntOrFloatBitWidth() - 1);
  }

  /// Returns `value` with its padding in `dims` replaced for `user`: by the
  /// lowest number for a maximum, else by zero. Each mask is built once.
  Value mask(Value value, ArrayRef<int64_t> dims, bool isMax, Operation *user) {
    Value &known = masks[{value.getAsOpaquePointer(), isMax,
                          std::vector<int64_t>(dims.begin(), dims.end())}];
    if (known)
      return known;
    LLVM_DEBUG(llvm::dbgs() << "mask the padding of " << value.getType()
                            << " for " << describeOp(user) << '\n');
    const GlobalTensor tensor = tensors[value];
    double fill = isMax ? getLowest(tensor.type.getElementType()) : 0.0;
    Layout shard = tensor.layout;
    shard.unreduced = 0;
    builder.setInsertionPoint(getUserInBlock(value, user));
    auto op = builder.create<MaskOp>(user->getLoc(), value, dims, APFloat(fill),
                                     getSharding(shard, mesh, meshName),
                                     tensor.type.getShape());
    if (Attribute part = user->getAttr(partAttrName))
      op->setAttr(partAttrName, part);
    tensors[op] = tensor;
    return known = op;
  }

  /// Updates attributes that hold the shape of the result or global indices.
  void localizeAttributes(Operation *op) {
    GlobalTensor tensor = tensors[op->getResult(0)];
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (elements && elements.isSplat())
        constant.setValueAttr(elements.resizeSplat(getLocalType(tensor)));
      return;
    }
    ShardingAttr sharding = getSharding(tensor.layout, mesh, meshName);
    // A microbatch is the next rows of every device.
    auto localize = [&](std::optional<ArrayRef<int64_t>> microbatch) {
      auto loop = op->getParentOfType<AccumulateOp>();
      return microbatch ? builder.getDenseI64ArrayAttr(
                              {microbatch->front(), loop.getRows()})
                        : DenseI64ArrayAttr();
    };
    if (auto iota = dyn_cast<IotaOp>(op)) {
      iota.setShardAttr(sharding);
      iota.setMicrobatchAttr(localize(iota.getMicrobatch()));
    } else if (auto random = dyn_cast<RandomUniformOp>(op)) {
      random.setShardAttr(sharding);
      random.setGlobalShape(tensor.type.getShape());
      random.setMicrobatchAttr(localize(random.getMicrobatch()));
    }
  }

  /// Replaces a reshard by collectives and slices.
  void expand(ReshardOp op) {
    RankedTensorType type = tensors[op.getOperand()].type;
    Value value = expandReshard(op, type, mesh, planner);
    tensors[value] = {type, getLayout(op.getTo(), mesh)};
    op.replaceAllUsesWith(value);
    op.erase();
  }

  func::FuncOp function;
  MeshAxes mesh;
  ReshardPlanner &planner;
  FlatSymbolRefAttr meshName;
  OpBuilder builder;
  llvm::DenseMap<Value, GlobalTensor> tensors;
  /// Whether the current loop cuts strided shards into microbatches.
  bool isInStridedRows = false;
  /// Masked values by (value, whether for a maximum, dimensions). Never
  /// iterated, because the order of pointers is not deterministic.
  std::map<std::tuple<const void *, bool, std::vector<int64_t>>, Value> masks;
};

struct PartitionPass : shardc::impl::PartitionPassBase<PartitionPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Propagate,
                               ModulePhase::Propagate)))
      return signalPassFailure();
    FailureOr<MeshOp> mesh = getMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    MeshAxes axes = getMeshAxes(*mesh);
    auto layouts =
        std::make_shared<LayoutGraphs>(axes, getAnalysis<MeshSteps>().steps);
    markAnalysesPreserved<MeshSteps>();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      ReshardPlanner planner(axes, usesAllAxes(getOperation()),
                             getCostsByPart(function, axes), layouts);
      if (!function.isExternal() &&
          failed(Partitioner(function, *mesh, planner).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
