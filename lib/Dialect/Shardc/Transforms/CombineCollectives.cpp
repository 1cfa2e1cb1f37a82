//===- CombineCollectives.cpp - Merge collectives of the same kind --------===//
//
// Walks each block of a program once and puts every all_reduce, all_gather and
// reduce_scatter into the open bucket of its kind, axes and element type,
// unless the bucket is full or the merge would make a cycle: buckets that a
// member depends on must not depend on the bucket. The merged op stands after
// the last operand; what depends on it moves below it, and everything else
// stays in order.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Analysis/WireBytes.h"
#include "shardc/Dialect/Shardc/Transforms/Passes.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <queue>

namespace shardc {
#define GEN_PASS_DEF_COMBINECOLLECTIVESPASS
#include "shardc/Dialect/Shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// The causes named before the rest is only counted.
constexpr size_t maxCauses = 8;

bool canMerge(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op);
}

/// What collectives of one bucket have in common, as text.
std::string getKey(Operation *op) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << op->getName() << ' ' << op->getAttr("axes") << ' '
     << op->getAttr("kind") << ' '
     << cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  return key;
}

int64_t getBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getOperandTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    bytes += tensor.getNumElements() * getElementBytes(tensor.getElementType());
  }
  return bytes;
}

/// The causes of `members`, each once.
std::string joinCauses(ArrayRef<Operation *> members) {
  SmallVector<StringRef> causes;
  for (Operation *op : members)
    if (auto cause = op->getAttrOfType<StringAttr>("shardc.cause"))
      if (!llvm::is_contained(causes, cause.getValue()))
        causes.push_back(cause.getValue());
  std::string text = llvm::join(ArrayRef(causes).take_front(maxCauses), "; ");
  if (causes.size() > maxCauses)
    text += "; and " + std::to_string(causes.size() - maxCauses) + " more";
  return text;
}

struct Bucket {
  SmallVector<Operation *> members;
  int64_t bytes = 0;
};

class Combiner {
public:
  Combiner(Block &block, MeshOp mesh, int64_t bucketBytes)
      : block(block), mesh(mesh), bucketBytes(bucketBytes) {}

  void run() {
    mergeNestedReductions();
    collect();
    bool changed = false;
    for (Bucket &bucket : buckets)
      if (bucket.members.size() > 1) {
        merge(bucket);
        changed = true;
      }
    if (changed)
      sort();
  }

private:
  /// A reduction of a reduction that nothing else uses is one over both axes.
  void mergeNestedReductions() {
    for (auto outer : llvm::make_early_inc_range(block.getOps<AllReduceOp>())) {
      if (outer.getNumOperands() != 1)
        continue;
      auto inner = outer.getOperand(0).getDefiningOp<AllReduceOp>();
      if (!inner || inner.getNumOperands() != 1 || !inner->hasOneUse() ||
          inner.getKind() != outer.getKind())
        continue;
      SmallVector<Attribute> axes(inner.getAxes().getValue());
      axes.append(outer.getAxes().begin(), outer.getAxes().end());
      llvm::sort(axes, [&](Attribute lhs, Attribute rhs) {
        return mesh.getAxisIndex(cast<StringAttr>(lhs).getValue()) <
               mesh.getAxisIndex(cast<StringAttr>(rhs).getValue());
      });
      Operation *members[] = {inner, outer};
      if (std::string cause = joinCauses(members); !cause.empty())
        outer->setAttr("shardc.cause",
                       StringAttr::get(outer.getContext(), cause));
      outer.setAxesAttr(ArrayAttr::get(outer.getContext(), axes));
      // Metadata keeps the two apart from the members of a bucket.
      outer->setLoc(FusedLoc::get(outer.getContext(),
                                  {inner.getLoc(), outer.getLoc()},
                                  UnitAttr::get(outer.getContext())));
      outer->setOperand(0, inner.getOperand(0));
      inner.erase();
    }
  }

