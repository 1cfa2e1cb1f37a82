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

using namespace mlir;
using namespace shardc;

/// Elements up to which an update waits for another one. Larger ones would keep
/// their gradients alive for longer and gain nothing.
static constexpr int64_t mostWaitingElements = 1 << 16;

/// Ops of a kernel of updates at most, where small ones wait and where all are
/// ready: compile time is finite.
static constexpr size_t mostWaitingOps = 192;
static constexpr size_t mostReadyOps = 1024;

/// Operands and results of such a kernel at most: a launch on a GPU passes 511.
static constexpr size_t mostBuffers = 500;

static bool isInUpdate(Operation *op) {
  auto part = op->getAttrOfType<PartAttr>("shardc.part");
  return part && part.getValue() == Part::Update;
}

static bool isUpdate(const KernelFusion::Node &node, int64_t mostElements) {
  return node.isKernel && !node.ops.empty() &&
         llvm::all_of(node.ops, [&](Operation *op) {
           auto type = cast<RankedTensorType>(op->getResult(0).getType());
           return isInUpdate(op) && !isa<DotGeneralOp>(op) &&
                  type.getNumElements() <= mostElements;
         });
}

void KernelFusion::fuseUpdates(int64_t mostElements, size_t mostOps,
                               Predicate mayShare) {
  auto countBuffers = [&](unsigned node) {
    return getOperands(nodes[node]).size() + getResults(nodes[node]).size();
  };
  SmallVector<unsigned> buckets;
  for (unsigned node = 0; node < nodes.size(); ++node) {
    if (!isUpdate(nodes[node], mostElements))
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

void KernelFusion::fuseSmallUpdates() {
  fuseUpdates(mostWaitingElements, mostWaitingOps,
              [](unsigned, unsigned) { return true; });
}

void KernelFusion::fuseReadyUpdates() {
  // The number of the last op before the update that each op needs; -1: none.
  llvm::DenseMap<Operation *, int64_t> waitsFor;
  for (Operation &op : block) {
    int64_t last = -1;
    if (!isInUpdate(&op) && !repeated.contains(&op))
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
  fuseUpdates(std::numeric_limits<int64_t>::max(), mostReadyOps,
              [&](unsigned node, unsigned other) {
                return getLast(node) == getLast(other);
              });
}
