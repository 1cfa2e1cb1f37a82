//===- Regather.cpp - Rematerialised all-gathers of weights ---------------===//

#include "Regather.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModuleQueries.h"

#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-insert-reshards"

using namespace mlir;
using namespace shardc;

static bool isForward(OpOperand *use) {
  return isInForwardPass(use->getOwner());
}

/// The loop over microbatches that contains all uses; null if there is none.
static AccumulateOp getCommonLoop(ArrayRef<Consumer> consumers) {
  AccumulateOp loop;
  for (const Consumer &consumer : consumers)
    for (OpOperand *use : consumer.uses) {
      auto around = use->getOwner()->getParentOfType<AccumulateOp>();
      if (!around || (loop && around != loop))
        return {};
      loop = around;
    }
  return loop;
}

/// The uses in `consumers` that belong to one pass.
static ConsumerGroup getPass(ArrayRef<Consumer> consumers, Part pass) {
  ConsumerGroup group{{}, pass, {}, pass == Part::Backward};
  for (const Consumer &consumer : consumers) {
    Consumer part{consumer.layout, {}};
    llvm::copy_if(consumer.uses, std::back_inserter(part.uses),
                  [&](OpOperand *use) {
                    return isForward(use) == (pass == Part::Forward);
                  });
    if (!part.uses.empty())
      group.consumers.push_back(std::move(part));
  }
  group.loop = getCommonLoop(group.consumers);
  return group;
}

Regather::Tree Regather::plan(const Layout &from, ArrayRef<Consumer> consumers,
                              RankedTensorType type) {
  SmallVector<Layout> layouts;
  for (const Consumer &consumer : consumers)
    layouts.push_back(consumer.layout);
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
                               ArrayRef<Consumer> consumers,
                               RankedTensorType type) const {
  SmallVector<bool> isInForward(tree.nodes.size(), false);
  SmallVector<bool> isInBackward(tree.nodes.size(), false);
  for (auto [index, consumer] : llvm::enumerate(consumers)) {
    isInForward[index] = llvm::any_of(consumer.uses, isForward);
    isInBackward[index] = !llvm::all_of(consumer.uses, isForward);
  }
  // A node may precede its source in the list, so repeat until all are marked.
  for (size_t round = 0; round < tree.nodes.size(); ++round)
    for (auto [index, node] : llvm::enumerate(tree.nodes))
      if (node.source >= 0 && isInForward[index])
        isInForward[node.source] = true;
  for (auto [index, node] : llvm::enumerate(tree.nodes))
    if (node.source >= 0 && !isInForward[index])
      isInBackward[node.source] = true;
  int64_t bytes = 0;
  for (auto [index, node] : llvm::enumerate(tree.nodes))
    if (isInForward[index] && isInBackward[index])
      bytes += getGatheredBytes(node, from, type);
  return bytes;
}

SmallVector<ConsumerGroup, 1> Regather::group(Value value, const Layout &from,
                                              ArrayRef<Consumer> consumers) {
  ConsumerGroup all;
  all.consumers.assign(consumers.begin(), consumers.end());
  if (!isWeight(value))
    return {all};
  auto type = cast<RankedTensorType>(value.getType());
  Tree tree = plan(from, consumers, type);
  int64_t bytes = getHeldBytes(tree, from, consumers, type);
  if (bytes == 0) {
    bool isGathered = llvm::any_of(tree.nodes, [&](const Delivery &node) {
      return getGatheredBytes(node, from, type) > 0;
    });
    if (isTaken && isGathered)
      all.pass = isForward(consumers.front().uses.front()) ? Part::Forward
                                                           : Part::Backward;
    return {all};
  }
  ConsumerGroup forward = getPass(consumers, Part::Forward);
  ConsumerGroup backward = getPass(consumers, Part::Backward);
  heldBytes += bytes;
  wireBytes -= tree.wireBytes;
  for (ConsumerGroup *pass : {&forward, &backward})
    wireBytes += (pass->loop ? pass->loop.getCount() : 1) *
                 plan(from, pass->consumers, type).wireBytes;
  LLVM_DEBUG(llvm::dbgs() << (isTaken ? "gather again" : "hold")
                          << ": weight at " << getSourceLine(value.getLoc())
                          << ", " << bytes << " bytes between the passes\n");
  if (!isTaken)
    return {all};
  return {forward, backward};
}

RegatherAttr Regather::getCost(MLIRContext *context) const {
  if (heldBytes == 0)
    return {};
  return RegatherAttr::get(context, isTaken, wireBytes, heldBytes,
                           std::nullopt);
}
