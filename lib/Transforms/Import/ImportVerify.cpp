//===- ImportVerify.cpp - Verification of source modules ------------------===//

#include "ImportSteps.h"
#include "shardc/Transforms/Differentiate/Optimizers.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Expect.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Dialect/Shardc/IR/VerifySharding.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace shardc;

/// The largest number of elements of a tensor. With it, byte and operation
/// counts over all tensors and devices stay far below 2^63.
static constexpr int64_t maxElements = int64_t(1) << 40;

/// Whether a tensor of `type`, without empty dimensions, is within the limits;
/// if not, says so of what `emitError` names.
static LogicalResult
verifySize(RankedTensorType type,
           llvm::function_ref<InFlightDiagnostic()> emitError) {
  for (int64_t size : type.getShape())
    if (size > maxDimension)
      return emitError() << "has a dimension of more than " << maxDimension
                         << ", the most that a tensor of a model may have: "
                         << type;
  int64_t left = maxElements;
  for (int64_t size : type.getShape()) {
    if (size > left)
      return emitError() << "has more than 2^40 elements, the most that a "
                            "tensor of a model may have: "
                         << type;
    left /= size;
  }
  return success();
}

LogicalResult shardc::verifySizes(func::FuncOp loss) {
  for (BlockArgument argument : loss.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType()))
      if (failed(verifySize(type, [&] {
            return mlir::emitError(argument.getLoc())
                   << "argument " << argument.getArgNumber() << " ";
          })))
        return failure();
  WalkResult walk = loss.getBody().walk([](Operation *op) {
    for (Type result : op->getResultTypes())
      if (auto type = dyn_cast<RankedTensorType>(result))
        if (failed(
                verifySize(type, [&] { return op->emitOpError("result "); })))
          return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

static FailureOr<func::FuncOp> findLoss(ModuleOp module) {
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  if (!training)
    return module.emitError(
        "needs `shardc.training`, which names the loss function and the "
        "optimizer: #shardc.training<loss = @loss, optimizer = <sgd, "
        "learning_rate = 0.01>>");
  auto loss = module.lookupSymbol<func::FuncOp>(training.getLoss());
  if (!loss)
    return module.emitError("`shardc.training` names loss function ")
           << training.getLoss() << ", but the module has none of that name";
  if (loss.isExternal())
    return loss.emitError("the loss function needs a body");
  for (Operation &op : *module.getBody())
    if (&op != loss && !isa<MeshOp>(op))
      return op.emitError("a source module holds a mesh and the loss function "
                          "alone, got another ")
             << op.getName().getStringRef();
  return loss;
}

/// Checks that the function returns one floating-point scalar and that its body
/// is one block of ops of the source language on non-empty global tensors.
static LogicalResult verifyBody(func::FuncOp loss) {
  FunctionType type = loss.getFunctionType();
  auto result = type.getNumResults() == 1
                    ? dyn_cast<RankedTensorType>(type.getResult(0))
                    : RankedTensorType();
  if (!result || result.getRank() != 0 ||
      !isa<FloatType>(result.getElementType()))
    return loss.emitError("the loss function must return one scalar such as "
                          "tensor<f32>, got (")
           << type.getResults() << ")";
  if (!loss.getBody().hasOneBlock())
    return loss.emitError("the loss function must have one block");
  for (Operation &op : loss.getBody().front()) {
    bool isPartitioned = isa<AccumulateOp, ScatterRowsOp, TransferOp>(op);
    if (auto iota = dyn_cast<IotaOp>(op))
      isPartitioned = iota.getShard() || iota.getMicrobatch();
    if (auto random = dyn_cast<RandomUniformOp>(op))
      isPartitioned = random.getShard() || random.getMicrobatch();
    if (isPartitioned ||
        !isa<ShardingRuleOpInterface, CompositeOpInterface, func::ReturnOp>(op))
      return op.emitOpError("does not belong in a loss function: expected ops "
                            "of the tensor core, composites and sharding "
                            "constraints, on global tensors");
    for (Type type : op.getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor)
        continue;
      if (llvm::is_contained(tensor.getShape(), 0))
        return op.emitOpError("result must be a tensor without empty "
                              "dimensions, got ")
               << type;
    }
  }
  return success();
}

namespace {

/// Checks the arguments of the loss function one by one.
class ArgumentVerifier {
public:
  ArgumentVerifier(func::FuncOp loss, OptimizerKind optimizer)
      : loss(loss), suffixes(getStateSuffixes(optimizer)) {}

  LogicalResult verify() {
    int64_t parameters = 0;
    for (BlockArgument argument : loss.getArguments()) {
      if (failed(verify(argument)))
        return failure();
      parameters += isa<ParameterAttr>(getRole(loss, argument.getArgNumber()));
    }
    if (parameters == 0)
      return loss.emitError("the loss function has no argument with role "
                            "#shardc.parameter: there is nothing to train");
    return success();
  }

private:
  LogicalResult verify(BlockArgument argument) {
    unsigned index = argument.getArgNumber();
    auto emitError = [&] {
      return mlir::emitError(argument.getLoc()) << "argument " << index << " ";
    };
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape() ||
        llvm::is_contained(type.getShape(), 0))
      return emitError() << "must be a tensor of static shape without empty "
                            "dimensions, got "
                         << argument.getType();
    Attribute role = getRole(loss, index);
    if (!isa_and_nonnull<ParameterAttr, InputAttr, LabelAttr>(role)) {
      InFlightDiagnostic diagnostic =
          emitError() << "needs `shardc.role`: #shardc.parameter, "
                         "#shardc.input or #shardc.label";
      if (role)
        diagnostic << ", got " << role;
      return diagnostic;
    }
    if (failed(addNames(argument, role)))
      return failure();
    if (isa<ParameterAttr>(role)) {
      if (!isa<FloatType>(type.getElementType()))
        return emitError() << "is a parameter and must have floating-point "
                              "elements, got "
                           << type;
      if (suffixes.empty() && loss.getArgAttr(index, stateShardingAttrName))
        mlir::emitRemark(argument.getLoc())
            << "argument " << index << ": `shardc.state_sharding` has no "
            << "effect, because the optimizer keeps no states";
      return success();
    }
    for (StringRef name : {stateShardingAttrName, gradShardingAttrName})
      if (loss.getArgAttr(index, name))
        return emitError()
               << "has `" << name
               << "`, which belongs on a parameter, but its role is " << role;
    if (type.getRank() == 0)
      return emitError() << "is fed every step and needs a leading batch "
                            "dimension, got "
                         << type;
    if (!firstData)
      firstData = argument;
    int64_t batch = cast<RankedTensorType>(firstData.getType()).getDimSize(0);
    if (type.getDimSize(0) != batch) {
      InFlightDiagnostic diagnostic =
          emitError() << "has a batch of " << type.getDimSize(0)
                      << ", expected " << batch
                      << ": inputs and labels share their leading dimension";
      diagnostic.attachNote(firstData.getLoc()) << "the first of them is here";
      return diagnostic;
    }
    return success();
  }

  /// Reserves the name of the argument and those of its optimizer states.
  LogicalResult addNames(BlockArgument argument, Attribute role) {
    std::string name = getRoleName(role).str();
    if (name.empty() || name == kStepName || name == "loss")
      return mlir::emitError(argument.getLoc())
             << "argument " << argument.getArgNumber() << " has name \"" << name
             << "\"; expected one that is not empty, \"loss\" or \"step\"";
    if (failed(addName(argument, name)))
      return failure();
    if (isa<ParameterAttr>(role))
      for (StringRef suffix : suffixes)
        if (failed(addName(argument, name + suffix.str())))
          return failure();
    return success();
  }

  LogicalResult addName(BlockArgument argument, const std::string &name) {
    auto [entry, isNew] = names.try_emplace(name, argument);
    if (isNew)
      return success();
    InFlightDiagnostic diagnostic = mlir::emitError(argument.getLoc())
                                    << "argument " << argument.getArgNumber()
                                    << ": the name \"" << name << "\" is taken";
    diagnostic.attachNote(entry->second.getLoc())
        << "by argument " << entry->second.getArgNumber()
        << " or one of its optimizer states";
    return diagnostic;
  }

  func::FuncOp loss;
  ArrayRef<StringRef> suffixes;
  llvm::StringMap<BlockArgument> names;
  BlockArgument firstData;
};

} // namespace

