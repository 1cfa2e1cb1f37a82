//===- Provenance.h - Provenance of axes ------------------------*- C++ -*-===//
//
// The annotation from which an op or an argument got a mesh axis. Propagation
// names it in `shardc.origin`; the ops on the way are found by breadth-first
// search. Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_PROVENANCE_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_PROVENANCE_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Sharding/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace shardc {

/// Looks through reshards and loops: from the result of a reshard to its
/// operand, from the result of a loop to the summand, from a slice in a loop to
/// the operand of the loop. Returns an argument of the function or the result
/// of another op.
mlir::Value getWrittenValue(mlir::Value value);

/// Finds the annotations that ops and arguments have their axes from, by
/// `shardc.origin` and the annotations in the locations of arguments. Construct
/// it when ops have strategies, and before reshards change the function.
class Provenance {
public:
  Provenance(mlir::func::FuncOp function, const MeshAxes &mesh);

  /// The origin of `axis` on `op`. The strategy of `op` need not have the
  /// axis: the op may work on partial sums of another one.
  OriginAttr find(mlir::Operation *op, int axis);
  /// The origin of `axis` in the storage sharding of `argument`.
  OriginAttr find(mlir::BlockArgument argument, int axis);

private:
  /// The tree of a breadth-first search: from an op to the next op on the
  /// shortest path to a source, null for the first op of a path.
  using Parents = llvm::DenseMap<mlir::Operation *, mlir::Operation *>;
  /// A breadth-first search that can be resumed.
  struct Search {
    Parents parents;
    std::vector<mlir::Operation *> queue;
    size_t next = 0;
  };

  OriginAttr makeOrigin(int axis, mlir::StringRef name, mlir::Operation *end);
  /// The source that `shardc.origin` of `op` names for the axis; empty if none.
  mlir::StringRef getSourceName(mlir::Operation *op, int axis) const;
  bool hasAxis(mlir::Operation *op, int axis) const {
    return axesOf.lookup(op) & axisBit(axis);
  }
  /// Searches from the ops of the source `name`, along ops that hold `axis`, at
  /// least until `end` is reached. Returns the tree of the search.
  const Parents &getParents(int axis, mlir::StringRef name,
                            mlir::Operation *end);
  mlir::ArrayAttr getThrough(int axis, mlir::StringRef name,
                             mlir::Operation *end);

  mlir::func::FuncOp function;
  const MeshAxes &mesh;
  /// Arguments and constraints by their name in `shardc.origin`: the location,
  /// and the ops that an axis reaches first from there.
  struct Source {
    mlir::Location at;
    llvm::SmallVector<mlir::Operation *> ops;
  };
  llvm::StringMap<Source> sources;
  llvm::DenseMap<mlir::Operation *, int> order;
  /// The axes in the strategy of each op.
  llvm::DenseMap<mlir::Operation *, AxisSet> axesOf;
  /// By axis, the ops that hold it and for which no source was found.
  std::map<int, llvm::DenseSet<mlir::Operation *>> sourceless;
  std::map<std::pair<int, std::string>, Search> searches;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PARTITION_PROVENANCE_H
