//===- Regather.h - Rematerialised all-gathers of weights -------*- C++ -*-===//
//
// A weight that is gathered for the forward pass and used again in the backward
// pass is either held in between or gathered again: `reshard_after_forward` of
// PyTorch FSDP2. This class finds these weights and computes the cost of the
// choice. Changes no IR. Not thread-safe, because it borrows a planner.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_REGATHER_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_REGATHER_H

#include "EdgeLayouts.h"

#include "shardc/Reshard/ReshardPlanner.h"

namespace shardc {

/// Uses of one value that share a multicast tree of reshards.
struct ConsumerGroup {
  llvm::SmallVector<Consumer, 1> consumers;
  /// The pass to which the resharded tensors are confined, if to one.
  std::optional<Part> pass;
  /// The loop over microbatches whose body contains the reshards, which are
  /// then repeated for each microbatch; null if they are outside of loops.
  AccumulateOp loop;
  /// Whether the group repeats a reshard of an earlier pass.
  bool isRematerialised = false;
};

/// Groups the uses of the weights of one function.
class Regather {
public:
  /// Borrows `mesh` and `planner`. With `isTaken`, weights are gathered again.
  Regather(const MeshAxes &mesh, ReshardPlanner &planner, bool isTaken)
      : mesh(mesh), planner(planner), isTaken(isTaken) {}

  /// Groups `consumers`, the uses of `value` in layouts that are distinct and
  /// differ from `from`, in which it is produced. There is one group, or one
  /// for each pass if `value` is a weight that is gathered again. If a tensor
  /// larger than the shard would be held between the passes, adds its bytes to
  /// the cost of the function.
  llvm::SmallVector<ConsumerGroup, 1> group(mlir::Value value,
                                            const Layout &from,
                                            llvm::ArrayRef<Consumer> consumers);

  /// The cost of gathering all weights again, compared with holding them: bytes
  /// sent and bytes held. Null if there are no such weights.
  RegatherAttr getCost(mlir::MLIRContext *context) const;

private:
  /// A multicast tree and the bytes that it sends.
  struct Tree {
    llvm::SmallVector<Delivery> nodes;
    int64_t wireBytes = 0;
  };
  Tree plan(const Layout &from, llvm::ArrayRef<Consumer> consumers,
            mlir::RankedTensorType type);
  /// Bytes of `node` on a device; 0 if it is not larger than the shard `from`.
  int64_t getGatheredBytes(const Delivery &node, const Layout &from,
                           mlir::RankedTensorType type) const;
  int64_t getHeldBytes(const Tree &tree, const Layout &from,
                       llvm::ArrayRef<Consumer> consumers,
                       mlir::RankedTensorType type) const;

  const MeshAxes &mesh;
  ReshardPlanner &planner;
  bool isTaken;
  int64_t wireBytes = 0, heldBytes = 0;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PARTITION_REGATHER_H
