//===- KernelFusion.cpp - Which ops become one kernel ---------------------===//

#include "KernelFusion.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/Debug.h"

#include <map>
#include <queue>

#define DEBUG_TYPE "shardc-fuse-kernels"

using namespace mlir;
using namespace shardc;

/// Ops in one nest at most: registers and compile time are finite.
static constexpr size_t maxOps = 96;

/// Elements up to which an update waits for another one. Larger ones would keep
/// gradients alive for longer and gain nothing.
static constexpr int64_t mostWaitingElements = 1 << 16;

/// Ops of a kernel of updates at most, where small ones wait and where all are
/// ready: compile time is finite.
static constexpr size_t mostWaitingOps = 192;
static constexpr size_t mostReadyOps = 1024;

/// Summands up to which a sum may be beside other nests.
static constexpr int64_t mostSummandsBeside = 256;

/// Operands and results of such a kernel at most: a launch on a GPU passes 511.
static constexpr size_t mostBuffers = 500;

static int64_t getNumElements(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

static int64_t sumBytes(ArrayRef<Value> values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += getNumBytes(value.getType());
  return bytes;
}

static void sortByPosition(SmallVectorImpl<Operation *> &ops) {
  llvm::stable_sort(ops, [](Operation *lhs, Operation *rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
}

Attribute KernelFusion::getPart(const Node &node) {
  return node.ops.front()->getAttr(partAttrName);
}

static bool isRecomputed(Operation *op) {
  return op->hasAttr(recomputedAttrName);
}

/// Whether the op runs outside of kernels.
static bool isOutside(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp,
             CollectivePermuteOp, TransferOp, GemmOp, KernelOp, AccumulateOp>(
             op) ||
         op->hasTrait<OpTrait::IsTerminator>();
}

/// Whether computing the op again per row is cheaper than storing its result.
static bool isCheap(Operation *op) {
  return !isa<ExpOp, Expm1Op, LogOp, Log1pOp, TanhOp, ErfOp, CosOp, SinOp,
              DivOp, RemainderOp, PowerOp, SqrtOp, RsqrtOp, RandomUniformOp,
              ReduceOp, DotGeneralOp>(op);
}

/// Whether `nest` also stores what it adds up in columns so few that on a CPU
/// one worker would do so for all rows, of which each one could have some. The
/// workers divide such nests by columns (KernelsToCPU/NestPlan).
static bool storesInOneBlock(const KernelNest &nest) {
  constexpr int64_t columnsOfBlock = 32, leastElements = 1 << 10;
  if (nest.kind != NestKind::Columns || nest.fullResults.empty())
    return false;
  int64_t elements = 1, columns = 1;
  for (auto [dim, size] : llvm::enumerate(nest.shape)) {
    elements *= size;
    if (!llvm::is_contained(nest.reduced, static_cast<int64_t>(dim)))
      columns *= size;
  }
  return columns <= columnsOfBlock && elements >= leastElements;
}

KernelFusion::KernelFusion(Block &block) : block(block) { collect(); }

Operation *KernelFusion::getProducer(Value value) const {
  return value.getParentBlock() == &block ? value.getDefiningOp() : nullptr;
}

bool KernelFusion::mustBeStored(Operation *op) const {
  for (Operation *user : op->getUsers())
    if (isOutside(user) || user->getBlock() != &block ||
        isa<DotGeneralOp>(user) || movesLanesApart(user))
      return true;
  return op->use_empty();
}

void KernelFusion::collect() {
  for (Operation &op : block) {
    positions[&op] = positions.size();
    if (isFreeToRepeat(&op) && !mustBeStored(&op)) {
      repeated.insert(&op);
      continue;
    }
    nodeOf[&op] = nodes.size();
    nodes.push_back({{&op}, !isOutside(&op)});
  }
}

const KernelFusion::Node *KernelFusion::getNode(Operation *op) const {
  auto it = nodeOf.find(op);
  return it == nodeOf.end() ? nullptr : &nodes[it->second];
}

llvm::SetVector<unsigned> KernelFusion::getUserNodes(unsigned node) const {
  llvm::SetVector<unsigned> result;
  SmallVector<Operation *> worklist(nodes[node].ops);
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    for (Operation *user : op->getUsers()) {
      user = block.findAncestorOpInBlock(*user);
      if (repeated.contains(user))
        worklist.push_back(user);
      else if (nodeOf.lookup(user) != node)
        result.insert(nodeOf.lookup(user));
    }
  }
  return result;
}

llvm::SetVector<unsigned> KernelFusion::getProducerNodes(unsigned node) const {
  llvm::SetVector<unsigned> result;
  SmallVector<Operation *> worklist(nodes[node].ops);
  std::reverse(worklist.begin(), worklist.end());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    for (Value operand : getUsedValues(op)) {
      Operation *def = getProducer(operand);
      if (!def)
        continue;
      if (repeated.contains(def))
        worklist.push_back(def);
      else if (nodeOf.lookup(def) != node)
        result.insert(nodeOf.lookup(def));
    }
  }
  return result;
}

bool KernelFusion::reaches(SmallVector<unsigned> from, unsigned to) const {
  std::vector<bool> seen(nodes.size());
  while (!from.empty()) {
    unsigned node = from.pop_back_val();
    if (node == to)
      return true;
    if (seen[node])
      continue;
    seen[node] = true;
    for (unsigned user : getUserNodes(node))
      from.push_back(user);
  }
  return false;
}

bool KernelFusion::hasIndirectPath(unsigned from, unsigned to) const {
  SmallVector<unsigned> others;
  for (unsigned user : getUserNodes(from))
    if (user != to)
      others.push_back(user);
  return reaches(std::move(others), to);
}

SmallVector<Value> KernelFusion::getResults(const Node &node) const {
  SmallVector<Value> results;
  llvm::SmallPtrSet<Operation *, 8> inside(node.ops.begin(), node.ops.end());
  for (Operation *op : node.ops) {
    for (Value result : op->getResults()) {
      // A repeated user counts by where it is repeated.
      SmallVector<Operation *> users(result.getUsers());
      bool isUsed = result.use_empty();
      while (!users.empty() && !isUsed) {
        Operation *user = users.pop_back_val();
        if (repeated.contains(user))
          llvm::append_range(users, user->getUsers());
        else if (!inside.contains(user))
          isUsed = true;
      }
      if (isUsed)
        results.push_back(result);
    }
  }
  return results;
}

llvm::SetVector<Value> KernelFusion::getOperands(const Node &node) const {
  llvm::SetVector<Value> operands;
  llvm::SmallPtrSet<Operation *, 8> inside(node.ops.begin(), node.ops.end());
  std::function<void(Operation *)> collect = [&](Operation *op) {
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && repeated.contains(def))
        collect(def);
      else if (!def || !inside.contains(def))
        operands.insert(operand);
    }
  };
  for (Operation *op : node.ops)
    collect(op);
  return operands;
}

