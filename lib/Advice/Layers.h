//===- Layers.h - The layers of a loss function -----------------*- C++ -*-===//

#ifndef SHARDC_LIB_ADVICE_LAYERS_H
#define SHARDC_LIB_ADVICE_LAYERS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <vector>

namespace shardc {

/// A GEMM with a parameter as second factor.
struct Layer {
  /// Elements of the whole input, weight and result.
  double input = 0, weight = 0, result = 0;
  /// Whether the gradient of its input is computed.
  bool hasInputGradient = false;
  /// Whether tensor parallelism shards it by row; else by column.
  bool isByRow = false;
  /// Elements that devices along the axis of tensor parallelism have to sum up,
  /// at the least, once for each reduce-scatter and each all-gather, and the
  /// number of these.
  double sumElements = 0, sumSteps = 0;
  mlir::Value inputValue;
  mlir::BlockArgument argument;
  /// Of the weight as a parameter.
  double weightBytes = 0;

  /// 2·M·N·K: a matrix of M x K times one of K x N has (M·N·K)² for the product
  /// of the sizes of all three.
  double getForwardFlops() const;
  double getFlops() const {
    return (hasInputGradient ? 3 : 2) * getForwardFlops();
  }
};

/// The layers of `loss`, in order.
std::vector<Layer> listLayers(mlir::func::FuncOp loss);

double getElements(mlir::Value value);
/// The bytes of a tensor of `type`.
double getBytesOf(mlir::Type type);

/// The number of devices that divide a tensor annotated by `sharding`.
double getShards(MeshOp mesh, ShardingAttr sharding);
/// The same of `axis` alone.
double getShardsAlong(MeshOp mesh, ShardingAttr sharding, llvm::StringRef axis);

} // namespace shardc

#endif // SHARDC_LIB_ADVICE_LAYERS_H
