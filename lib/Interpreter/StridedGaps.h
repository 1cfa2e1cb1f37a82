//===- StridedGaps.h - Gaps of strided shards on a small mesh ---*- C++ -*-===//
//
// A gap is as many parts as axes told apart that have left a dimension
// (Layout.h). On a mesh with other sizes it is what the same axes tell apart
// there. The partitioner makes no list with a gap that is no product of axes,
// so that on the other mesh it can make the same lists.
//
// Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_INTERPRETER_STRIDEDGAPS_H
#define SHARDC_LIB_INTERPRETER_STRIDEDGAPS_H

#include "shardc/Sharding/Layout.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace shardc {

class StridedGaps {
public:
  /// Those of the assignments in `module`, whose mesh is `mesh`.
  StridedGaps(mlir::ModuleOp module, const MeshAxes &mesh);

  /// The prime factors of gaps, each as often as in any dimension: what they
  /// can cut a dimension by, beside axes.
  llvm::ArrayRef<int64_t> getPrimes() const { return primes; }

  /// Axes that can cut a dimension once more than they shard it, because a gap
  /// of theirs stands beside them.
  llvm::ArrayRef<int> getRepeatedAxes() const { return repeated; }

  /// Whether every gap is a product of axes, and on `other`, a mesh of the same
  /// axes, is one number whichever axes it is a product of.
  bool canMoveTo(const MeshAxes &other) const;

  /// Whether on `other` moreover every gap is less than, equal to or more than
  /// the same products of axes.
  bool compareAlike(const MeshAxes &other) const;

  /// Replaces the gaps in `module` by those on `other`.
  void moveTo(const MeshAxes &other, mlir::ModuleOp module) const;

private:
  void add(llvm::ArrayRef<int> list);

  MeshAxes mesh;
  /// All groups of axes that shard; none if they are too many.
  llvm::SmallVector<AxisSet> groups;
  /// By size the first group that it is the product of; 0 if it is none.
  std::map<int64_t, AxisSet> gaps;
  llvm::SmallVector<int64_t> primes;
  llvm::SmallVector<int> repeated;
};

} // namespace shardc

#endif // SHARDC_LIB_INTERPRETER_STRIDEDGAPS_H
