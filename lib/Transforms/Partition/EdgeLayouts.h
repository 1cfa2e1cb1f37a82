//===- EdgeLayouts.h - Layouts at both ends of each edge --------*- C++ -*-===//
//
// An edge leads from the producer of a value to a use of it. The layouts at its
// ends follow from sharding rules and assignments. Changes no IR. Not
// thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_EDGELAYOUTS_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_EDGELAYOUTS_H

#include "shardc/Analysis/OpLayouts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// The uses of a value that need it in the same layout, in program order.
struct Want {
  Layout layout;
  llvm::SmallVector<mlir::OpOperand *, 2> uses;
};

/// The layouts of one function.
class EdgeLayouts {
public:
  /// Borrows `mesh`.
  EdgeLayouts(mlir::func::FuncOp function, const MeshAxes &mesh)
      : function(function), mesh(mesh) {}

  /// Collects the layouts of all edges. Fails with an error where a sharding or
  /// an assignment is missing.
  mlir::LogicalResult collect();

  /// The layout in which `value` is produced. `value` must have existed when
  /// layouts were collected.
  const Layout &getProduced(mlir::Value value) const {
    auto it = produced.find(value);
    assert(it != produced.end() && "value of another function, or added since");
    return it->second;
  }

  /// The distinct layouts in which `value` is used, in the order of first uses.
  llvm::ArrayRef<Want> getWants(mlir::Value value) const {
    auto it = wants.find(value);
    return it == wants.end() ? llvm::ArrayRef<Want>() : it->second;
  }

  /// Whether `op` preceded `other` when layouts were collected. A loop precedes
  /// its body.
  bool isBefore(mlir::Operation *op, mlir::Operation *other) const {
    return order.lookup(op) < order.lookup(other);
  }

private:
  mlir::LogicalResult collectArguments();
  mlir::LogicalResult collect(mlir::Block &block);
  mlir::LogicalResult collectBody(AccumulateOp loop, const OpLayouts &layouts);
  void addWant(mlir::OpOperand &use, const Layout &layout);

  mlir::func::FuncOp function;
  const MeshAxes &mesh;
  llvm::DenseMap<mlir::Value, Layout> produced;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Want, 1>> wants;
  llvm::DenseMap<mlir::Operation *, int> order;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PARTITION_EDGELAYOUTS_H