/// `ops` and the ops that they recompute, in program order.
static SmallVector<Operation *>
addRepeated(ArrayRef<Operation *> ops,
            const llvm::SetVector<Operation *> &repeated) {
  llvm::SetVector<Operation *> all;
  std::function<void(Operation *)> add = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp())
        if (repeated.contains(def))
          add(def);
    all.insert(op);
  };
  for (Operation *op : ops)
    add(op);
  SmallVector<Operation *> result = all.takeVector();
  sortByPosition(result);
  return result;
}

bool KernelFusion::isProfitable(const Node &producer,
                                const Node &consumer) const {
  // An expensive value of a smaller shape would be computed once per row.
  auto getLargest = [](const Node &node) {
    int64_t largest = 0;
    for (Operation *op : node.ops) {
      for (Value result : op->getResults())
        largest = std::max(largest, getNumElements(result));
      if (isa<ReduceOp>(op))
        largest = std::max(largest, getNumElements(op->getOperand(0)));
    }
    return largest;
  };
  int64_t before = getLargest(producer), after = getLargest(consumer);
  if (before >= after)
    return true;
  bool isReduced = llvm::any_of(
      producer.ops, [](Operation *op) { return isa<ReduceOp>(op); });
  bool isScalar = before == 1;
  return isReduced || isScalar || llvm::all_of(producer.ops, isCheap);
}

void KernelFusion::merge(unsigned into, unsigned from) {
  for (Operation *op : nodes[from].ops) {
    nodeOf[op] = into;
    nodes[into].ops.push_back(op);
  }
  nodes[from].ops.clear();
  sortByPosition(nodes[into].ops);
}

bool KernelFusion::tryFuse(unsigned producer, unsigned consumer) {
  const Node &first = nodes[producer], &second = nodes[consumer];
  if (!first.isKernel || !second.isKernel)
    return false;
  auto refuse = [&](const char *reason) {
    LLVM_DEBUG(llvm::dbgs()
               << "do not fuse " << describeOp(first.ops.back()) << " into "
               << describeOp(second.ops.back()) << ": " << reason << '\n');
    return false;
  };
  if (!areInOneTask(first.ops.front(), second.ops.front()))
    return refuse("they are in different tasks");
  // The kernels of gradients shall be those without recomputation: a sum is
  // formed in an order that depends on its kernel.
  if (isRecomputed(first.ops.front()) != isRecomputed(second.ops.front()))
    return refuse("one of them is repeated");
  if (first.ops.size() + second.ops.size() > maxOps)
    return refuse("too many ops");
  if (!isProfitable(first, second))
    return refuse("it would be computed more than once");
  Node fused;
  fused.ops = first.ops;
  llvm::append_range(fused.ops, second.ops);
  sortByPosition(fused.ops);
  SmallVector<Value> results = getResults(fused);
  auto nest = classifyNest(addRepeated(fused.ops, repeated), results);
  if (!nest)
    return refuse("not one loop nest");
  if (!fewLaunches && storesInOneBlock(*nest))
    return refuse("one worker would have all rows");
  // Values that cross parts of the step live long: to compute a little more
  // from values that are stored anyway beats storing more.
  if (getPart(first) != getPart(second) &&
      sumBytes(results) > sumBytes(getResults(first)))
    return refuse("more bytes would live until another part of the step");
  if (hasIndirectPath(producer, consumer))
    return refuse("a cycle of kernels");
  merge(producer, consumer);
  return true;
}

