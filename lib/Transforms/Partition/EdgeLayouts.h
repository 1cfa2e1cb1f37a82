//===- EdgeLayouts.h - What is produced and what is wanted ------*- C++ -*-===//
//
// The layouts at both ends of every edge of a function, as they follow from
// sharding rules and assignments. Changes no IR. Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_EDGELAYOUTS_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_EDGELAYOUTS_H

#include "shardc/Analysis/OpLayouts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// The uses of a value that want it in one layout, in block order.
struct Want {
  Layout layout;
  llvm::SmallVector<mlir::OpOperand *, 2> uses;
};

/// Of one function.
class EdgeLayouts {
public:
  /// Borrows `mesh`.
  EdgeLayouts(mlir::func::FuncOp function, const MeshAxes &mesh)
      : function(function), mesh(mesh) {}

  /// Looks at every op of the function. Fails with an error where shardings or
  /// assignments are missing.
  mlir::LogicalResult collect();

  /// How `value`, which was there when layouts were collected, is produced.
  const Layout &getProduced(mlir::Value value) const {
    auto it = produced.find(value);
    assert(it != produced.end() && "value of another function, or added since");
    return it->second;
  }

  /// The layouts that `value` is wanted in, distinct, in order of first uses.
  llvm::ArrayRef<Want> getWants(mlir::Value value) const {
    auto it = wants.find(value);
    return it == wants.end() ? llvm::ArrayRef<Want>() : it->second;
  }

  /// Whether `op` came before `other` when layouts were collected; a loop comes
  /// before its body.
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
