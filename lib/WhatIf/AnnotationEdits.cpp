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

void Edits::apply(func::FuncOp loss) const {
  for (const auto &[annotation, sharding] : list) {
    if (annotation.argument >= 0)
      loss.setArgAttr(annotation.argument, annotation.attribute, sharding);
    else
      getConstraint(loss, annotation.constraint).setShardingAttr(sharding);
  }
  if (!stages.empty())
    setStageLabels(loss, stages);
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
      // In the form of the op: without the name of the attribute.
      std::string full;
      llvm::raw_string_ostream(full) << sharding;
      os << "sharding = "
         << StringRef(full).drop_until([](char c) { return c == '<'; });
    }
    edits.push_back(std::move(edit));
  }
  if (stages.empty())
    return edits;
  Block &block = loss.getBody().front();
  for (size_t number : findLabelsToWrite(loss, stages, source)) {
    Operation &op = *std::next(block.begin(), number);
    edits.push_back({getSourceText(op.getLoc()),
                     op.getName().stripDialect().str(),
                     (stageAttrName + " = " + Twine(stages[number])).str()});
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
  return key;
}
