//===- EdgeLayouts.h - Layouts at both ends of each edge --------*- C++ -*-===//
//
// An edge leads from the producer of a value to a use of it. The layouts at its
// ends follow from sharding rules and strategies. Changes no IR. Not
// thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_EDGELAYOUTS_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_EDGELAYOUTS_H

#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// A layout in which a value is used, and those uses, in program order.
struct Consumer {
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
  /// a strategy is missing.
  mlir::LogicalResult collect();

  /// The layout in which `value` is produced. `value` must have existed when
  /// layouts were collected.
  const Layout &getProduced(mlir::Value value) const {
    auto it = produced.find(value);
    assert(it != produced.end() && "value of another function, or added since");
    return it->second;
  }

  /// The distinct layouts in which `value` is used, in the order of first uses.
  llvm::ArrayRef<Consumer> getConsumers(mlir::Value value) const {
    auto it = consumers.find(value);
    return it == consumers.end() ? llvm::ArrayRef<Consumer>() : it->second;
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
  void addConsumer(mlir::OpOperand &use, const Layout &layout);

  mlir::func::FuncOp function;
  const MeshAxes &mesh;
  llvm::DenseMap<mlir::Value, Layout> produced;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Consumer, 1>> consumers;
  llvm::DenseMap<mlir::Operation *, int> order;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PARTITION_EDGELAYOUTS_H