/// Checks that contracts name regions that exist: a contract on a misspelt
/// region would always hold.
static LogicalResult verifyRegions(ModuleOp module) {
  llvm::StringSet<> regions;
  module.walk([&](Operation *op) {
    if (auto region = op->getAttrOfType<StringAttr>(regionAttrName))
      regions.insert(region.getValue());
  });
  Attribute unknown;
  WalkResult walk = module.walk([&](Operation *op) {
    op->getAttrDictionary().walk([&](Attribute attribute) {
      std::optional<CollectiveFilter> filter = getFilter(attribute);
      if (filter && filter->region &&
          !regions.contains(filter->region.getValue()))
        unknown = attribute;
    });
    if (!unknown)
      return WalkResult::advance();
    op->emitError("has contract ")
        << unknown << ", but no op has the `shardc.region` "
        << getFilter(unknown)->region;
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

FailureOr<func::FuncOp> shardc::verifySource(ModuleOp module) {
  FailureOr<func::FuncOp> loss = findLoss(module);
  if (failed(loss) || failed(verifyBody(*loss)) ||
      failed(verifyRegions(module)))
    return failure();
  OptimizerKind optimizer =
      module->getAttrOfType<TrainingAttr>(trainingAttrName)
          .getOptimizer()
          .getKind();
  if (failed(ArgumentVerifier(*loss, optimizer).verify()) ||
      failed(verifySizes(*loss)))
    return failure();
  return loss;
}

LogicalResult shardc::verifyAnnotations(func::FuncOp loss) {
  for (BlockArgument argument : loss.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto type = cast<RankedTensorType>(argument.getType());
    for (StringRef name :
         {shardingAttrName, stateShardingAttrName, gradShardingAttrName}) {
      auto sharding = loss.getArgAttrOfType<ShardingAttr>(index, name);
      if (!sharding)
        continue;
      auto emitError = [&] {
        return mlir::emitError(argument.getLoc())
               << "argument " << index << ": `" << name << "` ";
      };
      if (failed(verifySharding(sharding, type, loss, emitError)))
        return failure();
      if (!sharding.getUnreduced().empty())
        return emitError() << "has unreduced axes, but a stored tensor is "
                              "never a partial sum";
    }
  }
  // Constraints were verified on parsing, against the mesh before its override.
  WalkResult walk = loss.walk([](ShardingConstraintOp op) {
    return failed(op.verify()) ? WalkResult::interrupt()
                               : WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