  /// Fills the buckets in program order.
  void collect() {
    size_t numCollectives =
        llvm::count_if(block, [](Operation &op) { return canMerge(&op); });
    llvm::DenseMap<Operation *, int> memberOf;
    llvm::DenseMap<Operation *, llvm::BitVector> dependences;
    std::map<std::string, int> open;
    for (Operation &op : block) {
      llvm::BitVector needs(numCollectives);
      for (Value operand : getUsedValues(&op))
        if (Operation *producer = operand.getDefiningOp()) {
          needs |= dependences[producer];
          if (auto it = memberOf.find(producer); it != memberOf.end())
            needs.set(it->second);
        }
      if (canMerge(&op)) {
        auto [it, isNew] = open.try_emplace(getKey(&op), -1);
        if (isNew || !accepts(it->second, &op, needs)) {
          it->second = buckets.size();
          buckets.emplace_back();
          bucketNeeds.emplace_back(numCollectives);
        }
        Bucket &bucket = buckets[it->second];
        bucket.members.push_back(&op);
        bucket.bytes += getBytes(&op);
        bucketNeeds[it->second] |= needs;
        memberOf[&op] = it->second;
      }
      dependences[&op] = std::move(needs);
    }
  }

  bool accepts(int index, Operation *op, const llvm::BitVector &needs) const {
    if (bucketBytes > 0 && buckets[index].bytes + getBytes(op) > bucketBytes)
      return false;
    // Everything that the new member needs, by way of other buckets as well.
    llvm::BitVector closure = needs;
    SmallVector<int> work(closure.set_bits_begin(), closure.set_bits_end());
    while (!work.empty()) {
      int bucket = work.pop_back_val();
      for (int next : bucketNeeds[bucket].set_bits())
        if (!closure.test(next)) {
          closure.set(next);
          work.push_back(next);
        }
    }
    return !closure.test(index);
  }

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
      if (auto attr = op->getAttrOfType<PartAttr>("shardc.part"))
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
    merged->setAttr("shardc.part", PartAttr::get(builder.getContext(), part));
    if (std::string cause = joinCauses(bucket.members); !cause.empty())
      merged->setAttr("shardc.cause", builder.getStringAttr(cause));
    unsigned result = 0;
    for (Operation *op : bucket.members) {
      for (Value old : op->getResults())
        old.replaceAllUsesWith(merged->getResult(result++));
      op->erase();
    }
  }

  /// Restores the order of definitions before uses, otherwise keeping the ops
  /// where they are.
  void sort() {
    SmallVector<Operation *> ops;
    llvm::DenseMap<Operation *, int> index;
    for (Operation &op : block) {
      index[&op] = ops.size();
      ops.push_back(&op);
    }
    SmallVector<int> missing(ops.size(), 0);
    for (auto [position, op] : llvm::enumerate(ops))
      for (Value operand : getUsedValues(op))
        missing[position] += operand.getDefiningOp() != nullptr;
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    Operation *terminator = block.getTerminator();
    for (auto [position, count] : llvm::enumerate(missing))
      if (count == 0 && ops[position] != terminator)
        ready.push(position);
    while (!ready.empty()) {
      Operation *op = ops[ready.top()];
      ready.pop();
      op->moveBefore(terminator);
      for (OpOperand &use : op->getUses()) {
        Operation *user = getUserInBlock(use.get(), use.getOwner());
        int position = index[user];
        if (--missing[position] == 0 && user != terminator)
          ready.push(position);
      }
    }
  }

  Block &block;
  MeshOp mesh;
  int64_t bucketBytes;
  std::vector<Bucket> buckets;
  /// Per bucket the buckets that its members need directly.
  std::vector<llvm::BitVector> bucketNeeds;
};

struct CombineCollectivesPass
    : shardc::impl::CombineCollectivesPassBase<CombineCollectivesPass> {
  using Base = shardc::impl::CombineCollectivesPassBase<CombineCollectivesPass>;
  using Base::Base;

  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && function.getBody().hasOneBlock())
        for (Block *block : getBlocks(function))
          Combiner(*block, *mesh, bucketBytes).run();
  }
};

} // namespace
