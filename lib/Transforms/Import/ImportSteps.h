//===- ImportSteps.h - The steps of import ----------------------*- C++ -*-===//
//
// Each step reports its errors at what they are about and then fails.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_IMPORT_IMPORTSTEPS_H
#define SHARDC_LIB_TRANSFORMS_IMPORT_IMPORTSTEPS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace shardc {

/// The loss function of `module`, after checking that the module is a source
/// module: a training description, one function, roles for all its arguments,
/// ops that can be trained through, and one scalar loss.
mlir::FailureOr<mlir::func::FuncOp> verifySource(mlir::ModuleOp module);

/// Replaces the mesh by `spec` ("data=4,model=2"; empty: keep). Axes that
/// annotations or rules use and `spec` lacks have size 1. A module without a
/// mesh gets `@mesh` with one device.
mlir::FailureOr<MeshOp> overrideMesh(mlir::ModuleOp module,
                                     const std::string &spec);

/// Replaces rules of the module by those of `text`
/// ("batch=data,hidden=model+pod,embed="; empty: keep), name by name.
mlir::LogicalResult overrideRules(mlir::ModuleOp module, llvm::StringRef text);

/// Replaces logical axes by the shardings that the rules of the module give.
mlir::LogicalResult resolveLogicalAxes(mlir::func::FuncOp loss, MeshOp mesh);

/// Replaces the leading dimension of inputs and labels by `batch` (0: keep),
/// and every dimension that follows from it.
mlir::LogicalResult overrideBatch(mlir::func::FuncOp loss, int64_t batch);

/// Replaces the number of microbatches by `count` (0: keep) and checks that it
/// divides the batch.
mlir::LogicalResult overrideMicrobatches(mlir::func::FuncOp loss,
                                         int64_t count);

/// Makes a model of f32 compute in `dtype`: "bf16", with parameters and the
/// loss in f32, or "f32", as it is (empty: whatever types it has). An error
/// where the model has other floating-point types.
mlir::LogicalResult overrideDtype(mlir::func::FuncOp loss,
                                  llvm::StringRef dtype);

/// What replaces parts of the training description; an empty text and 0 keep
/// what the module has.
struct TrainingOverrides {
  /// As `readOptimizer` reads it. The learning rate stays, unless it has one.
  std::string optimizer;
  double learningRate;
  /// As `readSchedule` reads it.
  std::string schedule;
  /// Infinite: no clipping.
  double clipNorm;
};

mlir::LogicalResult overrideTraining(mlir::ModuleOp module,
                                     const TrainingOverrides &overrides);

/// Checks the shardings of arguments and constraints against the mesh.
mlir::LogicalResult verifyAnnotations(mlir::func::FuncOp loss);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_IMPORT_IMPORTSTEPS_H
