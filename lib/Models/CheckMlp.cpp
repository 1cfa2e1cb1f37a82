//===- CheckMlp.cpp - Is this an MLP that can be built? -------------------===//

#include "shardc/Models/Mlp.h"

#include "shardc/Dialect/Shardc/IR/TrainingText.h"
#include "shardc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace shardc;

const std::vector<std::string> &shardc::getStrategies() {
  static const std::vector<std::string> names = {
      "none",  "dp",      "zero1",   "zero2",    "fsdp",     "tp",
      "dp+tp", "fsdp+tp", "hsdp",    "hsdp+tp",  "pp",       "dp+pp",
      "tp+pp", "pp+tp",   "fsdp+pp", "zero1+pp", "dp+tp+pp", "fsdp+tp+pp"};
  return names;
}

const std::vector<std::string> &shardc::getActivations() {
  static const std::vector<std::string> names = {"relu", "gelu", "gelu_tanh",
                                                 "silu", "tanh", "sigmoid"};
  return names;
}

const std::vector<std::string> &shardc::getLosses() {
  static const std::vector<std::string> names = {"mse",
                                                 "softmax_cross_entropy"};
  return names;
}

const std::vector<std::string> &shardc::getOptimizers() {
  static const std::vector<std::string> names = {"sgd", "momentum", "adam",
                                                 "adamw"};
  return names;
}

static std::string checkName(const char *what, const std::string &name,
                             const std::vector<std::string> &names) {
  if (llvm::is_contained(names, name))
    return "";
  return std::string(what) + ": unknown name '" + name + "'" +
         suggest(name, names);
}

static bool isNonNegative(double value) {
  return std::isfinite(value) && value >= 0;
}

/// Checks the flags of a pipeline.
static std::string checkPipeline(const MlpSpec &spec) {
  if (spec.strategy.find("pp") == std::string::npos) {
    const char *flag = spec.stages                      ? "stages"
                       : !spec.pipelineSchedule.empty() ? "pipeline-schedule"
                       : spec.virtualStages             ? "virtual-stages"
                                                        : nullptr;
    return flag ? std::string(flag) + ": strategy '" + spec.strategy +
                      "' has no pipeline; expected one with pp, such as dp+pp"
                : "";
  }
  for (auto [name, number] : {std::pair("stages", spec.stages),
                              std::pair("virtual-stages", spec.virtualStages)})
    if (number && (*number < 1 || *number > (1 << 20)))
      return std::string(name) + ": expected 1 to 1048576, found " +
             std::to_string(*number);
  for (const auto &[axis, size] : spec.mesh)
    if (axis == "stage" && spec.stages && size != *spec.stages)
      return "stages: " + std::to_string(*spec.stages) +
             " stages, but the mesh has " + std::to_string(size) +
             " devices along \"stage\"";
  static const std::vector<std::string> schedules = {
      "gpipe", "1f1b", "interleaved", "zero-bubble"};
  return spec.pipelineSchedule.empty()
             ? ""
             : checkName("pipeline-schedule", spec.pipelineSchedule, schedules);
}

/// Checks the policy of recomputation: "stage" is for pipelines.
static std::string checkRecompute(const MlpSpec &spec) {
  static const std::vector<std::string> policies = {"none", "layer", "stage",
                                                    "auto"};
  if (spec.recompute.empty() || spec.recompute == "none")
    return "";
  if (std::string error = checkName("recompute", spec.recompute, policies);
      !error.empty())
    return error;
  bool hasPipeline = spec.strategy.find("pp") != std::string::npos;
  if ((spec.recompute == "stage") == hasPipeline)
    return "";
  return "recompute: strategy '" + spec.strategy +
         (hasPipeline ? "' has a pipeline; expected stage or none"
                      : "' has no pipeline; expected layer, auto or none");
}

/// Checks the hyper-parameters of Adam.
static std::string checkMoments(const MlpSpec &spec) {
  for (const auto &[name, number] : spec.getMoments()) {
    if (!number)
      continue;
    if (spec.optimizer != "adam" && spec.optimizer != "adamw")
      return std::string(name) + ": only adam and adamw have one, not " +
             spec.optimizer;
    bool isDecay = llvm::StringRef(name) != "eps";
    if (!isNonNegative(*number) || (isDecay && *number >= 1))
      return std::string(name) +
             (isDecay ? ": expected a number in [0, 1)"
                      : ": expected a finite number of at least 0");
  }
  return "";
}

std::string shardc::checkMlp(const MlpSpec &spec) {
  if (spec.layers.size() < 2)
    return "layers: expected at least two sizes, such as 10,32,16,1";
  for (int64_t size : spec.layers)
    if (size < 1 || size > INT32_MAX)
      return "layers: expected sizes from 1 to 2147483647, found " +
             std::to_string(size);
  if (spec.residualBlocks < 0 || spec.residualBlocks > (1 << 20))
    return "residual-blocks: expected 0 to 1048576, found " +
           std::to_string(spec.residualBlocks);
  if (spec.residualBlocks > 0 && spec.layers.size() < 3)
    return "residual-blocks: expected at least three sizes of layers, of which "
           "the last but one is that of the blocks";
  if (spec.residualBlocks > 0 && spec.layerNorm)
    return "residual-blocks: the blocks have layer norms of their own; "
           "expected no --layer-norm";
  if (spec.batchSize < 1 || spec.batchSize > INT32_MAX)
    return "batch-size: expected 1 to 2147483647, found " +
           std::to_string(spec.batchSize);
  if (spec.microbatches < 1 || spec.microbatches > spec.batchSize)
    return "microbatches: expected 1 to the batch size, " +
           std::to_string(spec.batchSize) + ", found " +
           std::to_string(spec.microbatches);
  for (std::string error :
       {checkName("activation", spec.activation, getActivations()),
        checkName("loss", spec.loss, getLosses()),
        checkName("optimizer", spec.optimizer, getOptimizers()),
        checkName("strategy", spec.strategy, getStrategies())})
    if (!error.empty())
      return error;
  if (std::string error = checkPipeline(spec); !error.empty())
    return error;
  if (std::string error = checkRecompute(spec); !error.empty())
    return error;
  if (!isNonNegative(spec.learningRate))
    return "learning-rate: expected a finite number of at least 0";
  if (!spec.schedule.empty())
    if (std::string error = checkSchedule(spec.schedule); !error.empty())
      return "schedule: " + error;
  if (spec.momentum && spec.optimizer != "momentum")
    return "momentum: only the momentum optimizer has one, not " +
           spec.optimizer;
  if (spec.momentum && !isNonNegative(*spec.momentum))
    return "momentum: expected a finite number of at least 0";
  if (std::string error = checkMoments(spec); !error.empty())
    return error;
  if (spec.weightDecay && !isNonNegative(*spec.weightDecay))
    return "weight-decay: expected a finite number of at least 0";
  if (spec.clipNorm && (!isNonNegative(*spec.clipNorm) || *spec.clipNorm == 0))
    return "clip-norm: expected a finite number above 0";
  if (!(spec.dropout >= 0 && spec.dropout < 1))
    return "dropout: expected a rate in [0, 1)";
  if (spec.fsdpMinSize < 0)
    return "fsdp-min-size: expected 0 or more elements";
  return "";
}
