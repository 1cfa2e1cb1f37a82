//===- Candidate.cpp - Ways to shard a model over devices -----------------===//

#include "shardc/Advice/Candidate.h"

#include "shardc/Models/Mlp.h"

#include "llvm/ADT/STLExtras.h"

using namespace shardc;

static int64_t getSize(const MeshSpec &mesh, const std::string &axis) {
  for (const auto &[name, size] : mesh)
    if (name == axis)
      return size;
  return 1;
}

int64_t Candidate::getStages() const {
  return getSize(mesh, getStrategy().pipelineAxis);
}

int64_t Candidate::getRowShards() const {
  int64_t shards = 1;
  for (const std::string &axis : getStrategy().rowAxes)
    shards *= getSize(mesh, axis);
  return shards;
}

double Candidate::getScheduleBubble() const {
  // Narayanan et al., arXiv 2104.04473, section 2.2; Qi et al., arXiv
  // 2401.10241, section 2.3: gradients of weights fill two thirds.
  double parts = schedule == "zero-bubble" ? 3 : virtualStages;
  return static_cast<double>(getStages() - 1) /
         (parts * static_cast<double>(microbatches));
}

std::string Candidate::getName() const {
  return strategy + " on " + toString(mesh);
}

std::string Candidate::getFlags() const {
  std::string flags;
  if (isCheapest())
    flags += " --partition=cheapest";
  if (regather)
    flags += " --regather";
  return flags.empty() ? flags : flags.substr(1);
}

std::string Candidate::getChoices() const {
  std::string choices;
  if (microbatches > 1)
    choices += ", microbatches=" + std::to_string(microbatches);
  if (schedule != "1f1b")
    choices += ", " + schedule;
  if (virtualStages > 1)
    choices += ", virtual-stages=" + std::to_string(virtualStages);
  if (recompute != "none")
    choices += ", recompute=" + recompute;
  if (regather)
    choices += ", regather";
  return choices.empty() ? choices : choices.substr(2);
}

const std::vector<std::string> &shardc::getStrategyAxes() {
  static const std::vector<std::string> axes = {"stage", "replica", "shard",
                                                "data", "model"};
  return axes;
}

std::vector<MeshSpec> shardc::listMeshes(int64_t devices,
                                         const std::vector<std::string> &axes) {
  std::vector<MeshSpec> meshes;
  if (axes.empty())
    return meshes;
  std::vector<std::string> others(axes.begin() + 1, axes.end());
  if (others.empty()) {
    if (devices > 1)
      meshes.push_back({{axes[0], devices}});
    return meshes;
  }
  for (int64_t size = 2; size < devices; ++size) {
    if (devices % size != 0)
      continue;
    for (MeshSpec &mesh : listMeshes(devices / size, others)) {
      mesh.insert(mesh.begin(), {axes[0], size});
      meshes.push_back(std::move(mesh));
    }
  }
  return meshes;
}

/// The numbers of microbatches that are tried for a pipeline.
static std::vector<int64_t> listMicrobatches(const ModelFacts &model,
                                             const Candidate &candidate,
                                             const CandidateLimits &limits) {
  if (limits.microbatches > 0)
    return {limits.microbatches};
  int64_t stages = candidate.getStages();
  std::vector<int64_t> numbers;
  int64_t rows = model.batchSize / candidate.getRowShards();
  if (stages > 1)
    for (int64_t times : {1, 2, 4, 8})
      if (times * stages <= rows &&
          times * stages * model.numLayers <= maxLayerTasks)
        numbers.push_back(times * stages);
  // A batch too small for that has as many as it has rows.
  if (stages == 1)
    numbers.push_back(1);
  else if (stages > rows)
    numbers.push_back(rows);
  return numbers;
}

namespace {

/// Collects the candidates of one model.
class CandidateList {
public:
  CandidateList(const ModelFacts &model, const CandidateLimits &limits)
      : model(model), limits(limits) {}

  void add(const std::string &name) {
    Candidate candidate;
    candidate.strategy = name;
    Strategy strategy = candidate.getStrategy();
    if (!suits(strategy))
      return;
    for (const MeshSpec &mesh : listMeshes(limits.devices, strategy.getAxes()))
      addOn(mesh, candidate);
  }

  void addOn(const MeshSpec &mesh, Candidate candidate) {
    candidate.mesh = mesh;
    for (const auto &[axis, size] : mesh)
      if (!limits.axes.empty() && !llvm::is_contained(limits.axes, axis))
        return;
    for (const auto &[axis, size] : limits.fixedAxes)
      if (getSize(mesh, axis) != size)
        return;
    if (candidate.getStages() > model.numLayers && candidate.getStages() > 1)
      return;
    if (candidate.getRowShards() > model.batchSize)
      return;
    if (!limits.recompute.empty())
      candidate.recompute = limits.recompute;
    bool isPipeline = candidate.getStages() > 1;
    if (candidate.recompute == (isPipeline ? "layer" : "stage"))
      return;
    for (int64_t number : listMicrobatches(model, candidate, limits)) {
      candidate.microbatches = number;
      addSchedules(candidate);
    }
  }

  std::vector<Candidate> list;

private:
  void addSchedules(Candidate candidate) {
    list.push_back(candidate);
    int64_t ranks = candidate.getStages();
    // With one microbatch there is nothing to order.
    if (ranks == 1 || candidate.microbatches == 1)
      return;
    candidate.schedule = "zero-bubble";
    list.push_back(candidate);
    candidate.schedule = "interleaved";
    for (int64_t stages : {2, 4})
      if (candidate.microbatches % ranks == 0 &&
          stages * ranks <= model.numLayers) {
        candidate.virtualStages = stages;
        list.push_back(candidate);
      }
  }

  bool suits(const Strategy &strategy) const {
    if (!strategy.stateAxis.empty() && strategy.gradientAxis.empty() &&
        !limits.hasStates)
      return false;
    return strategy.modelAxis.empty() || model.numLayers > 0;
  }

  const ModelFacts &model;
  const CandidateLimits &limits;
};

} // namespace

std::vector<Candidate> shardc::listCandidates(const ModelFacts &model,
                                              const CandidateLimits &limits) {
  CandidateList candidates(model, limits);
  if (limits.devices == 1) {
    Candidate one;
    one.strategy = "none";
    candidates.addOn({{"data", 1}}, one);
    return candidates.list;
  }
  bool follows = limits.partition != "cheapest";
  for (const std::string &name : getStrategies())
    // pp+tp is another name of tp+pp.
    if (follows && name != "none" && name != "pp+tp")
      candidates.add(name);
  if (limits.partition == "follow")
    return candidates.list;
  Candidate searched;
  searched.strategy = cheapestName;
  for (const std::vector<std::string> &axes :
       {std::vector<std::string>{"data"}, {"data", "model"}})
    for (const MeshSpec &mesh : listMeshes(limits.devices, axes))
      // The search knows no names, so that axes of equal links can change
      // places.
      if (!limits.hasOneLink || mesh.front().second >= mesh.back().second)
        candidates.addOn(mesh, searched);
  return candidates.list;
}
