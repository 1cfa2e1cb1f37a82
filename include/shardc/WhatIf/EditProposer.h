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
#include "shardc/WhatIf/StageProposer.h"

namespace shardc {

/// Proposes changes for the collectives of the program made from one loss
/// function.
class EditProposer {
public:
  /// `loss` is the loss function of a module after `import`. `hasPriorities`:
  /// the planner honours the priorities of annotations. Borrows `source`, which
  /// is of the same module before `import`.
  EditProposer(mlir::func::FuncOp loss, bool hasPriorities,
               const SourceAnnotations &source);

  /// At most `limit` changes that might remove the collective, or one of its
  /// tensors: first those that treat all tensors alike, then those for one
  /// tensor, the largest first. For a send changes with which it might send
  /// less: ops on other stages, and shardings of the value that crosses.
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

  ShardingAttr withAxesAt(const Annotation &annotation,
                          mlir::ArrayRef<std::string> axes, int64_t place);
  void shardAround(mlir::Value value, mlir::Operation *user,
                   const std::string &axis, Edits &edits);
  void proposeConstraints(size_t number, llvm::StringRef from,
                          const std::string &axis, Proposals &proposals);
  void proposeShardedBoundary(const MovedTensor &tensor, Proposals &proposals);
  void proposeForSend(const ExplainedCollective &send, size_t limit,
                      Proposals &proposals);
  void proposeForMoves(const ExplainedCollective &collective, size_t limit,
                       Proposals &proposals);

  mlir::func::FuncOp loss;
  bool hasPriorities;
  const SourceAnnotations &source;
  /// None without a pipeline.
  std::optional<StageProposer> stages;
};

} // namespace shardc

#endif // SHARDC_WHATIF_EDITPROPOSER_H
