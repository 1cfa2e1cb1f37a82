//===- PhaseContracts.cpp - Checks of the contracts of phases -------------===//

#include "PhaseContracts.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Transforms/Pipeline/VerifyPipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace shardc;

/// Calls `check` on every op of the module's functions; with `inKernels` also
/// in the bodies of kernels and collective starts.
static LogicalResult checkOps(ModuleOp module, bool inKernels,
                              function_ref<LogicalResult(Operation *)> check) {
  for (auto function : module.getOps<func::FuncOp>()) {
    WalkResult result = function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == function)
        return WalkResult::advance();
      if (failed(check(op)))
        return WalkResult::interrupt();
      return !inKernels && isa<KernelOp, CollectiveStartOp>(op)
                 ? WalkResult::skip()
                 : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

static bool isClosed(ShardingAttr sharding) {
  return sharding && llvm::all_of(sharding.getDims(), [](DimShardingAttr dim) {
           return dim.getIsClosed();
         });
}

static LogicalResult checkProgramsExist(ModuleOp module) {
  for (StringRef name : {"train_step", "evaluate"})
    if (!module.lookupSymbol<func::FuncOp>(name))
      return module.emitError("the module has no function @") << name;
  return success();
}

/// Every op of the loss has a stage, and they follow the forward pass.
static LogicalResult checkLoss(func::FuncOp loss) {
  auto module = loss->getParentOfType<ModuleOp>();
  if (!module->hasAttr(pipelineAttrName))
    return success();
  FailureOr<MeshOp> mesh = getMesh(module);
  if (failed(mesh) || failed(verifyPipeline(loss, *mesh)))
    return failure();
  for (Operation &op : loss.getBody().front().without_terminator())
    if (!op.hasAttr(stageAttrName))
      return op.emitOpError("expected shardc.stage");
  return success();
}

LogicalResult shardc::verifyImported(ModuleOp module) {
  if (!llvm::hasSingleElement(module.getOps<MeshOp>()))
    return module.emitError("expected one shardc.mesh");
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  if (!training)
    return module.emitError("expected shardc.training on the module");
  auto loss = module.lookupSymbol<func::FuncOp>(training.getLoss());
  if (!loss || loss.isExternal())
    return module.emitError("there is no loss function ") << training.getLoss();
  if (failed(checkLoss(loss)))
    return failure();
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (function.getArgAttr(i, logicalAxesAttrName))
        return function.emitError("argument ")
               << i << ": logical axes are not resolved";
  return checkOps(module, /*inKernels=*/true, [](Operation *op) {
    auto constraint = dyn_cast<ShardingConstraintOp>(op);
    if (constraint && constraint.getLogicalAxes())
      return LogicalResult(op->emitOpError("logical axes are not resolved"));
    return success();
  });
}

/// In a module with a pipeline, every value is used on the rank of its stage.
static LogicalResult checkStages(ModuleOp module) {
  if (!module->hasAttr(pipelineAttrName))
    return success();
  FailureOr<std::vector<int>> rankOfStage = getRanksOfStages(module);
  if (failed(rankOfStage))
    return failure();
  return checkOps(module, /*inKernels=*/true, [&](Operation *op) {
    IntegerAttr used = getStageOfUse(op);
    for (Value operand : op->getOperands()) {
      Operation *maker = getComputingOp(operand);
      IntegerAttr made = maker ? getStageOfResults(maker) : IntegerAttr();
      if (!used && made && !isa<AccumulateOp>(op) && !addsOverStages(op) &&
          !op->hasTrait<OpTrait::IsTerminator>())
        return LogicalResult(op->emitOpError("has no stage and uses a value of "
                                             "stage ")
                             << made.getInt());
      if (used && made &&
          (*rankOfStage)[used.getInt()] != (*rankOfStage)[made.getInt()])
        return LogicalResult(op->emitOpError("is on stage ")
                             << used.getInt() << " and uses a value of stage "
                             << made.getInt() << " without a transfer");
    }
    return success();
  });
}

LogicalResult shardc::verifyDifferentiated(ModuleOp module) {
  if (failed(checkProgramsExist(module)) || failed(checkStages(module)))
    return failure();
  return checkOps(module, /*inKernels=*/true, [](Operation *op) {
    if (isa<CompositeOpInterface>(op))
      return LogicalResult(op->emitOpError("a composite is left"));
    if (isa<ShardingRuleOpInterface>(op) &&
        !op->getAttrOfType<PartAttr>(partAttrName))
      return LogicalResult(op->emitOpError("expected shardc.part"));
    return success();
  });
}

LogicalResult shardc::verifyPropagated(ModuleOp module) {
  if (failed(checkStages(module)))
    return failure();
  for (auto function : module.getOps<func::FuncOp>()) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (!isClosed(
              function.getArgAttrOfType<ShardingAttr>(i, shardingAttrName)))
        return function.emitError("argument ")
               << i << " has no closed shardc.sharding";
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (!isClosed(
              function.getResultAttrOfType<ShardingAttr>(i, shardingAttrName)))
        return function.emitError("result ")
               << i << " has no closed shardc.sharding";
  }
  return checkOps(module, /*inKernels=*/true, [](Operation *op) {
    if (isa<ShardingRuleOpInterface>(op) && !getStrategyAttr(op))
      return LogicalResult(op->emitOpError("expected shardc.strategy"));
    return success();
  });
}

