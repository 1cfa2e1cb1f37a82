//===- FuseKernels.cpp - Outline compute into fused kernels ---------------===//
//
// Builds one shardc.kernel per group of KernelFusion.
//
//===----------------------------------------------------------------------===//

#include "KernelFusion.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-fuse-kernels"

namespace shardc {
#define GEN_PASS_DEF_FUSEKERNELSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// The op that gives a kernel its location and its part of the step: the first
/// dot_general, else the first reduction, else the last op.
static Operation *getMainOp(ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (isa<DotGeneralOp>(op))
      return op;
  for (Operation *op : ops)
    if (isa<ReduceOp>(op))
      return op;
  return ops.back();
}

namespace {

/// Builds the kernel of one group.
class KernelBuilder {
public:
  KernelBuilder(const KernelFusion &fusion, const KernelFusion::Node &node,
                OpBuilder &builder, IRMapping &outer)
      : fusion(fusion), node(node), builder(builder), outer(outer) {}

  void build() {
    llvm::SetVector<Value> operands = fusion.getOperands(node);
    SmallVector<Value> results = fusion.getResults(node);
    LLVM_DEBUG(print(operands.size(), results.size()));
    SmallVector<Value> inputs;
    for (Value operand : operands)
      inputs.push_back(outer.lookupOrDefault(operand));
    SmallVector<Type> types;
    for (Value result : results)
      types.push_back(result.getType());
    Operation *main = getMainOp(node.ops);
    auto kernel = builder.create<KernelOp>(main->getLoc(), types, inputs);
    setPlaceInStep(kernel, main);
    OpBuilder::InsertionGuard guard(builder);
    Block *body = builder.createBlock(&kernel.getBody());
    for (Value operand : operands)
      mapping.map(operand,
                  body->addArgument(operand.getType(),
                                    getFileLocation(operand.getLoc())));
    for (Operation *op : node.ops)
      cloneWithOperands(op);
    SmallVector<Value> yielded;
    for (Value result : results)
      yielded.push_back(mapping.lookup(result));
    builder.create<YieldOp>(main->getLoc(), yielded);
    for (auto [result, value] : llvm::zip_equal(results, kernel.getResults()))
      outer.map(result, value);
  }

private:
  const KernelFusion &fusion;
  const KernelFusion::Node &node;
  OpBuilder &builder;
  /// Maps values of the block before fusion to values after it.
  IRMapping &outer;
  IRMapping mapping;

  void print(size_t numOperands, size_t numResults) const {
    llvm::dbgs() << "kernel of " << node.ops.size() << " ops, " << numOperands
                 << " operands, " << numResults << " results:";
    for (Operation *op : node.ops)
      llvm::dbgs() << "\n  " << describeOp(op);
    llvm::dbgs() << '\n';
  }

  /// Clones `op` into the kernel, after the repeated ops that it depends on.
  void cloneWithOperands(Operation *op) {
    if (op->getNumResults() && mapping.contains(op->getResult(0)))
      return;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp())
        if (fusion.isRepeated(def))
          cloneWithOperands(def);
    Operation *clone = builder.clone(*op, mapping);
    // Equal kernels share code, so their bodies have no such attributes.
    for (StringRef name : {partAttrName, stageAttrName, taskAttrName,
                           recomputedAttrName, originAttrName, causeAttrName})
      clone->removeAttr(name);
  }
};

struct FuseKernelsPass : shardc::impl::FuseKernelsPassBase<FuseKernelsPass> {
  using FuseKernelsPassBase::FuseKernelsPassBase;

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Kernels)))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      // Bodies of loops first: the block around a loop is copied with its body.
      SmallVector<Block *> blocks = getBlocks(function);
      for (Block *block : llvm::reverse(blocks))
        fuse(*block);
    }
  }

  void fuse(Block &block) {
    KernelFusion fusion(block);
    fusion.run(fewLaunches);
    SmallVector<Operation *> originals;
    for (Operation &op : block)
      originals.push_back(&op);
    OpBuilder builder = OpBuilder::atBlockEnd(&block);
    IRMapping mapping;
    for (const KernelFusion::Node *node : fusion.getOrder()) {
      if (node->isKernel)
        KernelBuilder(fusion, *node, builder, mapping).build();
      else
        builder.clone(*node->ops.front(), mapping);
    }
    for (Operation *op : llvm::reverse(originals)) {
      op->dropAllUses();
      op->erase();
    }
  }
};

} // namespace
