//===- PhaseContracts.cpp - Checks of the contracts of phases -------------===//

#include "PhaseContracts.h"

#include "CheckContents.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/MemoryPlan.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Transforms/Pipeline/VerifyPipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

#include <tuple>

using namespace mlir;
using namespace shardc;

/// Calls `check` on every op of `function`; with `inKernels` also in the bodies
/// of kernels and collective starts.
static LogicalResult checkOps(func::FuncOp function, bool inKernels,
                              function_ref<LogicalResult(Operation *)> check) {
  WalkResult result = function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == function)
      return WalkResult::advance();
    if (failed(check(op)))
      return WalkResult::interrupt();
    return !inKernels && isa<KernelOp, CollectiveStartOp>(op)
               ? WalkResult::skip()
               : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// The same for all functions of `module`.
static LogicalResult checkOps(ModuleOp module, bool inKernels,
                              function_ref<LogicalResult(Operation *)> check) {
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(checkOps(function, inKernels, check)))
      return failure();
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

/// The bytes of the arena of `function`: with a pipeline those of its rank.
static FailureOr<int64_t> getArenaBytes(func::FuncOp function) {
  Operation *holder = function;
  if (!function->hasAttr(rankAttrName))
    holder = function->getParentOfType<ModuleOp>();
  auto arena = holder->getAttrOfType<IntegerAttr>(arenaBytesAttrName);
  if (!arena)
    return holder->emitError("expected shardc.arena_bytes, an integer");
  return arena.getInt();
}

/// Why a buffer of `type` has no place at `offset`, or "". A part of another
/// buffer starts anywhere.
static std::string checkPlace(Type type, int64_t offset, int64_t arena,
                              bool isPart) {
  std::string place = "offset " + std::to_string(offset);
  if (!isPart && offset % bufferAlignment != 0)
    return place + " is not a multiple of " + std::to_string(bufferAlignment);
  int64_t bytes = getNumBytes(type);
  if (offset < 0 || offset > arena || bytes > arena - offset)
    return std::to_string(bytes) + " bytes at " + place +
           " are outside of the arena of " + std::to_string(arena) + " bytes";
  return "";
}

static LogicalResult checkPlacesOfResults(func::FuncOp function,
                                          int64_t arena) {
  return checkOps(function, /*inKernels=*/false, [&](Operation *op) {
    if (op->getNumResults() == 0 || isa<CollectiveStartOp>(op))
      return success();
    auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(offsetsAttrName);
    if (!offsets || offsets.size() != op->getNumResults())
      return LogicalResult(
          op->emitOpError("expected shardc.offsets with one per result"));
    for (auto [type, offset] :
         llvm::zip_equal(op->getResultTypes(), offsets.asArrayRef()))
      if (std::string problem =
              checkPlace(type, offset, arena, isa<RowsOp>(op));
          !problem.empty())
        return LogicalResult(op->emitOpError(problem));
    return success();
  });
}

namespace {

/// Where the arguments of an arena's programs lie, by their names.
class ArgumentPlaces {
public:
  /// Adds those of `function`. Programs hand tensors on to one another: each
  /// is at one place in all of them.
  LogicalResult add(func::FuncOp function, int64_t arena);

  /// None lies over another.
  LogicalResult checkApart() const;

private:
  struct Place {
    int64_t offset, bytes;
    StringRef name;
    func::FuncOp function;
  };

  llvm::MapVector<StringRef, Place> places;
};

LogicalResult ArgumentPlaces::add(func::FuncOp function, int64_t arena) {
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto fail = [&](const Twine &problem) {
      return function.emitError("argument ") << index << ": " << problem;
    };
    StringRef name = getRoleName(function, index);
    if (name.empty())
      return fail("expected shardc.role");
    auto offset = function.getArgAttrOfType<IntegerAttr>(index, offsetAttrName);
    if (!offset)
      return fail("expected shardc.offset, an integer");
    Place place{offset.getInt(), getNumBytes(argument.getType()), name,
                function};
    if (std::string problem = checkPlace(argument.getType(), place.offset,
                                         arena, /*isPart=*/false);
        !problem.empty())
      return fail(problem);
    const Place &known = places.try_emplace(name, place).first->second;
    if (known.offset != place.offset || known.bytes != place.bytes)
      return fail("\"" + name + "\" is " + Twine(place.bytes) +
                  " bytes at offset " + Twine(place.offset) + ", and " +
                  Twine(known.bytes) + " bytes at offset " +
                  Twine(known.offset) + " in another program");
  }
  return success();
}

LogicalResult ArgumentPlaces::checkApart() const {
  auto sorted = llvm::to_vector(llvm::make_second_range(places));
  llvm::sort(sorted, [](const Place &lhs, const Place &rhs) {
    return std::tie(lhs.offset, lhs.bytes, lhs.name) <
           std::tie(rhs.offset, rhs.bytes, rhs.name);
  });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (Place before = sorted[i - 1], place = sorted[i];
        place.offset < before.offset + before.bytes)
      return place.function.emitError("\"")
             << place.name << "\" at offset " << place.offset << " lies over \""
             << before.name << "\", " << before.bytes << " bytes at offset "
             << before.offset;
  return success();
}

} // namespace

LogicalResult shardc::verifyPlanned(ModuleOp module) {
  if (!module->getAttrOfType<IntegerAttr>(arenaBytesAttrName))
    return module.emitError("expected shardc.arena_bytes on the module");
  if (failed(getRanksOfStages(module)) || failed(checkArguments(module)))
    return failure();
  // Each rank of a pipeline has an arena of its own.
  llvm::MapVector<int64_t, ArgumentPlaces> arenas;
  for (auto function : module.getOps<func::FuncOp>()) {
    FailureOr<int64_t> bytes = getArenaBytes(function);
    auto rank = function->getAttrOfType<IntegerAttr>(rankAttrName);
    if (failed(bytes) ||
        failed(arenas[rank ? rank.getInt() : -1].add(function, *bytes)) ||
        failed(checkPlacesOfResults(function, *bytes)))
      return failure();
  }
  for (const auto &[rank, places] : arenas)
    if (failed(places.checkApart()))
      return failure();
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(checkContents(function)))
      return failure();
  return success();
}