// The update has a few ops for each parameter, independent of those of other
// parameters. A kernel that several share begins when the last of its operands
// is there, so gradients live until then. Small gradients may. Updates that
// wait for the same gradient anyway lose nothing: all of a bucket do, and all
// that the global norm clips.

static bool isInUpdate(Operation *op) {
  auto part = op->getAttrOfType<PartAttr>(partAttrName);
  return part && part.getValue() == Part::Update;
}

static bool isSmall(Operation *op) {
  return getNumElements(op->getResult(0)) <= mostWaitingElements;
}

/// Whether the op is an update's of a small tensor.
static bool isSmallUpdate(Operation *op) {
  return isSmall(op) && isInUpdate(op) && !isa<DotGeneralOp>(op);
}

/// Whether a kernel may have other nests beside the one with this op. The block
/// of a long sum has more threads, and with them all nests of its kernel: the
/// order of their sums would depend on their neighbours.
static bool mayHaveNeighbours(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return isSmall(op) &&
         (!reduce || getNumElements(reduce.getOperand()) <
                         mostSummandsBeside * getNumElements(reduce));
}

void KernelFusion::fuseNodes(OpPredicate mayFuse, size_t mostOps,
                             KeyOf getKey) {
  auto countBuffers = [&](unsigned node) {
    return getOperands(nodes[node]).size() + getResults(nodes[node]).size();
  };
  llvm::DenseMap<int64_t, SmallVector<unsigned>> bucketsByKey;
  for (unsigned node = 0; node < nodes.size(); ++node) {
    if (!nodes[node].isKernel || nodes[node].ops.empty() ||
        !llvm::all_of(nodes[node].ops, mayFuse))
      continue;
    SmallVector<unsigned> &buckets = bucketsByKey[getKey(nodes[node])];
    auto bucket = llvm::find_if(buckets, [&](unsigned other) {
      return areInOneTask(nodes[other].ops.front(), nodes[node].ops.front()) &&
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
  fuseNodes(isSmallUpdate, mostWaitingOps, [](const Node &) { return 0; });
}

/// Groups at equal depths of the graph have no path between them. Updates stay
/// apart: what they write is read until then.
void KernelFusion::fuseSideBySide() {
  llvm::DenseMap<Operation *, int64_t> depths;
  for (const Node *node : getOrder()) {
    int64_t depth = 0;
    for (unsigned producer : getProducerNodes(nodeOf.lookup(node->ops[0])))
      depth = std::max(depth, depths.lookup(nodes[producer].ops[0]) + 1);
    depths[node->ops[0]] = depth;
  }
  std::map<std::tuple<int64_t, bool, bool>, int64_t> keys;
  fuseNodes(mayHaveNeighbours, mostWaitingOps, [&](const Node &node) {
    Operation *first = node.ops[0];
    return keys
        .try_emplace(
            {depths.lookup(first), isInUpdate(first), isRecomputed(first)},
            keys.size())
        .first->second;
  });
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
  auto mayFuse = [](Operation *op) {
    return isInUpdate(op) && !isa<DotGeneralOp>(op);
  };
  fuseNodes(mayFuse, mostReadyOps, [&](const Node &node) {
    int64_t last = -1;
    for (Operation *op : node.ops)
      last = std::max(last, waitsFor.lookup(op));
    return last;
  });
}

void KernelFusion::run(bool wantsFewLaunches) {
  fewLaunches = wantsFewLaunches;
  for (Operation &op : block) {
    if (repeated.contains(&op))
      continue;
    bool changed = true;
    while (changed) {
      changed = false;
      unsigned consumer = nodeOf.lookup(&op);
      for (unsigned producer : getProducerNodes(consumer)) {
        if (tryFuse(producer, consumer)) {
          changed = true;
          break;
        }
      }
    }
  }
  if (fewLaunches)
    fuseReadyUpdates();
  fuseSmallNodes();
  if (fewLaunches)
    fuseSideBySide();
}

SmallVector<const KernelFusion::Node *> KernelFusion::getOrder() {
  // Kahn's algorithm; among the ready nodes the one whose last op came first.
  SmallVector<unsigned> missing(nodes.size(), 0);
  auto getPosition = [&](unsigned node) {
    return positions.lookup(nodes[node].ops.back());
  };
  using Entry = std::pair<unsigned, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  for (unsigned node = 0; node < nodes.size(); ++node) {
    if (nodes[node].ops.empty())
      continue;
    missing[node] = getProducerNodes(node).size();
    if (missing[node] == 0)
      ready.push({getPosition(node), node});
  }
  SmallVector<const Node *> order;
  while (!ready.empty()) {
    unsigned node = ready.top().second;
    ready.pop();
    order.push_back(&nodes[node]);
    for (unsigned user : getUserNodes(node))
      if (--missing[user] == 0)
        ready.push({getPosition(user), user});
  }
  return order;
}
