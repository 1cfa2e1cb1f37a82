//===- Remedies.h - Changes that remove collectives, priced -----*- C++ -*-===//

#ifndef SHARDC_LIB_PIPELINES_REMEDIES_H
#define SHARDC_LIB_PIPELINES_REMEDIES_H

#include "shardc/Analysis/Explanation.h"
#include "shardc/Analysis/MachineModel.h"
#include "shardc/Pipelines/Compile.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Changes of annotations that are compiled for one collective at most.
constexpr size_t maxTriedChanges = 8;
/// Changes that are compiled for a module at most, in which the collectives
/// that send most come first.
constexpr size_t maxCompiledChanges = 64;

/// Adds to `explanation` of the programs of `imported`, a module after
/// `import`, for every collective and every tensor in it the best of the
/// changes that remove it: of the least matrix FLOPs, then the fewest bytes on
/// the wire, then the fewest bytes at rest. A tensor is removed if no
/// collective of the kind moves it over any of the axes, and what it sends over
/// them has not grown. Every change is compiled up to `collectives`, with
/// `options`; equal ones once. Times are on `machine`. `imported` is left as it
/// is.
void findRemedies(mlir::ModuleOp imported, const CompileOptions &options,
                  const Machine &machine, Explanation &explanation);

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_REMEDIES_H
