//===- KernelFusion.h - Fusion of ops into kernels --------------*- C++ -*-===//
//
// Greedy producer-consumer fusion of the core ops of a block, then horizontal
// fusion of independent groups. A group of ops must be one loop nest
// (KernelNest.h), and the graph of groups must stay acyclic. Decisions depend
// on the order of the ops alone. Not thread-safe.
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

  /// Merges groups. Independent updates of small tensors share kernels. With
  /// `wantsFewLaunches`, for targets on which every kernel is a launch, so do
  /// updates of any size that become ready at the same time, and other small
  /// groups that no path connects.
  void run(bool wantsFewLaunches);

  /// A group of ops that becomes a kernel, or one op outside of kernels.
  struct Node {
    /// In program order.
    llvm::SmallVector<mlir::Operation *> ops;
    bool isKernel = false;
  };

  /// The nodes in a topological order.
  llvm::SmallVector<const Node *> getOrder();

  /// Whether each group that uses `op` recomputes it. Such an op is in no node.
  bool isRepeated(mlir::Operation *op) const { return repeated.contains(op); }

  /// The values from outside of the group that its ops, and the ops that it
  /// recomputes, use.
  llvm::SetVector<mlir::Value> getOperands(const Node &node) const;

  /// The results of ops of the group that have uses outside of it.
  llvm::SmallVector<mlir::Value> getResults(const Node &node) const;

  /// The node that holds `op`; null for repeated ops.
  const Node *getNode(mlir::Operation *op) const;

private:
  mlir::Block &block;
  bool fewLaunches = false;
  llvm::SetVector<mlir::Operation *> repeated;
  /// Nodes by the number of their first op. Merged ones are empty.
  std::vector<Node> nodes;
  llvm::DenseMap<mlir::Operation *, unsigned> nodeOf;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;

  void collect();
  /// The part of the step that the node's first op belongs to.
  static mlir::Attribute getPart(const Node &node);
  /// The op of the block that computes `value`; null if none does.
  mlir::Operation *getProducer(mlir::Value value) const;
  bool mustBeStored(mlir::Operation *op) const;
  /// Nodes that use results of `node`, directly or through repeated ops.
  llvm::SetVector<unsigned> getUserNodes(unsigned node) const;
  llvm::SetVector<unsigned> getProducerNodes(unsigned node) const;
  /// Whether a path of at least two edges leads from `from` to `to`.
  bool hasIndirectPath(unsigned from, unsigned to) const;
  /// Whether a path leads from one of the nodes `from` to `to`.
  bool reaches(llvm::SmallVector<unsigned> from, unsigned to) const;
  bool isProfitable(const Node &producer, const Node &consumer) const;
  bool tryFuse(unsigned producer, unsigned consumer);
  void merge(unsigned into, unsigned from);

  void fuseSmallNodes();
  void fuseReadyUpdates();
  void fuseSideBySide();
  using OpPredicate = llvm::function_ref<bool(mlir::Operation *)>;
  using KeyOf = llvm::function_ref<int64_t(const Node &)>;
  /// Merges independent groups of equal keys, whose ops must all satisfy
  /// `mayFuse`, into groups of at most `mostOps` ops. A merged group keeps the
  /// key.
  void fuseNodes(OpPredicate mayFuse, size_t mostOps, KeyOf getKey);
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_KERNELS_KERNELFUSION_H
