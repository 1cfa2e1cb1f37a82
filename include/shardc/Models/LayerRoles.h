//===- LayerRoles.h - Which layers tensor parallelism pairs -----*- C++ -*-===//
//
// Tensor parallelism as in Megatron-LM (Shoeybi et al., 2019) alternates: a
// layer whose weight is sharded by column makes a value that is sharded, and
// the next one, sharded by row, makes a sum that is whole again. Reads the IR
// only; not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MODELS_LAYERROLES_H
#define SHARDC_MODELS_LAYERROLES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace shardc {

/// The layers of a loss function: GEMMs with a parameter as second factor.
class LayerRoles {
public:
  /// A layer is sharded by row if its input is sharded by column, or if its
  /// result is added to another value and must be whole (the end of a residual
  /// block, and the layer before the first). So is the last layer behind such a
  /// sum. Every other layer is sharded by column.
  explicit LayerRoles(mlir::func::FuncOp loss);

  /// 0 if `parameter` is of a layer that is sharded by column, its bias and
  /// what stands beside its result included; 1 by row; nullopt of no layer.
  std::optional<int64_t> lookup(mlir::BlockArgument parameter) const {
    auto found = roles.find(parameter);
    return found == roles.end() ? std::nullopt : std::optional(found->second);
  }
  /// The number of layers.
  int64_t getNumLayers() const { return numLayers; }

private:
  /// How the values of a loss function are under tensor parallelism.
  enum class State { Whole, Split, Sum };

  void visit(mlir::Operation *op);
  void addLayer(mlir::Value input, mlir::Value weight, mlir::Value bias,
                mlir::Value result);
  State getState(mlir::Value value) const { return states.lookup(value); }
  void setRole(mlir::Value parameter, int64_t role);

  llvm::DenseMap<mlir::Value, State> states;
  llvm::DenseMap<mlir::Value, int64_t> roles;
  int64_t numLayers = 0;
};

} // namespace shardc

#endif // SHARDC_MODELS_LAYERROLES_H
