//===- FixIts.cpp - Changes of annotations that remove collectives --------===//

#include "shardc/WhatIf/FixIts.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "shardc/Pipelines/Phases.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Report/Explain.h"

using namespace mlir;
using namespace shardc;

/// Every trial is a search; this limit leaves it the fewest branches.
constexpr int64_t maxTrialBranchOptions = 1;

static func::FuncOp getLoss(ModuleOp module) {
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  return module.lookupSymbol<func::FuncOp>(training.getLoss());
}

static const ExplainedProgram *findProgram(const Explanation &explanation,
                                           StringRef name) {
  for (const ExplainedProgram &program : explanation.programs)
    if (program.name == name)
      return &program;
  return nullptr;
}

/// The bytes that tensor `name` sends over any of `axes` in collectives of kind
/// `kind` (empty: any), and the number of these collectives.
static std::pair<int64_t, int> count(const ExplainedProgram &program,
                                     StringRef name, StringRef kind,
                                     ArrayRef<std::string> axes) {
  int64_t bytes = 0;
  int number = 0;
  for (const ExplainedCollective &collective : program.collectives) {
    if ((!kind.empty() && collective.kind != kind) ||
        llvm::none_of(collective.axes, [&](const std::string &axis) {
          return llvm::is_contained(axes, axis);
        }))
      continue;
    for (const MovedTensor &tensor : collective.tensors)
      if (tensor.name == name) {
        bytes += tensor.wireBytes;
        ++number;
      }
  }
  return {bytes, number};
}

/// The bytes of all sends, and of those between the stages of `send`.
static std::pair<int64_t, int64_t> countSends(const ExplainedProgram &program,
                                              const ExplainedCollective &send) {
  const MovedTensor &sent = send.tensors.front();
  int64_t all = 0, same = 0;
  for (const ExplainedCollective &collective : program.collectives)
    for (const MovedTensor &tensor : collective.tensors)
      if (collective.isSend()) {
        all += tensor.wireBytes;
        if (tensor.producer.stage == sent.producer.stage &&
            tensor.consumer.stage == sent.consumer.stage)
          same += tensor.wireBytes;
      }
  return {all, same};
}

/// Whether `after` has less of what `collective` does in `before` to tensor
/// `name`: it does not do it any more, or it sends less.
static bool removes(const ExplainedProgram &before,
                    const ExplainedProgram &after,
                    const ExplainedCollective &collective, StringRef name) {
  if (collective.isSend()) {
    auto [all, same] = countSends(before, collective);
    auto [allAfter, sameAfter] = countSends(after, collective);
    return allAfter < all && sameAfter < same &&
           after.cost.sumOfWireBytes <= before.cost.sumOfWireBytes;
  }
  return count(after, name, collective.kind, collective.axes).second == 0 &&
         count(after, name, "", collective.axes).first <=
             count(before, name, "", collective.axes).first;
}

FixItFinder::FixItFinder(ModuleOp imported, const SourceAnnotations &source,
                         const CompileOptions &options, const Machine &machine,
                         const Explanation &explanation)
    : imported(imported), source(source), options(options), machine(machine),
      explanation(explanation),
      proposer(getLoss(imported), options.partition == "follow", source) {
  // `import` has applied these options already.
  this->options.mesh.clear();
  this->options.rules.clear();
  this->options.dtype.clear();
  this->options.batchSize = 0;
  this->options.microbatches = 0;
  this->options.maxBranchOptions = maxTrialBranchOptions;
}

void FixItFinder::find(const ExplainedProgram &program,
                       ExplainedCollective &collective) {
  for (const Edits &edits : proposer.propose(collective, maxTriedChanges)) {
    const Explanation *trial = compile(edits);
    if (!trial)
      continue;
    ++collective.numTried;
    const ExplainedProgram *changed = findProgram(*trial, program.name);
    if (!changed)
      continue;
    bool isWorthIt = pays(program, *trial);
    bool isRemoved = !collective.tensors.empty();
    for (MovedTensor &tensor : collective.tensors) {
      bool isGone = removes(program, *changed, collective, tensor.name);
      isRemoved &= isGone;
      if (isGone && isWorthIt)
        offer(tensor.fixIt, edits, program.cost, changed->cost);
    }
    if (isRemoved && isWorthIt)
      offer(collective.fixIt, edits, program.cost, changed->cost);
    else if (isRemoved &&
             (!collective.costWithout ||
              changed->cost.seconds < collective.costWithout->seconds))
      collective.costWithout = changed->cost;
  }
  if (!collective.fixIt)
    return;
  // A boundary between stages is no annotation to blame.
  if (!collective.isSend())
    collective.guilty = collective.fixIt->edits.front().source;
  collective.costWithout.reset();
}

