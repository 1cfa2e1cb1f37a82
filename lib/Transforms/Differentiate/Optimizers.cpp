//===- Optimizers.cpp - Updates of parameters and states ------------------===//

#include "shardc/Transforms/Differentiate/Optimizers.h"
#include "LearningRateSchedules.h"

#include "shardc/Dialect/Shardc/IR/Arithmetic.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace shardc;

static bool isAdam(OptimizerKind kind) {
  return kind == OptimizerKind::Adam || kind == OptimizerKind::AdamW;
}

ArrayRef<StringRef> shardc::getStateSuffixes(OptimizerKind kind) {
  static constexpr StringRef momentum[] = {".momentum"};
  static constexpr StringRef adam[] = {".m", ".v"};
  if (kind == OptimizerKind::Momentum)
    return momentum;
  if (isAdam(kind))
    return adam;
  return {};
}

bool shardc::needsStep(TrainingAttr training) {
  return isAdam(training.getOptimizer().getKind()) || hasSchedule(training);
}

/// The stage of the pipeline that makes `gradient`; null without one.
static IntegerAttr getStage(Value gradient) {
  Operation *maker = gradient.getDefiningOp();
  return maker ? maker->getAttrOfType<IntegerAttr>(stageAttrName)
               : IntegerAttr();
}

void shardc::clipByGlobalNorm(OpBuilder &builder, Location loc, double limit,
                              MutableArrayRef<Value> gradients) {
  Arithmetic a(builder, loc, RankedTensorType::get({}, builder.getF32Type()));
  // One sum for each stage of a pipeline: nothing else of the squares crosses.
  std::map<int64_t, Value> totals;
  for (Value gradient : gradients) {
    IntegerAttr stage = getStage(gradient);
    Value &total = totals[stage ? stage.getInt() : 0];
    auto type = cast<RankedTensorType>(gradient.getType());
    // Squares of a narrow type are summed in f32.
    if (type.getElementTypeBitWidth() < 32)
      gradient = builder.create<ConvertOp>(
          loc, type.clone(builder.getF32Type()), gradient);
    Value square = builder.create<MulOp>(loc, gradient, gradient);
    Value sum =
        a.broadcast(reduceAll(builder, loc, ReductionKind::Sum, square));
    total = total ? a.add(total, sum) : sum;
  }
  Value total;
  for (auto &[stage, ofStage] : totals)
    total = total ? a.add(total, ofStage) : ofStage;
  Value norm = a.sqrt(total);
  Value keep = a.less(norm, a.constant(limit));
  Value ratio = a.div(a.constant(limit), norm);
  Value scale = a.select(keep, a.constant(1), ratio);
  for (Value &gradient : gradients) {
    Arithmetic like(builder, loc, gradient);
    Value factor = like.broadcast(scale);
    // The scalar crosses, not the tensor.
    if (IntegerAttr stage = getStage(gradient); stage && factor != scale)
      factor.getDefiningOp()->setAttr(stageAttrName, stage);
    gradient = like.mul(gradient, factor);
  }
}

/// Builds Adam's bias correction 1/(1 - b^t) for t = `count`. It computes
/// 1 - b^t as -expm1(t·log b), which is accurate for b near 1. b is `decay`
/// rounded to f32, as in optax.
static Value buildBiasCorrection(Arithmetic &a, Value count, double decay) {
  double rounded = static_cast<float>(decay);
  if (rounded == 0)
    return a.constant(1);
  Value power = a.expm1(a.mul(count, a.constant(std::log(rounded))));
  return a.div(a.constant(-1), power);
}

Optimizer::Optimizer(OpBuilder &builder, Location loc, TrainingAttr training,
                     Value step)
    : builder(builder), optimizer(training.getOptimizer()),
      learningRate(buildLearningRate(builder, loc, training, step)) {
  if (!isAdam(optimizer.getKind()))
    return;
  Arithmetic a(builder, loc, RankedTensorType::get({}, builder.getF32Type()));
  Value count = a.add(a.broadcast(step), a.constant(1));
  firstCorrection = buildBiasCorrection(a, count, optimizer.get("b1"));
  secondCorrection = buildBiasCorrection(a, count, optimizer.get("b2"));
}

Value Optimizer::update(Location loc, Value parameter, Value gradient,
                        MutableArrayRef<Value> states) {
  Arithmetic a(builder, loc, parameter);
  double weightDecay = optimizer.get("weight_decay");
  auto decay = [&](Value update) {
    if (weightDecay == 0)
      return update;
    return a.add(update, a.mul(parameter, a.constant(weightDecay)));
  };
  /// A moving average: state·b + (1 - b)·value.
  auto average = [&](Value state, Value value, double b) {
    Value kept = a.mul(state, a.constant(b));
    return a.add(kept, a.mul(value, a.constant(1 - b)));
  };

  Value update = gradient;
  // Weight decay is a term of the gradient in all optimizers but AdamW, where
  // it is decoupled from the moments (arXiv 1711.05101).
  if (optimizer.getKind() != OptimizerKind::AdamW)
    update = decay(update);
  if (optimizer.getKind() == OptimizerKind::Momentum) {
    Value kept = a.mul(states[0], a.constant(optimizer.get("momentum")));
    update = states[0] = a.add(update, kept);
  } else if (isAdam(optimizer.getKind())) {
    states[0] = average(states[0], update, optimizer.get("b1"));
    states[1] = average(states[1], a.mul(update, update), optimizer.get("b2"));
    Value first = a.mul(states[0], a.broadcast(firstCorrection));
    Value second = a.mul(states[1], a.broadcast(secondCorrection));
    Value divisor = a.add(a.sqrt(second), a.constant(optimizer.get("eps")));
    update = a.div(first, divisor);
    if (optimizer.getKind() == OptimizerKind::AdamW)
      update = decay(update);
  }
  return a.sub(parameter, a.mul(update, a.broadcast(learningRate)));
}