/// Every argument is the shard that its sharding makes of its global shape.
static LogicalResult checkArguments(ModuleOp module) {
  if (module.getOps<func::FuncOp>().empty())
    return success();
  FailureOr<MeshOp> mesh = getMesh(module);
  if (failed(mesh))
    return failure();
  MeshAxes axes = getMeshAxes(*mesh);
  for (auto function : module.getOps<func::FuncOp>())
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
      auto global = function.getArgAttrOfType<DenseI64ArrayAttr>(
          index, globalShapeAttrName);
      if (!global)
        return function.emitError("argument ")
               << index << " has no shardc.global_shape";
      auto tensor = dyn_cast<RankedTensorType>(type);
      auto sharding =
          function.getArgAttrOfType<ShardingAttr>(index, shardingAttrName);
      ArrayRef<int64_t> shape = global.asArrayRef();
      bool isOfRank =
          !sharding || int64_t(sharding.getDims().size()) == global.size();
      Layout layout = sharding && isOfRank ? getLayout(sharding, axes)
                                           : Layout(shape.size());
      SmallVector<int64_t> local = layout.getLocalShape(shape, axes);
      if (!tensor || !isOfRank || tensor.getShape() != ArrayRef(local))
        return function.emitError("argument ")
               << index << " is " << type
               << ", which is not the shard of its shardc.global_shape "
               << global;
    }
  return success();
}

/// Whether `value` is a sum over stages before the all_reduce over the
/// pipeline's axis.
static bool isSumOfRank(Value value) {
  Operation *maker = value.getDefiningOp();
  if (auto reduce = dyn_cast_or_null<AllReduceOp>(maker))
    return !isOverPipeline(reduce) && !reduce->hasAttr(stageAttrName) &&
           isSumOfRank(reduce.getOperand(0));
  return maker && addsOverStages(maker);
}

/// Sums over stages are completed before anything else uses them.
static LogicalResult checkSumsOverStages(ModuleOp module) {
  if (!module->hasAttr(pipelineAttrName))
    return success();
  return checkOps(module, /*inKernels=*/false, [](Operation *op) {
    bool mayUse = isa<AllReduceOp>(op) || addsOverStages(op);
    for (Value operand : op->getOperands())
      if (!mayUse && isSumOfRank(operand))
        return LogicalResult(
            op->emitOpError("uses a sum over stages without an all_reduce "
                            "over the axis of the pipeline"));
    return success();
  });
}

LogicalResult shardc::verifyPartitioned(ModuleOp module) {
  if (failed(checkArguments(module)) || failed(checkStages(module)) ||
      failed(checkSumsOverStages(module)))
    return failure();
  return checkOps(module, /*inKernels=*/true, [](Operation *op) {
    if (isa<ReshardOp, ShardingConstraintOp>(op) || getStrategyAttr(op))
      return LogicalResult(op->emitOpError("is still over global tensors"));
    if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp,
            CollectivePermuteOp>(op) &&
        !op->hasAttr(causeAttrName))
      return LogicalResult(op->emitOpError("expected shardc.cause"));
    return success();
  });
}

LogicalResult shardc::verifyOutlined(ModuleOp module) {
  if (failed(checkArguments(module)))
    return failure();
  return checkOps(module, /*inKernels=*/false, [](Operation *op) {
    if (isa<ShardingRuleOpInterface, MaskOp>(op) &&
        !isa<AccumulateOp, TransferOp>(op))
      return LogicalResult(op->emitOpError("is outside of a kernel"));
    return success();
  });
}

LogicalResult shardc::verifyScheduled(ModuleOp module) {
  if (failed(verifyOutlined(module)))
    return failure();
  return checkOps(module, /*inKernels=*/false, [](Operation *op) {
    if (getCollectiveCost(op))
      return LogicalResult(
          op->emitOpError("is not split into a start and a wait"));
    return success();
  });
}

LogicalResult shardc::verifyPlanned(ModuleOp module) {
  auto arena = module->getAttrOfType<IntegerAttr>(arenaBytesAttrName);
  if (!arena)
    return module.emitError("expected shardc.arena_bytes on the module");
  if (failed(checkArguments(module)))
    return failure();
  return checkOps(module, /*inKernels=*/false, [&](Operation *op) {
    if (op->getNumResults() == 0 || isa<CollectiveStartOp>(op))
      return success();
    auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(offsetsAttrName);
    if (!offsets || offsets.size() != op->getNumResults())
      return LogicalResult(
          op->emitOpError("expected shardc.offsets with one per result"));
    for (int64_t offset : offsets.asArrayRef())
      if (offset < 0 || offset > arena.getInt())
        return LogicalResult(op->emitOpError("offset ")
                             << offset << " is outside of the arena of "
                             << arena.getInt() << " bytes");
    return success();
  });
}
