//===- Candidate.h - Ways to shard a model over devices ---------*- C++ -*-===//
//
// Enumerates meshes, strategies and numbers of microbatches. Plain values;
// thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ADVICE_CANDIDATE_H
#define SHARDC_ADVICE_CANDIDATE_H

#include "shardc/Models/Strategy.h"
#include "shardc/Support/MeshSpec.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardc {

/// The name of the candidates whose shardings the exact search chooses.
constexpr const char *cheapestName = "cheapest";

/// The numbers of a model that decide which candidates there are, and bounds of
/// their costs.
struct ModelFacts {
  /// Rows of a step.
  int64_t batchSize = 0;
  /// GEMMs with a parameter.
  int64_t numLayers = 0;
  /// Elements of all parameters, bytes of parameters and optimizer states.
  int64_t numParameters = 0;
  int64_t parameterBytes = 0, stateBytes = 0;
  /// Floating-point operations of the GEMMs of a step.
  int64_t matmulFlops = 0;

  /// Bytes of optimizer states per byte of a parameter, nearly.
  double getStatesPerParameter() const {
    return parameterBytes ? static_cast<double>(stateBytes) / parameterBytes
                          : 0;
  }
};

/// One way to shard a model.
struct Candidate {
  MeshSpec mesh;
  /// One of `getStrategies()`, or `cheapestName`.
  std::string strategy;
  int64_t microbatches = 1;
  /// Of a pipeline: the order of tasks, and the stages of each rank.
  std::string schedule = "1f1b";
  int64_t virtualStages = 1;
  /// none, layer or stage.
  std::string recompute = "none";
  bool regather = false;

  bool isCheapest() const { return strategy == cheapestName; }
  /// The strategy by its parts; of cheapest that of "none".
  Strategy getStrategy() const {
    return Strategy(isCheapest() ? "none" : strategy);
  }
  /// The ranks of the pipeline; 1 without one.
  int64_t getStages() const;
  /// The time of a pipeline that idles because of its schedule, if all stages
  /// and all three parts of a step (forward, gradients of inputs, of weights)
  /// take equally long, over the time in which a rank works. 0 without one.
  double getScheduleBubble() const;
  /// The parts into which the rows of the batch are divided.
  int64_t getRowShards() const;
  /// "fsdp+tp on data=4,model=2".
  std::string getName() const;
  /// What the model does not say itself: "--partition=cheapest --regather".
  std::string getFlags() const;
  /// Memory for time: "microbatches=8, recompute=layer", or "".
  std::string getChoices() const;
};

/// What candidates have to respect.
struct CandidateLimits {
  int64_t devices = 1;
  /// The axes that meshes may have; empty: all.
  std::vector<std::string> axes;
  /// Axes with a given size.
  MeshSpec fixedAxes;
  /// 0: free.
  int64_t microbatches = 0;
  /// Empty: free.
  std::string recompute, partition;
  bool hasStates = true;
  /// Whether all axes have the same link.
  bool hasOneLink = false;
};

/// The axes that strategies have: "stage", "replica", "shard", "data", "model".
const std::vector<std::string> &getStrategyAxes();

/// All meshes of `devices` devices on `axes`, in this order, each of at least
/// two devices.
std::vector<MeshSpec> listMeshes(int64_t devices,
                                 const std::vector<std::string> &axes);

/// Pipelines that are tried have at most so many microbatches times layers, the
/// length of their programs: beyond, a plan takes more than a second to
/// compile.
constexpr int64_t maxLayerTasks = 4096;

/// The candidates for `model` within `limits`, without what saves memory for
/// time: every strategy on every mesh, and for a pipeline of p ranks p, 2p, 4p
/// and 8p microbatches, as 1F1B, zero-bubble and interleaved with two and four
/// stages per rank. Not among them: more stages than layers, pipelines that
/// take long to compile (above `maxLayerTasks` layers times microbatches), more
/// shards of the batch than rows, tensor parallelism without layers to pair.
std::vector<Candidate> listCandidates(const ModelFacts &model,
                                      const CandidateLimits &limits);

} // namespace shardc

#endif // SHARDC_ADVICE_CANDIDATE_H
