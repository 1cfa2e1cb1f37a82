//===- ReshardCauses.h - Why a reshard exists, in words ---------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_RESHARDCAUSES_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_RESHARDCAUSES_H

#include "shardc/Sharding/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// Names the values of one function for people, and says why they are
/// resharded. Reads the function as it is at construction.
class ReshardCauses {
public:
  ReshardCauses(mlir::func::FuncOp function, const MeshAxes &mesh);

  /// "w0", "gradient of w0", "loss"; nullopt for values without a name.
  std::optional<std::string> getName(mlir::Value value) const;

  /// The name, or "result of add at mlp.mlir:12".
  std::string describe(mlir::Value value) const;

  /// Why `value`, produced in layout `from`, is resharded to `to` for `use`.
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
