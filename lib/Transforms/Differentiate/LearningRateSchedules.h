//===- LearningRateSchedules.h - Learning rates by step ---------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_LEARNINGRATESCHEDULES_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_LEARNINGRATESCHEDULES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Whether the learning rate of `training` depends on the step.
bool hasSchedule(TrainingAttr training);

/// Builds the learning rate of `training` at `step`, a tensor<f32>. `step` is a
/// tensor<i32> that counts the steps done before this one; it may be null if
/// there is no schedule. The formulas are those of optax 0.2: linear_schedule
/// and warmup_cosine_decay_schedule.
mlir::Value buildLearningRate(mlir::OpBuilder &builder, mlir::Location loc,
                              TrainingAttr training, mlir::Value step);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_LEARNINGRATESCHEDULES_H
