//===- AnnotationEdits.cpp - Changes of annotations -----------------------===//

#include "shardc/WhatIf/AnnotationEdits.h"

#include "shardc/Analysis/ModuleGraph.h"

using namespace mlir;
using namespace shardc;

ShardingConstraintOp shardc::getConstraint(func::FuncOp loss, int index) {
  auto constraints = loss.getOps<ShardingConstraintOp>();
  return *std::next(constraints.begin(), index);
}

void Edits::add(const Annotation &annotation, ShardingAttr sharding) {
  for (const auto &[known, value] : list)
    if (known == annotation)
      return;
  list.push_back({annotation, sharding});
}

/// Op `number` of `loss`, in program order.
static Operation *getOp(func::FuncOp loss, size_t number) {
  return &*std::next(loss.getBody().front().begin(), number);
}

/// `sharding` in the form of the op sharding_constraint: without the name of
/// the attribute.
static std::string getConstraintText(ShardingAttr sharding) {
  std::string full;
  llvm::raw_string_ostream(full) << sharding;
  return ("sharding = " +
          StringRef(full).drop_until([](char c) { return c == '<'; }))
      .str();
}

void Edits::apply(func::FuncOp loss) const {
  for (const auto &[annotation, sharding] : list) {
    if (annotation.argument >= 0)
      loss.setArgAttr(annotation.argument, annotation.attribute, sharding);
    else
      getConstraint(loss, annotation.constraint).setShardingAttr(sharding);
  }
  if (!stages.empty())
    setStageLabels(loss, stages);
  // The numbers are those of the ops before any of them.
  SmallVector<Operation *> constrained;
  for (auto [number, sharding] : constraints)
    constrained.push_back(getOp(loss, number));
  for (auto [op, constraint] : llvm::zip_equal(constrained, constraints)) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Value value = op->getResult(0);
    auto added = builder.create<ShardingConstraintOp>(
        op->getLoc(), value.getType(), value, constraint.second, ArrayAttr());
    if (Attribute stage = op->getAttr(stageAttrName))
      added->setAttr(stageAttrName, stage);
    value.replaceAllUsesExcept(added.getResult(), added);
  }
}

std::vector<AnnotationEdit>
Edits::describe(func::FuncOp loss, const SourceAnnotations &source) const {
  std::vector<AnnotationEdit> edits;
  for (const auto &[annotation, sharding] : list) {
    AnnotationEdit edit;
    llvm::raw_string_ostream os(edit.text);
    if (annotation.argument >= 0) {
      edit.source =
          getSourceText(loss.getArgument(annotation.argument).getLoc());
      edit.name = getRoleName(loss, annotation.argument).str();
      os << annotation.attribute << " = " << sharding;
    } else {
      Location loc = getConstraint(loss, annotation.constraint).getLoc();
      edit.source = getSourceText(loc);
      edit.name = "constraint";
      os << getConstraintText(sharding);
    }
    edits.push_back(std::move(edit));
  }
  for (auto [number, sharding] : constraints) {
    Operation *op = getOp(loss, number);
    edits.push_back({getSourceText(op->getLoc()),
                     ("result of " + op->getName().stripDialect()).str(),
                     (ShardingConstraintOp::getOperationName() + " " +
                      getConstraintText(sharding))
                         .str()});
  }
  if (stages.empty() && constraints.empty())
    return edits;
  // With one op more, a cut that is not in the source may be another one.
  const StageLabels &labels = stages.empty() ? getStageLabels(loss) : stages;
  for (size_t number : findLabelsToWrite(loss, labels, source)) {
    Operation *op = getOp(loss, number);
    edits.push_back({getSourceText(op->getLoc()),
                     op->getName().stripDialect().str(),
                     (stageAttrName + " = " + Twine(labels[number])).str()});
  }
  return edits;
}

std::string Edits::getKey() const {
  std::string key;
  llvm::raw_string_ostream os(key);
  for (const auto &[annotation, sharding] : list)
    os << annotation.argument << ' ' << annotation.constraint << ' '
       << annotation.attribute << ' ' << sharding << '\n';
  for (int64_t stage : stages)
    os << stage << ' ';
  for (auto [number, sharding] : constraints)
    os << "behind " << number << ' ' << sharding << '\n';
  return key;
}
