//===- SimplifyCollectives.cpp - Fewer and cheaper collectives ------------===//
//
// Three rules, applied to one collective at a time in program order: equal ones
// are one, a reduction of a reduction is one, and a reduction of which only
// slices are used is scattered. Planners rarely leave such; whatever they leave
// costs no more than it must. Runs before collectives are put into buckets, so
// each has one operand.
//
//===----------------------------------------------------------------------===//

#include "CollectiveCauses.h"

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Transforms/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_SIMPLIFYCOLLECTIVESPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

class CollectiveSimplifier {
public:
  CollectiveSimplifier(Block &block, MeshOp mesh) : block(block), mesh(mesh) {}

  void run() {
    // Slices that become equal let a reduction be scattered.
    shareEqual();
    // A reduction that is rewritten takes only earlier ones along.
    for (AllReduceOp reduce : llvm::to_vector(block.getOps<AllReduceOp>()))
      if (reduce.getNumOperands() == 1)
        simplify(reduce);
    // Reductions that became equal.
    shareEqual();
  }

private:
  /// Replaces each collective or slice by an earlier one of the same operands
  /// and attributes. What says where it came from is joined, not compared.
  void shareEqual() {
    llvm::DenseMap<Value, SmallVector<Operation *, 2>> known;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp,
               CollectivePermuteOp, SliceOp>(op))
        continue;
      SmallVector<Operation *, 2> &others = known[op.getOperand(0)];
      auto equal = llvm::find_if(
          others, [&](Operation *other) { return isEqual(other, &op); });
      if (equal == others.end()) {
        others.push_back(&op);
        continue;
      }
      Operation *members[] = {*equal, &op};
      setJoinedCause(*equal, members);
      op.replaceAllUsesWith(*equal);
      op.erase();
    }
  }

  static bool isEqual(Operation *lhs, Operation *rhs) {
    auto getWhat = [](Operation *op) {
      NamedAttrList attributes(op->getAttrDictionary());
      attributes.erase(causeAttrName);
      attributes.erase(partAttrName);
      return attributes.getDictionary(op->getContext());
    };
    return lhs->getName() == rhs->getName() &&
           llvm::equal(lhs->getOperands(), rhs->getOperands()) &&
           lhs->getResultTypes() == rhs->getResultTypes() &&
           getWhat(lhs) == getWhat(rhs);
  }

  void simplify(AllReduceOp reduce) {
    mergeWithOperand(reduce);
    scatter(reduce);
  }

  /// A reduction of a reduction that nothing else uses is one over the axes of
  /// both.
  void mergeWithOperand(AllReduceOp outer) {
    auto inner = outer.getOperand(0).getDefiningOp<AllReduceOp>();
    if (!inner || inner->getBlock() != &block || inner.getNumOperands() != 1 ||
        !inner->hasOneUse() || inner.getKind() != outer.getKind())
      return;
    SmallVector<Attribute> axes(inner.getAxes().getValue());
    axes.append(outer.getAxes().begin(), outer.getAxes().end());
    llvm::sort(axes, [&](Attribute lhs, Attribute rhs) {
      return mesh.getAxisIndex(cast<StringAttr>(lhs).getValue()) <
             mesh.getAxisIndex(cast<StringAttr>(rhs).getValue());
    });
    Operation *members[] = {inner, outer};
    setJoinedCause(outer, members);
    outer.setAxesAttr(ArrayAttr::get(outer.getContext(), axes));
    // Metadata keeps the two apart from the members of a bucket.
    outer->setLoc(FusedLoc::get(outer.getContext(),
                                {inner.getLoc(), outer.getLoc()},
                                UnitAttr::get(outer.getContext())));
    outer->setOperand(0, inner.getOperand(0));
    inner.erase();
  }

  /// A reduction of which only one slice is used, over some of its axes, is a
  /// scattered one, followed by a reduction of the shard over the other axes.
  void scatter(AllReduceOp reduce) {
    if (!reduce->hasOneUse())
      return;
    auto slice = dyn_cast<SliceOp>(*reduce->user_begin());
    if (!slice || slice->getBlock() != &block ||
        llvm::any_of(slice.getAxes(), [&](Attribute axis) {
          return !llvm::is_contained(reduce.getAxes(), axis);
        }))
      return;
    SmallVector<Attribute> left;
    llvm::copy_if(reduce.getAxes(), std::back_inserter(left),
                  [&](Attribute axis) {
                    return !llvm::is_contained(slice.getAxes(), axis);
                  });
    OpBuilder builder(reduce);
    auto inherit = [&](Operation *op) {
      op->setDiscardableAttrs(reduce->getDiscardableAttrDictionary());
      return op->getResult(0);
    };
    Value shard = inherit(builder.create<ReduceScatterOp>(
        reduce.getLoc(), slice->getResultTypes(), reduce.getKind(),
        reduce.getOperands(), reduce.getMesh(), slice.getAxes(),
        ArrayRef<int64_t>(slice.getDim())));
    AllReduceOp rest;
    if (!left.empty()) {
      rest = builder.create<AllReduceOp>(
          reduce.getLoc(), slice->getResultTypes(), reduce.getKind(),
          ValueRange(shard), reduce.getMesh(), builder.getArrayAttr(left));
      shard = inherit(rest);
    }
    slice.replaceAllUsesWith(shard);
    slice.erase();
    reduce.erase();
    // It may be sliced once more, in another dimension.
    if (rest)
      scatter(rest);
  }

  Block &block;
  MeshOp mesh;
};

struct SimplifyCollectivesPass
    : shardc::impl::SimplifyCollectivesPassBase<SimplifyCollectivesPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Partition)))
      return signalPassFailure();
    FailureOr<MeshOp> mesh = getMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && function.getBody().hasOneBlock())
        for (Block *block : getBlocks(function))
          CollectiveSimplifier(*block, *mesh).run();
  }
};

} // namespace
