//===- AnnotationEdits.h - Changes of annotations that may help -*- C++ -*-===//
//
// Which changes of which annotations could remove a move, read off its chain.
// Nothing is promised of them before they are compiled. Not thread-safe: makes
// attributes in the module's context.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_PIPELINES_ANNOTATIONEDITS_H
#define SHARDC_LIB_PIPELINES_ANNOTATIONEDITS_H

#include "shardc/Analysis/Explanation.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// An annotation of an imported module: an attribute of an argument of the loss
/// function, or the sharding of a constraint.
struct Annotation {
  /// Index of the argument, or -1 for a constraint.
  int argument = -1;
  /// Index of the constraint in the loss function, or -1 for an argument.
  int constraint = -1;
  /// "shardc.sharding", "shardc.state_sharding" or "shardc.grad_sharding".
  llvm::StringRef attribute = "shardc.sharding";

  bool operator==(const Annotation &other) const {
    return argument == other.argument && constraint == other.constraint &&
           attribute == other.attribute;
  }
};

/// New values of some annotations, each at most once.
class Edits {
public:
  /// Adds a change unless the annotation has one already.
  void add(const Annotation &annotation, ShardingAttr sharding);
  bool empty() const { return list.empty(); }

  /// Makes the changes in `loss`, a loss function that is like the one for
  /// which they were proposed.
  void apply(mlir::func::FuncOp loss) const;
  /// For people, with places in `loss`.
  std::vector<AnnotationEdit> describe(mlir::func::FuncOp loss) const;
  /// Equal for equal changes.
  std::string getKey() const;

private:
  std::vector<std::pair<Annotation, ShardingAttr>> list;
};

/// Proposes changes for the collectives of the program made of one loss
/// function.
class EditProposer {
public:
  /// `loss` is the loss function of a module after `import`.
  explicit EditProposer(mlir::func::FuncOp loss) : loss(loss) {}

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
  /// The sharding that `layout` of an explanation means; null for partial sums.
  ShardingAttr parse(llvm::StringRef layout);

  void meetOtherEnd(const MovedTensor &tensor, Edits &edits);
  void dropAxes(const ChainEnd &end, mlir::ArrayRef<std::string> axes,
                Edits &edits);
  void proposePlaces(const ChainEnd &end, mlir::ArrayRef<std::string> axes,
                     Proposals &proposals);
  void proposeYielding(const MovedTensor &tensor,
                       mlir::ArrayRef<std::string> axes, Proposals &proposals);

  mlir::func::FuncOp loss;
};

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_ANNOTATIONEDITS_H
