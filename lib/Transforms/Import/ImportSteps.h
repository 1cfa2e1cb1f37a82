//===- ImportSteps.h - The steps of import ----------------------*- C++ -*-===//
//
// Each step returns failure after it has reported an error at the location of
// the faulty op, argument or module. Not thread-safe on one module.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_IMPORT_IMPORTSTEPS_H
#define SHARDC_LIB_TRANSFORMS_IMPORT_IMPORTSTEPS_H

#include "shardc/Transforms/Import/OverrideMesh.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace shardc {

/// Checks that `module` is a source module and returns its loss function. A
/// source module has a training description and one function, in which every
/// argument has a role, all ops are of the source language, and the result is
/// one scalar loss.
mlir::FailureOr<mlir::func::FuncOp> verifySource(mlir::ModuleOp module);

/// Checks that no tensor, each of static shape, is larger than plans and counts
/// of bytes and operations have room for.
mlir::LogicalResult verifySizes(mlir::func::FuncOp loss);

/// Replaces the rules of the logical axes that `text` names
/// ("batch=data,hidden=model+pod,embed="; empty: keep all).
mlir::LogicalResult overrideRules(mlir::ModuleOp module, llvm::StringRef text);

/// Replaces logical axes by the shardings that the rules of the module give.
mlir::LogicalResult resolveLogicalAxes(mlir::func::FuncOp loss, MeshOp mesh);

/// Replaces the leading dimension of inputs and labels by `batch` (0: keep) and
/// resizes every dimension that follows from it.
mlir::LogicalResult overrideBatch(mlir::func::FuncOp loss, int64_t batch);

/// Replaces the number of microbatches by `count` (0: keep) and checks that it
/// divides the batch.
mlir::LogicalResult overrideMicrobatches(mlir::func::FuncOp loss,
                                         int64_t count);

/// Makes a model of f32 compute in `dtype`. "bf16" keeps parameters and the
/// loss in f32; "f32" changes nothing. Both are errors where the model has
/// other floating-point types. An empty `dtype` accepts all types.
mlir::LogicalResult overrideDtype(mlir::func::FuncOp loss,
                                  llvm::StringRef dtype);

/// New values for parts of the training description. An empty text or 0 keeps
/// the value of the module.
struct TrainingOverrides {
  /// Text for `readOptimizer`. The learning rate stays unless the text has one.
  std::string optimizer;
  double learningRate;
  /// Text for `readSchedule`.
  std::string schedule;
  /// The largest global norm of the gradients; infinity switches clipping off.
  double clipNorm;
};

/// Applies `overrides` to the training description of `module`.
mlir::LogicalResult overrideTraining(mlir::ModuleOp module,
                                     const TrainingOverrides &overrides);

/// The axis of a pipeline that only options ask for.
inline constexpr llvm::StringLiteral defaultStageAxis = "stage";

/// Changes of the pipeline of a module.
struct PipelineOverrides {
  /// The size of its mesh axis; 0 takes pipeline and axis away, a negative
  /// number keeps them.
  int64_t stages;
  /// The name of a schedule, or the path of a regular file (.csv) of at most
  /// 2^26 bytes; empty keeps it.
  std::string schedule;
  /// Stages per rank; 0 keeps the number.
  int64_t chunks;
  /// The mesh that options ask for, which must not contradict `stages`.
  std::string mesh;
};

/// Applies `overrides` to the pipeline of the module of `loss` and to `mesh`.
/// Takes the stages of ops away if there are then more or fewer of them.
mlir::LogicalResult overridePipeline(mlir::func::FuncOp loss, MeshOp mesh,
                                     const PipelineOverrides &overrides);

/// Replaces the policy of recomputation by `policy` (empty: keep) and checks
/// that it suits the module: "stage" needs a pipeline, and "layer" and "auto"
/// need none. To be called when the pipeline is that of the options.
mlir::LogicalResult overrideRecomputation(mlir::ModuleOp module,
                                          llvm::StringRef policy);

/// Checks the shardings of arguments and constraints against the mesh.
mlir::LogicalResult verifyAnnotations(mlir::func::FuncOp loss);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_IMPORT_IMPORTSTEPS_H
