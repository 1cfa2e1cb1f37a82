//===- SimplifyCollectives.cpp - Peephole rewrites of collectives ---------===//
//
// Three rewrites, in program order: equal collectives are merged (common
// subexpressions), an all_reduce of an all_reduce becomes one, and an
// all_reduce of which only a slice is used becomes a reduce_scatter. Planners
// leave few such patterns. Collectives have one operand here, since they are
// combined later.
//
//===----------------------------------------------------------------------===//

#include "CollectiveCauses.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-simplify-collectives"

namespace shardc {
#define GEN_PASS_DEF_SIMPLIFYCOLLECTIVESPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// Rewrites the collectives of one block.
class CollectiveSimplifier {
public:
  CollectiveSimplifier(Block &block, MeshOp mesh) : block(block), mesh(mesh) {}

  void run() {
    // Merged slices leave their all_reduce a single use, which `scatter` needs.
    mergeEqual();
    // A rewrite erases only earlier reductions, which are done.
    for (AllReduceOp reduce : llvm::to_vector(block.getOps<AllReduceOp>()))
      if (reduce.getNumOperands() == 1)
        simplify(reduce);
    // The rewrites may have made reductions equal.
    mergeEqual();
  }

private:
  /// Replaces each collective or slice by an equal one before it. Causes are
  /// joined and do not count in the comparison.
  void mergeEqual() {
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
      LLVM_DEBUG(llvm::dbgs() << "merge " << describeOp(&op) << " with "
                              << describeOp(*equal) << '\n');
      Operation *members[] = {*equal, &op};
      setJoinedCause(*equal, members);
      op.replaceAllUsesWith(*equal);
      op.erase();
    }
  }

  static bool isEqual(Operation *lhs, Operation *rhs) {
    auto getComparedAttrs = [](Operation *op) {
      NamedAttrList attributes(op->getAttrDictionary());
      attributes.erase(causeAttrName);
      attributes.erase(partAttrName);
      return attributes.getDictionary(op->getContext());
    };
    return lhs->getName() == rhs->getName() &&
           llvm::equal(lhs->getOperands(), rhs->getOperands()) &&
           lhs->getResultTypes() == rhs->getResultTypes() &&
           getComparedAttrs(lhs) == getComparedAttrs(rhs);
  }

  void simplify(AllReduceOp reduce) {
    mergeWithOperand(reduce);
    scatter(reduce);
  }

  /// Turns an all_reduce of an all_reduce that has no other use into one over
  /// the axes of both.
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
    LLVM_DEBUG(llvm::dbgs() << "one reduction for " << describeOp(inner)
                            << " and " << describeOp(outer) << '\n');
    Operation *members[] = {inner, outer};
    setJoinedCause(outer, members);
    outer.setAxesAttr(ArrayAttr::get(outer.getContext(), axes));
    // The metadata tells this fused location from that of a bucket.
    outer->setLoc(FusedLoc::get(outer.getContext(),
                                {inner.getLoc(), outer.getLoc()},
                                UnitAttr::get(outer.getContext())));
    outer->setOperand(0, inner.getOperand(0));
    inner.erase();
  }

  /// Turns an all_reduce that is used by one slice alone, over some of its
  /// axes, into a reduce_scatter over those axes and an all_reduce of the shard
  /// over the other axes.
  void scatter(AllReduceOp reduce) {
    if (!reduce->hasOneUse())
      return;
    auto slice = dyn_cast<SliceOp>(*reduce->user_begin());
    if (!slice || slice->getBlock() != &block ||
        llvm::any_of(slice.getAxes(), [&](Attribute axis) {
          return !llvm::is_contained(reduce.getAxes(), axis);
        }))
      return;
    LLVM_DEBUG(llvm::dbgs() << "scatter " << describeOp(reduce) << " over "
                            << slice.getAxes() << '\n');
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
    // The shard may be sliced again, in another dimension.
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
