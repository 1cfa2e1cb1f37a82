//===- AnnotateStrategy.h - A strategy on a given model ---------*- C++ -*-===//
//
// Annotates the loss function of any source module as shardc-gen annotates
// those that it writes. Changes the IR: not thread-safe in one context.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MODELS_ANNOTATESTRATEGY_H
#define SHARDC_MODELS_ANNOTATESTRATEGY_H

#include "shardc/Models/LayerRoles.h"
#include "shardc/Models/Strategy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <set>

namespace shardc {

/// The loss function of a source module; null if it has none.
mlir::func::FuncOp getLoss(mlir::ModuleOp module);

/// Removes how `module` is sharded: shardings, logical axes and their rules,
/// constraints, contracts on collectives, the pipeline and its stages,
/// recomputation. What the arguments whose roles have the names in `kept` say
/// stays.
void removeAnnotations(mlir::ModuleOp module,
                       const std::set<std::string> &kept = {});

/// Gives `module` the mesh `mesh`, in place of the one that it has.
void setMesh(mlir::ModuleOp module, const MeshSpec &mesh);

/// Annotates the arguments of the loss function that have no annotation by
/// `strategy`, whose axes the mesh has; a pipeline becomes one of 1F1B. The
/// rows of inputs and labels are their first dimension.
void annotateStrategy(mlir::ModuleOp module, const Strategy &strategy);

/// Gives the pipeline of `module`, if it has one, another schedule, with
/// `virtualStages` stages on each rank.
void setSchedule(mlir::ModuleOp module, llvm::StringRef schedule,
                 int64_t virtualStages);

} // namespace shardc

#endif // SHARDC_MODELS_ANNOTATESTRATEGY_H
