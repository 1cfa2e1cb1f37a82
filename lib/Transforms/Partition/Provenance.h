//===- Provenance.h - Where an axis came from -------------------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_PROVENANCE_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_PROVENANCE_H

#include "shardc/Sharding/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace shardc {

/// What `value` is as if there were no loops and no reshards: of a loop's
/// result what is summed, of rows that a loop hands to its body the operand. An
/// argument of the function, or made by an op that is neither.
mlir::Value getWrittenValue(mlir::Value value);

/// Follows axes from the ops and arguments that hold them to the annotations
/// that they came from, by `shardc.origin` and the annotations in the locations
/// of arguments. Reads the function as it is at construction, with assignments.
class Provenance {
public:
  Provenance(mlir::func::FuncOp function, const MeshAxes &mesh);

  /// Where `axis` on the op came from. The op's assignment need not have the
  /// axis: it may work on partial sums that another op left.
  OriginAttr find(mlir::Operation *op, int axis);
  /// Where the axis of an argument at rest came from.
  OriginAttr find(mlir::BlockArgument argument, int axis);

private:
  /// The op nearest to a source, on the way to it.
  using Parents = llvm::DenseMap<mlir::Operation *, mlir::Operation *>;
  /// A search that goes on where it stopped.
  struct Way {
    Parents parents;
    std::vector<mlir::Operation *> queue;
    size_t next = 0;
  };

  OriginAttr make(int axis, mlir::StringRef name, mlir::Operation *end);
  /// The source that `shardc.origin` names for the axis; empty if none.
  mlir::StringRef getSourceName(mlir::Operation *op, int axis) const;
  bool holds(mlir::Operation *op, int axis) const {
    return held.lookup(op) & axisBit(axis);
  }
  /// For `end` and ops that hold `axis` and are not further from the values
  /// that `name` stands for, the way to these.
  const Parents &getParents(int axis, mlir::StringRef name,
                            mlir::Operation *end);
  mlir::ArrayAttr getThrough(int axis, mlir::StringRef name,
                             mlir::Operation *end);

  mlir::func::FuncOp function;
  const MeshAxes &mesh;
  /// Annotated arguments, constraints and results by the name in
  /// `shardc.origin`: their locations, and where an axis starts from there.
  struct Source {
    mlir::Location at;
    llvm::SmallVector<mlir::Operation *> ops;
  };
  llvm::StringMap<Source> sources;
  llvm::DenseMap<mlir::Operation *, int> order;
  /// The axes of each op's assignment.
  llvm::DenseMap<mlir::Operation *, AxisSet> held;
  /// Per axis the ops that hold it and that no source was found above.
  std::map<int, llvm::DenseSet<mlir::Operation *>> sourceless;
  std::map<std::pair<int, std::string>, Way> ways;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PARTITION_PROVENANCE_H
