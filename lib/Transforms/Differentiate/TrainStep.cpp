//===- TrainStep.cpp - The train step -------------------------------------===//

#include "shardc/Transforms/Differentiate/TrainStep.h"
#include "Programs.h"
#include "ReverseMode.h"
#include "shardc/Transforms/Differentiate/Optimizers.h"

#include "shardc/Dialect/Shardc/IR/Arithmetic.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"

using namespace mlir;
using namespace shardc;

namespace {

/// A parameter with its states.
struct Trained {
  /// In the loss function.
  BlockArgument source;
  StringAttr name;
  ShardingAttr sharding, stateSharding, gradSharding;
  /// In the train step.
  Value value;
  SmallVector<Value, 2> states;
};

/// Builds the program: forward pass, backward pass, updates.
class TrainStepBuilder {
public:
  TrainStepBuilder(func::FuncOp loss, TrainingAttr training)
      : loss(loss), training(training),
        program(loss, "train_step", Part::Forward),
        builder(program.getBuilder()) {}

  FailureOr<func::FuncOp> build() {
    addArguments();
    Value value = program.cloneBody(/*decompose=*/true);

    program.setPart(Part::Backward);
    SmallVector<Value> gradients;
    if (failed(addGradients(value, gradients)))
      return failure();

    program.setPart(Part::Update);
    addUpdates(gradients);
    program.addResult(value, "loss");
    return program.finish();
  }

private:
  void addArguments() {
    SmallVector<Value> values = program.addParameters();
    for (BlockArgument argument : loss.getArguments()) {
      unsigned index = argument.getArgNumber();
      auto role = dyn_cast<ParameterAttr>(getRole(loss, index));
      if (!role)
        continue;
      auto get = [&](StringRef name) {
        return loss.getArgAttrOfType<ShardingAttr>(index, name);
      };
      trained.push_back({argument,
                         role.getName(),
                         get(shardingAttrName),
                         get(stateShardingAttrName),
                         get(gradShardingAttrName),
                         values[trained.size()],
                         {}});
      if (!trained.back().stateSharding)
        trained.back().stateSharding = trained.back().sharding;
    }
    for (Trained &parameter : trained)
      for (StringRef suffix : suffixes)
        parameter.states.push_back(program.addState(
            StateAttr::get(builder.getContext(),
                           getStateName(parameter, suffix), getZero(),
                           parameter.name),
            cast<RankedTensorType>(parameter.value.getType()),
            parameter.stateSharding, parameter.source.getLoc()));
    if (needsStep(training) || hasDropout())
      step = program.addState(StateAttr::get(builder.getContext(),
                                             builder.getStringAttr(kStepName),
                                             getZero(), StringAttr()),
                              RankedTensorType::get({}, builder.getI32Type()),
                              ShardingAttr(), loss.getLoc());
    program.addData();
  }

  LogicalResult addGradients(Value value, SmallVectorImpl<Value> &gradients) {
    SmallVector<Value> parameters;
    for (Trained &parameter : trained)
      parameters.push_back(parameter.value);
    FailureOr<SmallVector<Value>> all =
        buildGradients(builder, value, parameters);
    if (failed(all))
      return failure();
    LogicalResult result = success();
    for (auto [parameter, gradient] : llvm::zip_equal(trained, *all)) {
      if (!gradient) {
        emitError(parameter.source.getLoc())
            << "parameter " << parameter.name
            << " has no gradient: the loss does not depend on it, so it has "
               "nothing to train and no states to shard";
        result = failure();
        continue;
      }
      if (parameter.gradSharding) {
        auto constraint = builder.create<ShardingConstraintOp>(
            parameter.source.getLoc(), gradient.getType(), gradient,
            parameter.gradSharding, ArrayAttr());
        if (Operation *maker = gradient.getDefiningOp())
          if (Attribute stage = maker->getAttr(stageAttrName))
            constraint->setAttr(stageAttrName, stage);
        gradient = constraint;
      }
      gradients.push_back(gradient);
    }
    return result;
  }

  void addUpdates(SmallVectorImpl<Value> &gradients) {
    if (training.getClipNorm() && !gradients.empty())
      clipByGlobalNorm(builder, loss.getLoc(),
                       training.getClipNorm().getValueAsDouble(), gradients);
    Optimizer optimizer(builder, loss.getLoc(), training, step);
    for (auto [parameter, gradient] : llvm::zip_equal(trained, gradients)) {
      Value updated =
          optimizer.update(parameter.source.getLoc(), parameter.value, gradient,
                           parameter.states);
      program.addResult(updated, parameter.name.getValue(), parameter.sharding);
    }
    for (Trained &parameter : trained)
      for (auto [suffix, state] : llvm::zip_equal(suffixes, parameter.states))
        program.addResult(state, getStateName(parameter, suffix).getValue(),
                          parameter.stateSharding);
    if (step) {
      Arithmetic a(builder, loss.getLoc(), step);
      program.addResult(a.add(step, a.constant(1)), kStepName);
    }
  }

  bool hasDropout() {
    return loss
        .walk([](DropoutOp op) {
          return op.getRate().isZero() ? WalkResult::advance()
                                       : WalkResult::interrupt();
        })
        .wasInterrupted();
  }

  StringAttr getStateName(const Trained &parameter, StringRef suffix) {
    return builder.getStringAttr(parameter.name.getValue() + suffix);
  }

  InitAttr getZero() {
    return InitAttr::get(builder.getContext(), InitKind::Constant,
                         builder.getF64FloatAttr(0));
  }

  func::FuncOp loss;
  TrainingAttr training;
  Program program;
  OpBuilder &builder;
  ArrayRef<StringRef> suffixes =
      getStateSuffixes(training.getOptimizer().getKind());
  SmallVector<Trained> trained;
  Value step;
};

} // namespace

FailureOr<func::FuncOp> shardc::buildTrainStep(func::FuncOp loss,
                                               TrainingAttr training) {
  return TrainStepBuilder(loss, training).build();
}
