//===- Strategy.h - The annotations of sharding strategies ------*- C++ -*-===//
//
// The parts of a strategy by name, and the axes that they give to the arguments
// of a loss function. Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MODELS_STRATEGY_H
#define SHARDC_MODELS_STRATEGY_H

#include "shardc/Models/Mlp.h"

namespace shardc {

/// The parts of a strategy, one of `getStrategies()`.
struct Strategy {
  explicit Strategy(llvm::StringRef name);

  /// Axes of the rows of inputs and labels, major to minor.
  std::vector<std::string> rowAxes;
  /// Axis of dimension 0 in the storage sharding of parameters; empty: none.
  std::string parameterAxis;
  /// Axis that alternates between columns and rows of weights; empty: none.
  std::string modelAxis;
  /// Axis of the stages of a pipeline; empty: none.
  std::string pipelineAxis;
  /// Axis of dimension 0 of states (ZeRO-1) and gradients (ZeRO-2).
  std::string stateAxis;
  std::string gradientAxis;

  /// Whether parameters, their states or gradients are sharded.
  bool shardsParameters() const {
    return !parameterAxis.empty() || !modelAxis.empty() || !stateAxis.empty();
  }
  /// Axes that the mesh must have, in the order in which they are declared.
  std::vector<std::string> getAxes() const;
};

/// The axes of each dimension.
using DimAxes = std::vector<std::vector<std::string>>;

/// The storage sharding of a parameter. `layer` counts from 0; `shape` has one
/// (bias, scale) or two dimensions.
DimAxes getParameterAxes(const Strategy &strategy, int64_t layer,
                         const std::vector<int64_t> &shape,
                         int64_t fsdpMinSize);

/// A name that describes a sharding: `rows_data`, `data_by_model`.
std::string nameSharding(const DimAxes &axes);

/// The mesh of `spec` with the axes that its strategy needs.
MeshSpec getMesh(const MlpSpec &spec, const Strategy &strategy);

} // namespace shardc

#endif // SHARDC_MODELS_STRATEGY_H
