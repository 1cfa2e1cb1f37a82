//===- StageLabels.cpp - The stages of a loss function's ops --------------===//

#include "shardc/WhatIf/StageLabels.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <set>

using namespace mlir;
using namespace shardc;

SourceAnnotations shardc::getSourceAnnotations(ModuleOp module) {
  SourceAnnotations source;
  module.walk([&](Operation *op) {
    if (auto stage = op->getAttrOfType<IntegerAttr>(stageAttrName))
      source.stages[getSourceText(op->getLoc())] = stage.getInt();
    if (auto mesh = dyn_cast<MeshOp>(op))
      for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
        source.axes.insert(axis.getName().str());
  });
  return source;
}

StageLabels shardc::getStageLabels(func::FuncOp loss) {
  StageLabels labels;
  for (Operation &op : loss.getBody().front().without_terminator())
    if (auto stage = op.getAttrOfType<IntegerAttr>(stageAttrName))
      labels.push_back(stage.getInt());
  return labels;
}

void shardc::setStageLabels(func::FuncOp loss, const StageLabels &labels) {
  Builder builder(loss.getContext());
  for (auto [op, stage] :
       llvm::zip_equal(loss.getBody().front().without_terminator(), labels))
    op.setAttr(stageAttrName, builder.getI64IntegerAttr(stage));
}

/// The stages that `import` gives the ops of `loss` if those of `labelled` have
/// their `labels` and the others none.
static StageLabels assignStages(func::FuncOp loss, const StageLabels &labels,
                                const std::set<size_t> &labelled) {
  auto module = loss->getParentOfType<ModuleOp>();
  ScopedDiagnosticHandler silence(module.getContext(),
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy = module.clone();
  auto copied = copy->lookupSymbol<func::FuncOp>(loss.getName());
  setStageLabels(copied, labels);
  for (auto [number, op] :
       llvm::enumerate(copied.getBody().front().without_terminator()))
    if (!labelled.count(number))
      op.removeAttr(stageAttrName);
  PassManager manager(module.getContext());
  manager.addPass(createAssignStagesPass());
  if (failed(manager.run(*copy)))
    return labels;
  return getStageLabels(copied);
}

std::vector<size_t> shardc::findLabelsToWrite(func::FuncOp loss,
                                              const StageLabels &labels,
                                              const SourceAnnotations &source) {
  // By op that of the source, or -1.
  StageLabels before;
  for (Operation &op : loss.getBody().front().without_terminator()) {
    auto found = source.stages.find(getSourceText(op.getLoc()));
    before.push_back(found == source.stages.end() ? -1 : found->second);
  }
  StageLabels now = getStageLabels(loss);
  std::set<size_t> labelled, seen;
  for (size_t op = 0; op < labels.size(); ++op)
    if (before[op] >= 0 || labels[op] != now[op]) {
      labelled.insert(op);
      seen.insert(labels[op]);
    }
  // An op that has another label in the source, or that moves, keeps it.
  const std::set<size_t> needed = labelled;
  // Every stage needs a label: that of its last op.
  for (size_t op = labels.size(); op-- > 0;)
    if (seen.insert(labels[op]).second)
      labelled.insert(op);
  // The minimum cuts divide the other ops. Where an op would be on another
  // stage, it gets a label: the first of those that come too early, which keeps
  // all that need its result, or else the last of those that come too late.
  while (true) {
    StageLabels found = assignStages(loss, labels, labelled);
    std::optional<size_t> early, late;
    for (size_t op = 0; op < labels.size(); ++op) {
      if (found[op] < labels[op] && !early)
        early = op;
      if (found[op] > labels[op])
        late = op;
    }
    if (!early && !late)
      break;
    labelled.insert(early ? *early : *late);
  }
  // Later labels may have made earlier ones superfluous.
  for (size_t op : llvm::to_vector(labelled)) {
    bool isOnlyOne = llvm::count_if(labelled, [&](size_t other) {
                       return labels[other] == labels[op];
                     }) == 1;
    if (needed.count(op) || isOnlyOne)
      continue;
    labelled.erase(op);
    if (assignStages(loss, labels, labelled) != labels)
      labelled.insert(op);
  }
  std::vector<size_t> toWrite;
  for (size_t op : labelled)
    if (before[op] != labels[op])
      toWrite.push_back(op);
  return toWrite;
}
