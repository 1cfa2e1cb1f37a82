//===- Regather.cpp - Rematerialised all-gathers of weights ---------------===//

#include "Regather.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModuleQueries.h"

using namespace mlir;
using namespace shardc;

static bool isForward(OpOperand *use) {
  return isInForwardPass(use->getOwner());
}

/// The loop over microbatches that contains all uses; null if there is none.
static AccumulateOp getCommonLoop(ArrayRef<Want> wants) {
  AccumulateOp loop;
  for (const Want &want : wants)
    for (OpOperand *use : want.uses) {
      auto around = use->getOwner()->getParentOfType<AccumulateOp>();
      if (!around || (loop && around != loop))
        return {};
      loop = around;
    }
  return loop;
}

/// The uses in `wants` that belong to one pass.
static WantGroup getPass(ArrayRef<Want> wants, Part pass) {
  WantGroup group{{}, pass, {}, pass == Part::Backward};
  for (const Want &want : wants) {
    Want part{want.layout, {}};
    llvm::copy_if(want.uses, std::back_inserter(part.uses),
                  [&](OpOperand *use) {
                    return isForward(use) == (pass == Part::Forward);
                  });
    if (!part.uses.empty())
      group.wants.push_back(std::move(part));
  }
  group.loop = getCommonLoop(group.wants);
  return group;
}

Regather::Tree Regather::plan(const Layout &from, ArrayRef<Want> wants,
                              RankedTensorType type) {
  SmallVector<Layout> layouts;
  for (const Want &want : wants)
    layouts.push_back(want.layout);
  int64_t elementBytes = getElementBytes(type.getElementType());
  Tree tree;
  tree.nodes = planner.planTree(from, layouts, type.getShape(), elementBytes);
  for (const Delivery &node : tree.nodes) {
    const Layout &source =
        node.source < 0 ? from : tree.nodes[node.source].layout;
    tree.wireBytes +=
        planner.plan(source, node.layout, type.getShape(), elementBytes)
            .wireBytes;
  }
  return tree;
}

int64_t Regather::getGatheredBytes(const Delivery &node, const Layout &from,
                                   RankedTensorType type) const {
  int64_t elements = node.layout.getLocalElements(type.getShape(), mesh);
  return elements > from.getLocalElements(type.getShape(), mesh)
             ? elements * getElementBytes(type.getElementType())
             : 0;
}

/// Bytes of the gathered tensors that are produced for the forward pass and
/// used again in the backward pass, by ops or by reshards.
int64_t Regather::getHeldBytes(const Tree &tree, const Layout &from,
                               ArrayRef<Want> wants,
                               RankedTensorType type) const {
  SmallVector<bool> isMadeEarly(tree.nodes.size(), false);
  SmallVector<bool> isUsedLate(tree.nodes.size(), false);
  for (auto [index, want] : llvm::enumerate(wants)) {
    isMadeEarly[index] = llvm::any_of(want.uses, isForward);
    isUsedLate[index] = !llvm::all_of(want.uses, isForward);
  }
  // A node may precede its source in the list, so repeat until all are marked.
  for (size_t round = 0; round < tree.nodes.size(); ++round)
    for (auto [index, node] : llvm::enumerate(tree.nodes))
      if (node.source >= 0 && isMadeEarly[index])
        isMadeEarly[node.source] = true;
  for (auto [index, node] : llvm::enumerate(tree.nodes))
    if (node.source >= 0 && !isMadeEarly[index])
      isUsedLate[node.source] = true;
  int64_t bytes = 0;
  for (auto [index, node] : llvm::enumerate(tree.nodes))
    if (isMadeEarly[index] && isUsedLate[index])
      bytes += getGatheredBytes(node, from, type);
  return bytes;
}

SmallVector<WantGroup, 1> Regather::group(Value value, const Layout &from,
                                          ArrayRef<Want> wants) {
  WantGroup all;
  all.wants.assign(wants.begin(), wants.end());
  if (!isWeight(value))
    return {all};
  auto type = cast<RankedTensorType>(value.getType());
  Tree tree = plan(from, wants, type);
  int64_t bytes = getHeldBytes(tree, from, wants, type);
  if (bytes == 0) {
    bool isGathered = llvm::any_of(tree.nodes, [&](const Delivery &node) {
      return getGatheredBytes(node, from, type) > 0;
    });
    if (isTaken && isGathered)
      all.pass = isForward(wants.front().uses.front()) ? Part::Forward
                                                       : Part::Backward;
    return {all};
  }
  WantGroup forward = getPass(wants, Part::Forward);
  WantGroup backward = getPass(wants, Part::Backward);
  heldBytes += bytes;
  wireBytes -= tree.wireBytes;
  for (WantGroup *pass : {&forward, &backward})
    wireBytes += (pass->loop ? pass->loop.getCount() : 1) *
                 plan(from, pass->wants, type).wireBytes;
  if (!isTaken)
    return {all};
  return {forward, backward};
}

RegatherAttr Regather::getPrice(MLIRContext *context) const {
  if (heldBytes == 0)
    return {};
  return RegatherAttr::get(context, isTaken, wireBytes, heldBytes,
                           std::nullopt);
}
