//===- TrainingText.h - Optimizers and schedules on command lines -*- C++
//-*-===//
//
// The short form of optimizers and schedules in flags: a name, then numbers,
// such as "adam,b1=0.95". Pure functions: thread-safe on distinct contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_TRAININGTEXT_H
#define SHARDC_DIALECT_SHARDC_IR_TRAININGTEXT_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include <string>

namespace shardc {

/// Reads "sgd", "momentum,momentum=0.95", "adamw,weight_decay=0.1".
/// `learningRate` applies where the text has no `learning_rate`. Null, with a
/// message in `error`, unless the optimizer has these hyper-parameters and
/// accepts their values.
OptimizerAttr readOptimizer(mlir::MLIRContext *context, llvm::StringRef text,
                            double learningRate, std::string &error);

/// Reads "constant", "linear_warmup,warmup_steps=100" or
/// "cosine,warmup_steps=100,decay_steps=1000,alpha=0.1" in the same way.
ScheduleAttr readSchedule(mlir::MLIRContext *context, llvm::StringRef text,
                          std::string &error);

/// The error of such a text, or "". Each call has a context of its own.
std::string checkOptimizer(llvm::StringRef text);
std::string checkSchedule(llvm::StringRef text);

/// Whether `text` is a policy of recomputation: "none", "layer", "stage" or
/// "auto".
bool isRecomputePolicy(llvm::StringRef text);

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_TRAININGTEXT_H
