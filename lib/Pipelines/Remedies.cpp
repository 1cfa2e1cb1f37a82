//===- Remedies.cpp - Changes that remove collectives, priced -------------===//

#include "Remedies.h"

#include "EditProposer.h"
#include "RunAside.h"

#include "shardc/Analysis/Explain.h"
#include "shardc/Pipelines/Phases.h"

#include "mlir/IR/Diagnostics.h"

#include <map>

using namespace mlir;
using namespace shardc;

namespace {

class RemedyFinder {
public:
  RemedyFinder(ModuleOp imported, const CompileOptions &options,
               const Machine &machine)
      : imported(imported), options(options), machine(machine),
        proposer(getLoss(imported)) {
    // What the options replace, `import` has replaced.
    this->options.mesh.clear();
    this->options.rules.clear();
    this->options.batchSize = 0;
    this->options.microbatches = 0;
  }

  void find(const ExplainedProgram &program, ExplainedCollective &collective) {
    for (const Edits &edits : proposer.propose(collective, maxTriedChanges)) {
      const Explanation *trial = compile(edits);
      if (!trial)
        continue;
      ++collective.numTried;
      const ExplainedProgram *changed = findProgram(*trial, program.name);
      if (!changed)
        continue;
      bool isRemoved = !collective.tensors.empty();
      for (MovedTensor &tensor : collective.tensors) {
        if (removes(program, *changed, collective, tensor.name))
          offer(tensor.remedy, edits, changed->cost);
        else
          isRemoved = false;
      }
      if (isRemoved)
        offer(collective.remedy, edits, changed->cost);
    }
    if (collective.remedy)
      collective.guilty = collective.remedy->edits.front().source;
  }

private:
  static func::FuncOp getLoss(ModuleOp module) {
    auto training = module->getAttrOfType<TrainingAttr>("shardc.training");
    return module.lookupSymbol<func::FuncOp>(training.getLoss());
  }

  static const ExplainedProgram *findProgram(const Explanation &explanation,
                                             StringRef name) {
    for (const ExplainedProgram &program : explanation.programs)
      if (program.name == name)
        return &program;
    return nullptr;
  }

  /// The programs with the changes, none if they do not compile; null if too
  /// many have been compiled already.
  const Explanation *compile(const Edits &edits) {
    auto it = compiled.find(edits.getKey());
    if (it == compiled.end()) {
      if (compiled.size() >= maxCompiledChanges)
        return nullptr;
      it = compiled.emplace(edits.getKey(), run(edits)).first;
    }
    return &it->second;
  }

  Explanation run(const Edits &edits) {
    // What is said of a trial is of no interest.
    ScopedDiagnosticHandler silence(imported.getContext(),
                                    [](Diagnostic &) { return success(); });
    OwningOpRef<ModuleOp> copy = imported.clone();
    edits.apply(getLoss(*copy));
    if (!runAside(*copy, 0, getPhaseIndex("collectives"), options).empty())
      return {};
    FailureOr<Explanation> explanation = explain(*copy, machine);
    return succeeded(explanation) ? std::move(*explanation) : Explanation();
  }

  /// What tensor `name` sends over any of `axes` in collectives of kind `kind`
  /// (empty: any), and in how many.
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

  static bool removes(const ExplainedProgram &before,
                      const ExplainedProgram &after,
                      const ExplainedCollective &collective, StringRef name) {
    return count(after, name, collective.kind, collective.axes).second == 0 &&
           count(after, name, "", collective.axes).first <=
               count(before, name, "", collective.axes).first;
  }

  void offer(std::optional<Remedy> &best, const Edits &edits,
             const ProgramCost &cost) {
    auto rank = [](const ProgramCost &it) {
      return std::make_tuple(it.matmulFlops, it.wireBytes, it.stateBytes);
    };
    if (!best || rank(cost) < rank(best->cost))
      best = Remedy{edits.describe(getLoss(imported)), cost};
  }

  ModuleOp imported;
  CompileOptions options;
  const Machine &machine;
  EditProposer proposer;
  /// By Edits::getKey; no programs where a change does not compile.
  std::map<std::string, Explanation> compiled;
};

} // namespace

void shardc::findRemedies(ModuleOp imported, const CompileOptions &options,
                          const Machine &machine, Explanation &explanation) {
  RemedyFinder finder(imported, options, machine);
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
