//===- DecomposeComposites.cpp - Expand composites into the core ----------===//

#include "Decomposition.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-decompose-composites"

namespace shardc {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITESPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// Copies the discardable attributes of a model op to every inserted op, and
/// collects the composites among the inserted ops.
class DecompositionListener : public OpBuilder::Listener {
public:
  DecompositionListener(Operation *model,
                        SmallVectorImpl<CompositeOpInterface> &composites)
      : attributes(model->getDiscardableAttrDictionary()),
        composites(composites) {}

  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    for (NamedAttribute attribute : attributes)
      op->setDiscardableAttr(attribute.getName(), attribute.getValue());
    if (auto composite = dyn_cast<CompositeOpInterface>(op))
      composites.push_back(composite);
  }

private:
  DictionaryAttr attributes;
  SmallVectorImpl<CompositeOpInterface> &composites;
};

struct DecomposeCompositesPass
    : shardc::impl::DecomposeCompositesPassBase<DecomposeCompositesPass> {
  using DecomposeCompositesPassBase::DecomposeCompositesPassBase;

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Import,
                               ModulePhase::Differentiate)))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      decomposeComposites(function, all);
  }
};

} // namespace

void shardc::decomposeComposites(func::FuncOp function, bool all) {
  bool hasStep = static_cast<bool>(findStep(function));
  SmallVector<CompositeOpInterface> worklist;
  function.walk([&](CompositeOpInterface op) { worklist.push_back(op); });
  while (!worklist.empty()) {
    CompositeOpInterface op = worklist.pop_back_val();
    bool stays = isa<DifferentiableOpInterface>(op.getOperation()) ||
                 (isa<DropoutOp>(op.getOperation()) && !hasStep);
    LLVM_DEBUG(llvm::dbgs() << (stays && !all ? "keep " : "decompose ")
                            << describeOp(op) << '\n');
    if (stays && !all)
      continue;
    DecompositionListener listener(op, worklist);
    OpBuilder builder(op, &listener);
    op->replaceAllUsesWith(op.decompose(builder));
    op->erase();
  }
}
