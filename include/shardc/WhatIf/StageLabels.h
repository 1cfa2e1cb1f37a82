//===- StageLabels.h - The stages of a loss function's ops ------*- C++ -*-===//
//
// After `import` every op of the loss function of a pipeline has a stage. In
// the source some ops may have one, or none. Plain functions over a module's
// context; not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_WHATIF_STAGELABELS_H
#define SHARDC_WHATIF_STAGELABELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardc {

/// By op of a loss function, in program order, its stage.
using StageLabels = std::vector<int64_t>;

/// What the source of a module says, before `import` and its options.
struct SourceAnnotations {
  /// The stages of labelled ops, by their places, "path/file.mlir:12:3".
  std::map<std::string, int64_t> stages;
  /// The axes of the mesh, which annotations may name.
  std::set<std::string> axes;
};

/// Those of `module`, as parsed.
SourceAnnotations getSourceAnnotations(mlir::ModuleOp module);

/// The stages of `loss`, after `import`; empty without a pipeline.
StageLabels getStageLabels(mlir::func::FuncOp loss);

void setStageLabels(mlir::func::FuncOp loss, const StageLabels &labels);

/// The ops, as numbers in program order, to be labelled in the source of `loss`
/// so that `import` gives all ops the stages of `labels`. Labels that the
/// source has are kept where they agree. Some more labels may be among them
/// than the fewest possible.
std::vector<size_t> findLabelsToWrite(mlir::func::FuncOp loss,
                                      const StageLabels &labels,
                                      const SourceAnnotations &source);

} // namespace shardc

#endif // SHARDC_WHATIF_STAGELABELS_H
