//===- LearningRateSchedules.cpp - Learning rates by step -----------------===//

#include "LearningRateSchedules.h"

#include "shardc/Dialect/Shardc/IR/Arithmetic.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

bool shardc::hasSchedule(TrainingAttr training) {
  ScheduleAttr schedule = training.getSchedule();
  return schedule && schedule.getKind() != ScheduleKind::Constant;
}

/// Builds a linear warm-up: 0 at step 0, `peak` from step `steps` on.
static Value buildWarmup(Arithmetic &a, Value step, double peak, double steps) {
  Value done = a.min(step, a.constant(steps));
  Value left = a.sub(a.constant(1), a.div(done, a.constant(steps)));
  return a.add(a.mul(left, a.constant(-peak)), a.constant(peak));
}

/// Builds a cosine decay: `peak` at step 0, alpha·peak from step `steps` on.
static Value buildCosine(Arithmetic &a, Value step, double peak, double steps,
                         double alpha) {
  Value done = a.min(step, a.constant(steps));
  Value angle = a.div(a.mul(done, a.constant(M_PI)), a.constant(steps));
  Value cosine = a.add(a.cos(angle), a.constant(1));
  Value decay = a.mul(a.mul(cosine, a.constant(0.5)), a.constant(1 - alpha));
  return a.mul(a.add(decay, a.constant(alpha)), a.constant(peak));
}

Value shardc::buildLearningRate(OpBuilder &builder, Location loc,
                                TrainingAttr training, Value step) {
  Arithmetic a(builder, loc, RankedTensorType::get({}, builder.getF32Type()));
  double peak = training.getOptimizer().get("learning_rate");
  if (!hasSchedule(training))
    return a.constant(peak);

  ScheduleAttr schedule = training.getSchedule();
  double warmup = schedule.get("warmup_steps");
  Value now = a.broadcast(step);
  if (schedule.getKind() == ScheduleKind::LinearWarmup)
    return buildWarmup(a, now, peak, warmup);

  Value decayed =
      buildCosine(a, a.sub(now, a.constant(warmup)), peak,
                  schedule.get("decay_steps") - warmup, schedule.get("alpha"));
  if (warmup == 0)
    return decayed;
  Value warming = buildWarmup(a, now, peak, warmup);
  return a.select(a.less(now, a.constant(warmup)), warming, decayed);
}
