//===- CombineCollectives.cpp - Bucketing of collectives ------------------===//
//
// Gradient bucketing (PyTorch DDP, arXiv 2006.15704), for all kinds of
// collectives. One pass over a block puts every all_reduce, all_gather and
// reduce_scatter into the open bucket of its kind, axes and element type. A new
// bucket is opened if that one is full, or if the merge would make a cycle: a
// bucket that a member depends on must not depend on the bucket of the member.
//
// With rematerialised all-gathers, weights above their average size and the
// gradients beside them stay on their own, because a bucket would hold all of
// its weights at once.
//
// The merged op stands behind the producers of its operands. A topological sort
// moves the ops that depend on it behind it; all other ops keep their order.
//
//===----------------------------------------------------------------------===//

#include "CollectiveCauses.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Transforms/Passes.h"
#include "shardc/Transforms/Pipeline/InputGradients.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Support/Debug.h"

#include <map>
#include <queue>

#define DEBUG_TYPE "shardc-combine-collectives"

namespace shardc {
#define GEN_PASS_DEF_COMBINECOLLECTIVESPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// The limit of buckets of rematerialised all-gathers, in bytes: the average of
/// these all-gathers, so that large weights have a collective of their own. 0
/// if there are none.
static int64_t getRematBucketBytes(func::FuncOp function) {
  int64_t bytes = 0, count = 0;
  function.walk([&](AllGatherOp gather) {
    if (gather->hasAttr(gatheredForAttrName)) {
      bytes += getCollectiveCost(gather)->bytes;
      ++count;
    }
  });
  return count ? (bytes + count - 1) / count : 0;
}

namespace {

bool canMerge(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op);
}

// Sets of buckets are bit vectors that end with their last member.

bool contains(const llvm::BitVector &set, unsigned bucket) {
  return bucket < set.size() && set.test(bucket);
}

void include(llvm::BitVector &set, unsigned bucket) {
  if (set.size() <= bucket)
    set.resize(bucket + 1);
  set.set(bucket);
}

/// The members of one collective, in program order.
struct Bucket {
  SmallVector<Operation *> members;
  int64_t bytes = 0;
};

/// Combines the collectives of one block.
class Combiner {
public:
  Combiner(Block &block, int64_t bucketBytes, int64_t rematBucketBytes)
      : block(block), bucketBytes(bucketBytes),
        rematBucketBytes(rematBucketBytes) {}

  void run() {
    if (isa<AccumulateOp>(block.getParentOp()))
      inputGradients = findInputGradients(block);
    collect();
    bool changed = false;
    for (Bucket &bucket : buckets) {
      LLVM_DEBUG(print(bucket));
      if (bucket.members.size() > 1) {
        merge(bucket);
        changed = true;
      }
    }
    if (changed)
      sortTopologically();
  }

private:
  /// The key of the bucket that `op` belongs to: the kind, the element type,
  /// and the attributes that do not describe a single tensor. In the
  /// microbatches of a pipeline the task counts: the forward pass and both
  /// parts of the backward pass are different tasks.
  std::string getBucketKey(Operation *op) const {
    NamedAttrList attributes(op->getAttrDictionary());
    for (StringRef name : {StringRef("dims"), StringRef(causeAttrName)})
      attributes.erase(name);
    bool isInTask =
        op->hasAttr(stageAttrName) && isa<AccumulateOp>(block.getParentOp());
    if (!isInTask)
      attributes.erase(partAttrName);
    std::string key;
    llvm::raw_string_ostream os(key);
    os << op->getName() << ' ' << attributes.getDictionary(op->getContext())
       << ' '
       << cast<RankedTensorType>(op->getOperand(0).getType()).getElementType()
       << ' ' << (isInTask && inputGradients.contains(op));
    return key;
  }

  /// Fills the buckets in program order.
  void collect() {
    llvm::DenseMap<Operation *, int> memberOf;
    llvm::DenseMap<Operation *, llvm::BitVector> dependencesOf;
    std::map<std::string, int> open;
    for (Operation &op : block) {
      llvm::BitVector dependences;
      for (Value operand : getUsedValues(&op))
        if (Operation *producer = operand.getDefiningOp()) {
          dependences |= dependencesOf[producer];
          if (auto it = memberOf.find(producer); it != memberOf.end())
            include(dependences, it->second);
        }
      if (canMerge(&op) && !isAlone(&op)) {
        llvm::BitVector all = getClosure(dependences);
        auto [it, isNew] = open.try_emplace(getBucketKey(&op), -1);
        if (isNew || !accepts(it->second, &op, all)) {
          it->second = buckets.size();
          buckets.emplace_back();
          // No bucket depends on it yet.
          bucketDependences.push_back(std::move(all));
        } else {
          addDependences(it->second, all);
        }
        Bucket &bucket = buckets[it->second];
        bucket.members.push_back(&op);
        bucket.bytes += getCollectiveCost(&op)->bytes;
        memberOf[&op] = it->second;
      }
      dependencesOf[&op] = std::move(dependences);
    }
  }

  /// Whether `rematBucketBytes` bounds the bucket of `op`: it gathers a weight
  /// for one pass only or, in a function with such weights, scatters a
  /// gradient.
  bool hasRematLimit(Operation *op) const {
    return op->hasAttr(gatheredForAttrName) ||
           (rematBucketBytes > 0 && isa<ReduceScatterOp>(op));
  }

  /// Whether `op` exceeds `rematBucketBytes` by itself. Such a collective has
  /// no bucket and leaves that of smaller ones open.
  bool isAlone(Operation *op) const {
    return hasRematLimit(op) && getCollectiveCost(op)->bytes > rematBucketBytes;
  }

