//===- StridedGaps.h - Gaps of strided shards on a small mesh ---*- C++ -*-===//
//
// The size of a gap is the product of the axes that have left a dimension
// (Layout.h). On a mesh with other sizes it is the product of the same axes
// there. Every gap of the partitioner is a product of axes, so that it can make
// the same lists on the other mesh.
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
  /// The gaps of the strategies in `module`, whose mesh is `mesh`.
  StridedGaps(mlir::ModuleOp module, const MeshAxes &mesh);

  /// The prime factors of gaps, each with its maximum multiplicity over
  /// dimensions. Beside axes, these can cut a dimension.
  llvm::ArrayRef<int64_t> getPrimes() const { return primes; }

  /// Axes that can cut a dimension once more than they shard it, because one of
  /// their gaps stands beside them.
  llvm::ArrayRef<int> getRepeatedAxes() const { return repeated; }

  /// Whether every gap is a product of axes, and all groups of axes with this
  /// product have one product on `other`, a mesh of the same axes.
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
  /// By size the first group of axes with this product; 0 if there is none.
  std::map<int64_t, AxisSet> gaps;
  llvm::SmallVector<int64_t> primes;
  llvm::SmallVector<int> repeated;
};

} // namespace shardc

#endif // SHARDC_LIB_INTERPRETER_STRIDEDGAPS_H
