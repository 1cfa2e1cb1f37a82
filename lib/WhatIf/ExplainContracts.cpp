//===- ExplainContracts.cpp - Broken contracts with fix-its ---------------===//

#include "shardc/WhatIf/ExplainContracts.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/WhatIf/FixIts.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "shardc/Pipelines/Phases.h"
#include "shardc/Report/Expectations.h"
#include "shardc/Report/Explain.h"
#include "shardc/Report/TimeEstimate.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Explains the collectives of one module, on the first request.
class ContractExplainer {
public:
  ContractExplainer(ModuleOp module, ModuleOp imported,
                    const SourceAnnotations &source,
                    const CompileOptions &options)
      : module(module), imported(imported), source(source), options(options) {}

  CollectiveNote explain(Operation *collective) {
    if (!finder && failed(prepare()))
      return {getGuiltyLocation(collective),
              getNoteText(explainCollective(collective), {})};
    auto function = collective->getParentOfType<func::FuncOp>();
    auto program =
        llvm::find_if(explanation.programs, [&](const ExplainedProgram &it) {
          return it.name == function.getName();
        });
    // Explanations list collectives in program order.
    size_t index = 0;
    function.walk([&](Operation *op) {
      if (op == collective)
        return WalkResult::interrupt();
      index += getCollectiveCost(op).has_value();
      return WalkResult::advance();
    });
    ExplainedCollective &explained = program->collectives[index];
    finder->find(*program, explained);
    return {getLocation(explained.guilty, collective),
            getNoteText(explained, *program)};
  }

private:
  LogicalResult prepare() {
    FailureOr<MeshOp> mesh = getMesh(module);
    if (failed(mesh))
      return failure();
    llvm::Expected<Machine> loaded = loadMachineFor(*mesh, options.machine);
    if (!loaded)
      return module.emitError() << llvm::toString(loaded.takeError());
    machine = std::move(*loaded);
    FailureOr<Explanation> result = shardc::explain(module, machine);
    if (failed(result))
      return failure();
    explanation = std::move(*result);
    if (module->hasAttr(pipelineAttrName)) {
      OwningOpRef<ModuleOp> planned = module.clone();
      if (compileOnTrial(*planned, getPhaseIndex("collectives") + 1,
                         getPhaseIndex("memory"), options)
              .empty())
        setPipelineCosts(explanation, *planned, machine);
    }
    finder.emplace(imported, source, options, machine, explanation);
    return success();
  }

  /// "file:12:3" as a location; that of `collective` if it is none.
  static Location getLocation(StringRef source, Operation *collective) {
    auto [fileAndLine, column] = source.rsplit(':');
    auto [file, line] = fileAndLine.rsplit(':');
    unsigned lineNumber = 0, columnNumber = 0;
    if (line.getAsInteger(10, lineNumber) ||
        column.getAsInteger(10, columnNumber))
      return getGuiltyLocation(collective);
    return FileLineColLoc::get(collective->getContext(), file, lineNumber,
                               columnNumber);
  }

  ModuleOp module, imported;
  const SourceAnnotations &source;
  const CompileOptions &options;
  Machine machine;
  Explanation explanation;
  std::optional<FixItFinder> finder;
};

} // namespace

LogicalResult shardc::checkContracts(ModuleOp module, ModuleOp imported,
                                     const SourceAnnotations &source,
                                     const CompileOptions &options) {
  ContractExplainer explainer(module, imported, source, options);
  return checkExpectedCollectives(module, [&](Operation *collective) {
    return explainer.explain(collective);
  });
}