  /// The buckets in `dependences` and those that they depend on.
  llvm::BitVector getClosure(const llvm::BitVector &dependences) const {
    llvm::BitVector indirect;
    // Later buckets mostly depend on the earlier ones, which are done then.
    for (int bucket = dependences.find_last(); bucket >= 0;
         bucket = dependences.find_prev(bucket))
      if (!contains(indirect, bucket))
        indirect |= bucketDependences[bucket];
    llvm::BitVector all = dependences;
    all |= indirect;
    return all;
  }

  /// Whether bucket `index` has room for `op`, which depends on the buckets
  /// `all`, directly or not, and would not come to depend on itself.
  bool accepts(int index, Operation *op, const llvm::BitVector &all) const {
    int64_t bytes = buckets[index].bytes + getCollectiveCost(op)->bytes;
    if ((bucketBytes > 0 && bytes > bucketBytes) ||
        (hasRematLimit(op) && bytes > rematBucketBytes))
      return false;
    return !contains(all, index);
  }

  /// Adds the closure `all` to the dependences of bucket `index` and of the
  /// buckets that depend on it.
  void addDependences(int index, const llvm::BitVector &all) {
    if (!all.test(bucketDependences[index]))
      return;
    bucketDependences[index] |= all;
    for (llvm::BitVector &other : bucketDependences)
      if (contains(other, index))
        other |= all;
  }

  /// Replaces the members of `bucket` by one op.
  void merge(Bucket &bucket) {
    Operation *first = bucket.members.front();
    SmallVector<Value> operands;
    SmallVector<Type> types;
    SmallVector<Location> locs;
    SmallVector<int64_t> dims;
    auto part = Part::Forward;
    Operation *position = first->getPrevNode();
    for (Operation *op : bucket.members) {
      operands.append(op->operand_begin(), op->operand_end());
      types.append(op->result_type_begin(), op->result_type_end());
      locs.push_back(op->getLoc());
      if (auto attr = op->getAttrOfType<DenseI64ArrayAttr>("dims"))
        dims.append(attr.asArrayRef().begin(), attr.asArrayRef().end());
      if (auto attr = op->getAttrOfType<PartAttr>(partAttrName))
        part = std::max(part, attr.getValue());
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && producer->getBlock() == &block &&
            (!position || position->isBeforeInBlock(producer)))
          position = producer;
    }
    OpBuilder builder(first->getContext());
    if (position)
      builder.setInsertionPointAfter(position);
    else
      builder.setInsertionPointToStart(&block);
    OperationState state(builder.getFusedLoc(locs), first->getName(), operands,
                         types, first->getAttrs());
    Operation *merged = builder.create(state);
    if (!dims.empty())
      merged->setAttr("dims", builder.getDenseI64ArrayAttr(dims));
    merged->setAttr(partAttrName, PartAttr::get(builder.getContext(), part));
    setJoinedCause(merged, bucket.members);
    unsigned result = 0;
    for (Operation *op : bucket.members) {
      for (Value old : op->getResults())
        old.replaceAllUsesWith(merged->getResult(result++));
      op->erase();
    }
  }

  static void print(const Bucket &bucket) {
    llvm::dbgs() << "bucket of " << bucket.members.size() << ", "
                 << bucket.bytes << " bytes:";
    for (Operation *op : bucket.members)
      llvm::dbgs() << "\n  " << describeOp(op) << ", "
                   << getCollectiveCost(op)->bytes << " bytes";
    llvm::dbgs() << '\n';
  }

  /// Topological sort by Kahn's algorithm; among ops that are ready, the first
  /// in the present order comes next.
  void sortTopologically() {
    SmallVector<Operation *> ops;
    llvm::DenseMap<Operation *, int> index;
    for (Operation &op : block) {
      index[&op] = ops.size();
      ops.push_back(&op);
    }
    SmallVector<int> inDegree(ops.size(), 0);
    for (auto [position, op] : llvm::enumerate(ops))
      for (Value operand : getUsedValues(op))
        inDegree[position] += operand.getDefiningOp() != nullptr;
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    Operation *terminator = block.getTerminator();
    for (auto [position, count] : llvm::enumerate(inDegree))
      if (count == 0 && ops[position] != terminator)
        ready.push(position);
    while (!ready.empty()) {
      Operation *op = ops[ready.top()];
      ready.pop();
      op->moveBefore(terminator);
      for (OpOperand &use : op->getUses()) {
        Operation *user = getUserInBlock(use.get(), use.getOwner());
        int position = index[user];
        if (--inDegree[position] == 0 && user != terminator)
          ready.push(position);
      }
    }
  }

  Block &block;
  int64_t bucketBytes;
  /// The limit of buckets of rematerialised all-gathers and of the gradients
  /// beside them, in bytes; 0 if there are no such all-gathers.
  int64_t rematBucketBytes;
  std::vector<Bucket> buckets;
  /// By bucket, the buckets that its members depend on: transitive closure.
  std::vector<llvm::BitVector> bucketDependences;
  /// In the loop of a pipeline, the ops of the first part of the backward pass.
  llvm::DenseSet<Operation *> inputGradients;
};

struct CombineCollectivesPass
    : shardc::impl::CombineCollectivesPassBase<CombineCollectivesPass> {
  using Base = shardc::impl::CombineCollectivesPassBase<CombineCollectivesPass>;
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Partition)))
      return signalPassFailure();
    if (bucketBytes < 0) {
      getOperation().emitError("bucket-bytes: expected 0 (no limit) or more, "
                               "found ")
          << bucketBytes.getValue();
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && function.getBody().hasOneBlock())
        for (Block *block : getBlocks(function))
          Combiner(*block, bucketBytes, getRematBucketBytes(function)).run();
  }
};

} // namespace
