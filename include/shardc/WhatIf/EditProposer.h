//===- EditProposer.h - Changes that may remove a collective ----*- C++ -*-===//
//
// Proposes changes of annotations that might remove a move, from its chain of
// provenance. They promise nothing before they are compiled. Not thread-safe:
// makes attributes in the module's context.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_WHATIF_EDITPROPOSER_H
#define SHARDC_WHATIF_EDITPROPOSER_H

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/WhatIf/AnnotationEdits.h"

namespace shardc {

/// Proposes changes for the collectives of the program made from one loss
/// function.
class EditProposer {
public:
  /// `loss` is the loss function of a module after `import`. `hasPriorities`:
  /// the planner honours the priorities of annotations.
  EditProposer(mlir::func::FuncOp loss, bool hasPriorities)
      : loss(loss), hasPriorities(hasPriorities) {}

  /// At most `limit` changes that might remove the collective, or one of its
  /// tensors: first those that treat all tensors alike, then those for one
  /// tensor, the largest first.
  std::vector<Edits> propose(const ExplainedCollective &collective,
                             size_t limit);

private:
  using Proposals = std::vector<Edits>;

  std::optional<Annotation> find(llvm::StringRef name);
  ShardingAttr getSharding(const Annotation &annotation);
  int64_t getRank(const Annotation &annotation);
  /// The sharding for `layout` of an explanation; null for partial sums.
  ShardingAttr parse(llvm::StringRef layout);

  void meetOtherEnd(const MovedTensor &tensor, Edits &edits);
  void dropAxes(const ChainEnd &end, mlir::ArrayRef<std::string> axes,
                Edits &edits);
  void proposePlaces(const ChainEnd &end, mlir::ArrayRef<std::string> axes,
                     Proposals &proposals);
  void proposeYielding(const MovedTensor &tensor,
                       mlir::ArrayRef<std::string> axes, Proposals &proposals);

  mlir::func::FuncOp loss;
  bool hasPriorities;
};

} // namespace shardc

#endif // SHARDC_WHATIF_EDITPROPOSER_H
