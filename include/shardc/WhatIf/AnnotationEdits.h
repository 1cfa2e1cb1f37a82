//===- AnnotationEdits.h - Changes of annotations ---------------*- C++ -*-===//
//
// The changes of a fix-it in an imported module. Plain values over attributes
// of the module's context.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_WHATIF_ANNOTATIONEDITS_H
#define SHARDC_WHATIF_ANNOTATIONEDITS_H

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Report/Explanation.h"
#include "shardc/WhatIf/StageLabels.h"

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
  llvm::StringRef attribute = shardingAttrName;

  bool operator==(const Annotation &other) const {
    return argument == other.argument && constraint == other.constraint &&
           attribute == other.attribute;
  }
};

/// Constraint `index` of a loss function, in its order.
ShardingConstraintOp getConstraint(mlir::func::FuncOp loss, int index);

/// New values of some annotations, at most one each, and new annotations.
class Edits {
public:
  /// Adds a change unless the annotation has one already.
  void add(const Annotation &annotation, ShardingAttr sharding);
  /// Gives all ops of the loss function other stages.
  void setStages(StageLabels labels) { stages = std::move(labels); }
  /// Puts a constraint behind op `number` of the loss function, on the stage of
  /// the op, between its first result and all users.
  void addConstraint(size_t number, ShardingAttr sharding) {
    constraints.push_back({number, sharding});
  }
  bool empty() const {
    return list.empty() && stages.empty() && constraints.empty();
  }

  /// Makes the changes in `loss`, a loss function like the one for which they
  /// were proposed.
  void apply(mlir::func::FuncOp loss) const;
  /// The changes for people, with locations in `loss`; of stages those labels
  /// that its `source` needs.
  std::vector<AnnotationEdit> describe(mlir::func::FuncOp loss,
                                       const SourceAnnotations &source) const;
  /// Equal for equal changes.
  std::string getKey() const;

private:
  std::vector<std::pair<Annotation, ShardingAttr>> list;
  /// Empty: as they are.
  StageLabels stages;
  /// New ones, by the numbers of the ops whose results they constrain.
  std::vector<std::pair<size_t, ShardingAttr>> constraints;
};

} // namespace shardc

#endif // SHARDC_WHATIF_ANNOTATIONEDITS_H
