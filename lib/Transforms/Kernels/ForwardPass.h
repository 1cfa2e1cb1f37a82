//===- ForwardPass.h - What the backward pass can compute again -*- C++ -*-===//
//
// The forward pass of a block: which of its ops can be repeated, the values at
// which it can be cut into layers, and what it takes to compute a part of it
// again. Reads the IR; borrows the block, which must not change meanwhile.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_KERNELS_FORWARDPASS_H
#define SHARDC_LIB_TRANSFORMS_KERNELS_FORWARDPASS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Report/TimeEstimate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <limits>
#include <vector>

namespace shardc {

/// A set of ops of the forward pass.
using OpSet = llvm::DenseSet<mlir::Operation *>;

/// What it takes to do without the results of some ops until the backward pass.
struct RecomputationCost {
  /// Bytes that must be kept for it and otherwise would not be: results of
  /// communication, and gathered weights.
  int64_t keptBytes = 0;
  /// Estimated time of the repeated ops in one step.
  double seconds = 0;
};

/// A point of the forward pass at which all that has been computed from the
/// inputs is in one value.
struct Cut {
  mlir::Value value;
  /// Ops of a layer that ends here have at most this number.
  int64_t position;
  int64_t bytes;
};

class ForwardPass {
public:
  /// Of a function's block, or of the body of its loop over microbatches.
  ForwardPass(mlir::Block &block, const Machine &machine);

  /// Whether there is a backward pass that may want values again.
  bool hasBackwardPass() const { return isDifferentiated; }

  /// All ops that can be repeated: not communication, not the conversion of
  /// a weight, and not what needs a weight that was gathered for the forward
  /// pass alone.
  const std::vector<mlir::Operation *> &getRepeatable() const {
    return repeatable;
  }

  /// Cuts in order, grouped by the number of GEMMs with weights in front of
  /// them: one GEMM at least, and at least one behind the cut. A group has the
  /// cuts between the same two GEMMs.
  std::vector<std::vector<Cut>> findCuts() const;

  /// The repeatable ops behind position `from` up to position `to`, without the
  /// one that computes `kept`.
  OpSet getOps(int64_t from, int64_t to, mlir::Value kept) const;

  /// The ops among `dropped` that the backward pass must repeat if their
  /// results are dropped.
  std::vector<mlir::Operation *> getRepeated(const OpSet &dropped) const;

  /// The cost of dropping the results of `dropped`.
  RecomputationCost getCost(const OpSet &dropped) const;

  /// Bytes of the results of `some` that live until the backward pass if they
  /// are kept.
  int64_t getHeldBytes(const OpSet &some) const;

  /// The position of an op: the number of an op on the path from the inputs,
  /// and of any other the least number of an op that needs it.
  int64_t getPosition(mlir::Operation *op) const {
    return positions.lookup(op);
  }

  /// The position behind all ops.
  static constexpr int64_t end = std::numeric_limits<int64_t>::max();

private:
  bool isRepeatable(mlir::Operation *op) const;
  bool isFromInputs(mlir::Value value) const;
  /// Whether an op of another part of the step uses a result of `op`.
  bool isUsedLater(mlir::Operation *op) const;

  mlir::Block &block;
  const Machine &machine;
  MemoryTraffic traffic;
  bool isDifferentiated = false;
  /// The ops of the forward pass in program order.
  std::vector<mlir::Operation *> ops;
  std::vector<mlir::Operation *> repeatable;
  /// Values computed from the inputs.
  llvm::DenseSet<mlir::Value> fromInputs;
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
};

/// The twin of `value`, a weight gathered for the forward pass alone, that is
/// gathered for the backward pass; null if there is none.
mlir::Value findGatheredAgain(mlir::Value value);

/// Whether `value` is a weight gathered for the forward pass alone.
bool isGatheredForForward(mlir::Value value);

/// Gives the backward pass of `block` clones of the ops among `dropped` whose
/// results it uses, each in front of the first op that needs it. Clones are
/// part of the backward pass and marked `shardc.recomputed`. A GEMM among them
/// takes the weights that are gathered for the backward pass. Returns the
/// number of clones.
unsigned recompute(mlir::Block &block, const ForwardPass &forward,
                   const OpSet &dropped);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_KERNELS_FORWARDPASS_H
