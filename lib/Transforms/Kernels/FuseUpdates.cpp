//===- FuseUpdates.cpp - Which updates share a kernel ---------------------===//
//
// The update has a few ops for each parameter, which depend on no other
// parameter's. What shares a kernel begins when the last of its operands is
// there, so gradients live until then: small ones may, and those that wait for
// the same gradient anyway, as all of a bucket do and all that a norm clips,
// lose nothing.
//
//===----------------------------------------------------------------------===//

#include "KernelFusion.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

using namespace mlir;
using namespace shardc;

/// Elements up to which an update waits for another one. Larger ones would keep
/// gradients alive for longer and gain nothing.
static constexpr int64_t mostWaitingElements = 1 << 16;

/// Ops of a kernel of updates at most, where small ones wait and where all are
/// ready: compile time is finite.
static constexpr size_t mostWaitingOps = 192;
static constexpr size_t mostReadyOps = 1024;

/// Operands and results of such a kernel at most: a launch on a GPU passes 511.
static constexpr size_t mostBuffers = 500;

static bool isInUpdate(Operation *op) {
  auto part = op->getAttrOfType<PartAttr>(partAttrName);
  return part && part.getValue() == Part::Update;
}

static bool isSmall(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return type.getNumElements() <= mostWaitingElements;
}

void KernelFusion::fuseNodes(OpPredicate mayFuse, size_t mostOps,
                             Predicate mayShare) {
  auto countBuffers = [&](unsigned node) {
    return getOperands(nodes[node]).size() + getResults(nodes[node]).size();
  };
  SmallVector<unsigned> buckets;
  for (unsigned node = 0; node < nodes.size(); ++node) {
    if (!nodes[node].isKernel || nodes[node].ops.empty() ||
        llvm::any_of(nodes[node].ops, [&](Operation *op) {
          return isa<DotGeneralOp>(op) || !mayFuse(op);
        }))
      continue;
    auto bucket = llvm::find_if(buckets, [&](unsigned other) {
      return mayShare(node, other) &&
             nodes[other].ops.size() + nodes[node].ops.size() <= mostOps &&
             countBuffers(other) + countBuffers(node) <= mostBuffers &&
             !reaches({other}, node) && !reaches({node}, other);
    });
    if (bucket != buckets.end())
      merge(*bucket, node);
    else
      buckets.push_back(node);
  }
}

void KernelFusion::fuseSmallNodes() {
  fuseNodes([](Operation *op) { return isSmall(op) && isInUpdate(op); },
            mostWaitingOps, [](unsigned, unsigned) { return true; });
}

void KernelFusion::fuseReadyUpdates() {
  // The number of the last op that each op needs of those before the update and
  // of its collectives; -1: none.
  llvm::DenseMap<Operation *, int64_t> waitsFor;
  for (Operation &op : block) {
    int64_t last = -1;
    const Node *node = getNode(&op);
    if (node && !(node->isKernel && isInUpdate(&op)))
      last = positions.lookup(&op);
    else
      for (Value operand : op.getOperands())
        if (Operation *producer = getProducer(operand))
          last = std::max(last, waitsFor.lookup(producer));
    waitsFor[&op] = last;
  }
  auto getLast = [&](unsigned node) {
    int64_t last = -1;
    for (Operation *op : nodes[node].ops)
      last = std::max(last, waitsFor.lookup(op));
    return last;
  };
  fuseNodes(isInUpdate, mostReadyOps, [&](unsigned node, unsigned other) {
    return getLast(node) == getLast(other);
  });
}
