//===- KernelFusion.h - Which ops become one kernel -------------*- C++ -*-===//
//
// Groups the core ops of a block into kernels. A group grows along
// producer-consumer edges as long as it is one loop nest (KernelNest.h) and the
// groups stay free of cycles; independent updates then share kernels.
// Decisions follow the order of the ops only. Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_KERNELS_KERNELFUSION_H
#define SHARDC_LIB_TRANSFORMS_KERNELS_KERNELFUSION_H

#include "shardc/Analysis/KernelNest.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace shardc {

/// The groups of one block.
class KernelFusion {
public:
  explicit KernelFusion(mlir::Block &block);

  /// Merges groups. Updates of small tensors share kernels; with `joinUpdates`,
  /// where every kernel is a launch, also those of any size that can begin at
  /// the same time.
  void run(bool joinUpdates);

  /// One kernel to be, or one op that stays outside of kernels.
  struct Node {
    /// In program order.
    llvm::SmallVector<mlir::Operation *> ops;
    bool isKernel = false;
  };

  /// The nodes in an order in which each comes after what it uses.
  llvm::SmallVector<const Node *> getOrder();

  /// Ops computed again inside each group that uses them: not in any node.
  bool isRepeated(mlir::Operation *op) const { return repeated.contains(op); }

  /// The values from outside that the group's ops, and those they repeat, use.
  llvm::SetVector<mlir::Value> getOperands(const Node &node) const;

  /// Values of the group's ops that something outside uses.
  llvm::SmallVector<mlir::Value> getResults(const Node &node) const;

  /// The node that holds `op`; null for repeated ops.
  const Node *getNode(mlir::Operation *op) const;

private:
  mlir::Block &block;
  llvm::SetVector<mlir::Operation *> repeated;
  /// Nodes by the number of their first op; empty ones have been merged.
  std::vector<Node> nodes;
  llvm::DenseMap<mlir::Operation *, unsigned> nodeOf;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;

  void collect();
  /// The part of the step that the node's first op belongs to.
  static mlir::Attribute getPart(const Node &node);
  /// The op of the block that computes `value`; null if none does.
  mlir::Operation *getProducer(mlir::Value value) const;
  bool mustBeStored(mlir::Operation *op) const;
  /// Nodes that use results of `node`, repeated ops looked through.
  llvm::SetVector<unsigned> getUserNodes(unsigned node) const;
  llvm::SetVector<unsigned> getProducerNodes(unsigned node) const;
  /// Whether a path leads from one node to the other over at least one third.
  bool hasIndirectPath(unsigned from, unsigned to) const;
  /// Whether a path leads from one of the nodes `from` to `to`.
  bool reaches(llvm::SmallVector<unsigned> from, unsigned to) const;
  bool isProfitable(const Node &producer, const Node &consumer) const;
  bool tryFuse(unsigned producer, unsigned consumer);
  void merge(unsigned into, unsigned from);

  // FuseUpdates.cpp has the rest.
  void fuseSmallNodes();
  void fuseReadyUpdates();
  using OpPredicate = llvm::function_ref<bool(mlir::Operation *)>;
  using Predicate = llvm::function_ref<bool(unsigned node, unsigned other)>;
  /// Merges independent groups of ops that `mayFuse`, if they `mayShare` a
  /// kernel, of at most so many ops.
  void fuseNodes(OpPredicate mayFuse, size_t mostOps, Predicate mayShare);
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_KERNELS_KERNELFUSION_H
