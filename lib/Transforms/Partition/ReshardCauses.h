//===- ReshardCauses.h - Causes of reshards in words ------------*- C++ -*-===//
//
// The texts of `shardc.cause`. MoveProvenance.h describes the same as data.
// Thread-safe to read.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_RESHARDCAUSES_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_RESHARDCAUSES_H

#include "shardc/Sharding/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// Names for the values of one function, and the causes of their reshards.
/// Construct it before the function changes. Borrows `mesh`.
class ReshardCauses {
public:
  ReshardCauses(mlir::func::FuncOp function, const MeshAxes &mesh);

  /// "w0", "gradient of w0", "loss"; nullopt for values without a name.
  std::optional<std::string> getName(mlir::Value value) const;

  /// The name if `value` has one, else "result of add at mlp.mlir:12".
  std::string describe(mlir::Value value) const;

  /// The cause of a reshard of `value`, produced in layout `from`, to layout
  /// `to` for `use`.
  std::string explain(mlir::Value value, const Layout &from, const Layout &to,
                      const mlir::OpOperand &use) const;

private:
  void nameGradients(mlir::Value result, llvm::StringRef parameter);
  void nameUnscaled(mlir::Value result);

  mlir::func::FuncOp function;
  const MeshAxes &mesh;
  llvm::DenseMap<mlir::Value, std::string> names;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PARTITION_RESHARDCAUSES_H