/// Whether `trial` pays in `program`, and not at the expense of the step.
bool FixItFinder::pays(const ExplainedProgram &program,
                       const Explanation &trial) const {
  const ExplainedProgram &step = explanation.programs.front();
  const ExplainedProgram *after = findProgram(trial, program.name);
  const ExplainedProgram *stepAfter = findProgram(trial, step.name);
  if (!after || !stepAfter || !shardc::pays(program.cost, after->cost))
    return false;
  return stepAfter->cost.wireBytes <= step.cost.wireBytes ||
         !isFaster(step.cost, stepAfter->cost) || after == stepAfter;
}

void FixItFinder::offer(std::optional<FixIt> &best, const Edits &edits,
                        const ProgramCost &before,
                        const ProgramCost &after) const {
  auto rank = [&](const ProgramCost &it) {
    bool isSlower = isFaster(before, it);
    bool isMore = it.wireBytes > before.wireBytes;
    return std::make_tuple(isSlower || isMore, isSlower,
                           isSlower ? 0 : it.seconds, it.wireBytes,
                           it.stateBytes);
  };
  if (!best || rank(after) < rank(best->cost))
    best = FixIt{edits.describe(getLoss(imported), source), after};
}

/// The programs with the changes, none if they do not compile or do not fit;
/// null if the limit of compilations is reached.
const Explanation *FixItFinder::compile(const Edits &edits) {
  auto it = compiled.find(edits.getKey());
  if (it == compiled.end()) {
    bool isLong =
        options.partition == "cheapest" || imported->hasAttr(pipelineAttrName);
    size_t limit = isLong ? maxLongChanges : maxCompiledChanges;
    if (compiled.size() >= limit)
      return nullptr;
    it = compiled.emplace(edits.getKey(), run(edits)).first;
  }
  return &it->second;
}

Explanation FixItFinder::run(const Edits &edits) {
  // Diagnostics of a trial are dropped.
  ScopedDiagnosticHandler silence(imported.getContext(),
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy = imported.clone();
  edits.apply(getLoss(*copy));
  int collectives = getPhaseIndex("collectives");
  if (!compileOnTrial(*copy, 0, collectives, options).empty())
    return {};
  FailureOr<Explanation> result = explain(*copy, machine);
  if (failed(result))
    return {};
  for (ExplainedProgram &program : result->programs)
    if (std::optional<PlanCost> cost =
            getPlanCost(copy->lookupSymbol<func::FuncOp>(program.name)))
      program.cost.mayBeLess = cost->isSearched() && !cost->isProved();
  if (options.deviceMemory == 0 && !imported->hasAttr(pipelineAttrName))
    return std::move(*result);
  if (!compileOnTrial(*copy, collectives + 1, getPhaseIndex("memory"), options)
           .empty())
    return {};
  auto arena = (*copy)->getAttrOfType<IntegerAttr>(arenaBytesAttrName);
  if (options.deviceMemory > 0 && arena.getInt() > options.deviceMemory)
    return {};
  setPipelineCosts(*result, *copy, machine);
  return std::move(*result);
}

void shardc::findFixIts(ModuleOp imported, const SourceAnnotations &source,
                        const CompileOptions &options, const Machine &machine,
                        Explanation &explanation) {
  FixItFinder finder(imported, source, options, machine, explanation);
  std::vector<std::pair<ExplainedProgram *, ExplainedCollective *>> all;
  for (ExplainedProgram &program : explanation.programs)
    for (ExplainedCollective &collective : program.collectives)
      all.push_back({&program, &collective});
  llvm::stable_sort(all, [](const auto &lhs, const auto &rhs) {
    return lhs.second->wireBytes > rhs.second->wireBytes;
  });
  for (auto [program, collective] : all)
    finder.find(*program, *collective);
}
