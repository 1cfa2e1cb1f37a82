//===- Mlp.h - Source modules of multi-layer perceptrons --------*- C++ -*-===//
//
// Builds the module that a person would write by hand for an MLP: mesh, loss
// function with roles and shardings, training description. shardc-gen prints
// it. Pure functions: thread-safe on distinct contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MODELS_MLP_H
#define SHARDC_MODELS_MLP_H

#include "shardc/Support/MeshSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardc {

/// An MLP, how it is trained and how it is sharded.
struct MlpSpec {
  /// Sizes from the input to the output; at least two.
  std::vector<int64_t> layers;
  /// relu, gelu, gelu_tanh, silu, tanh or sigmoid, after every layer but the
  /// last.
  std::string activation = "relu";
  /// Whether a layer norm precedes each activation.
  bool layerNorm = false;
  /// Pre-LN residual blocks in front of the last layer, in place of the
  /// activation there: h + W'·act(W·norm(h)) of h's width each; then a layer
  /// norm. Needs three sizes of layers, and no `layerNorm`.
  int64_t residualBlocks = 0;
  /// Rate of dropout after each activation, in [0, 1); 0: none.
  double dropout = 0;
  /// mse (y is [batch, out] f32) or softmax_cross_entropy (y is [batch] i32).
  std::string loss = "mse";
  /// sgd, momentum, adam or adamw.
  std::string optimizer = "sgd";
  double learningRate = 0.01;
  /// As `readSchedule` reads it, "cosine,warmup_steps=10,decay_steps=100";
  /// empty: the rate stays.
  std::string schedule;
  /// Absent: optax's default. Only with the momentum optimizer.
  std::optional<double> momentum;
  /// Absent: optax's defaults. Only with adam and adamw.
  std::optional<double> b1, b2, eps;
  /// Absent: optax's default.
  std::optional<double> weightDecay;
  /// Largest global norm of the gradients; absent: unlimited.
  std::optional<double> clipNorm;
  /// One of `getStrategies()`.
  std::string strategy = "none";
  /// Of a strategy with pp, the number of pipeline ranks; absent: as the mesh
  /// says, or 2.
  std::optional<int64_t> stages;
  /// gpipe, 1f1b, interleaved or zero-bubble; empty: 1f1b.
  std::string pipelineSchedule;
  /// Stages of each rank; absent: 1.
  std::optional<int64_t> virtualStages;
  /// none, layer, stage (of a strategy with pp) or auto; empty: none.
  std::string recompute;
  /// Smallest parameter, in elements, that the fsdp strategies shard.
  int64_t fsdpMinSize = 0;
  /// Axes of size 1 are added for those that the strategy needs. Empty: eight
  /// devices (no mesh for "none").
  MeshSpec mesh;
  /// Global batch, rows.
  int64_t batchSize = 128;
  /// The number of microbatches of a step; it divides the batch.
  int64_t microbatches = 1;

  /// The hyper-parameters of adam and adamw by name.
  std::array<std::pair<const char *, std::optional<double>>, 3>
  getMoments() const {
    return {{{"b1", b1}, {"b2", b2}, {"eps", eps}}};
  }
};

/// none, dp, zero1, zero2, fsdp, tp, dp+tp, fsdp+tp, hsdp, hsdp+tp; pp, dp+pp,
/// tp+pp, fsdp+pp, zero1+pp, dp+tp+pp, fsdp+tp+pp, and pp+tp for tp+pp.
const std::vector<std::string> &getStrategies();
const std::vector<std::string> &getActivations();
const std::vector<std::string> &getLosses();
const std::vector<std::string> &getOptimizers();

/// The error of `spec`, with the expected value; empty if there is none.
std::string checkMlp(const MlpSpec &spec);

/// The text of the module. `spec` has passed `checkMlp`.
std::string printMlp(const MlpSpec &spec);

/// The module, with locations in the text of `printMlp` under the name `name`;
/// the dialects of `registerShardcDialects` must be registered in `context`.
/// Null, with a diagnostic, only for a fault of the builder.
mlir::OwningOpRef<mlir::ModuleOp> buildMlp(mlir::MLIRContext &context,
                                           const MlpSpec &spec,
                                           llvm::StringRef name = "mlp.mlir");

} // namespace shardc

#endif // SHARDC_MODELS_MLP_H
