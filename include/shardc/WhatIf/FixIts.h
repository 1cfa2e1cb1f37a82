//===- FixIts.h - Changes of annotations that remove collectives ----------===//
//
// Finds fix-its and their costs by trial compilation of the proposals of
// EditProposer. Compiles in the context of the module: not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_WHATIF_FIXITS_H
#define SHARDC_WHATIF_FIXITS_H

#include "shardc/WhatIf/EditProposer.h"

#include "shardc/CostModel/MachineModel.h"
#include "shardc/Pipelines/CompileOptions.h"
#include "shardc/Report/Explanation.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace shardc {

/// The most changes of annotations that are compiled for one collective.
constexpr size_t maxTriedChanges = 8;
/// The most changes that are compiled for a module; fewer if each is a search
/// for the cheapest plan, or goes up to the programs of a pipeline's ranks.
constexpr size_t maxCompiledChanges = 64, maxLongChanges = 24;

/// Finds fix-its for collectives of the programs of one module. Every distinct
/// change is compiled once, up to `collectives`; with a pipeline up to
/// `memory`, where the time of the step, idle ranks included, and the memory of
/// each rank are known. Searches for the cheapest plan are short; `mayBeLess`
/// of the costs tells. A change whose plan exceeds the memory limit of a device
/// is no fix-it.
class FixItFinder {
public:
  /// For the programs of `explanation`, compiled with `options` from
  /// `imported`, a module after `import`, which is left as it is. `source` is
  /// of the same module before `import`. Times are on `machine`. Borrows its
  /// arguments except the options.
  FixItFinder(mlir::ModuleOp imported, const SourceAnnotations &source,
              const CompileOptions &options, const Machine &machine,
              const Explanation &explanation);

  /// Sets the fix-its of `collective` of `program`, both of the explanation,
  /// and of every tensor in it: the best change that removes it and pays,
  /// without making the step slower or send more if that is another program.
  /// The order is: changes that cost neither more time nor more bytes, by time;
  /// faster ones, by time; ones that send less, by bytes. A change removes a
  /// tensor if no collective of the kind moves it over any of the axes, and the
  /// bytes that it sends over them have not grown. A send needs a change with
  /// which all sends together, and those between its two stages, send less, and
  /// all collectives together no more. If no change that removes
  /// the collective pays, sets the cost of the fastest.
  void find(const ExplainedProgram &program, ExplainedCollective &collective);

private:
  bool pays(const ExplainedProgram &program, const Explanation &trial) const;
  void offer(std::optional<FixIt> &best, const Edits &edits,
             const ProgramCost &before, const ProgramCost &after) const;
  const Explanation *compile(const Edits &edits);
  Explanation run(const Edits &edits);

  mlir::ModuleOp imported;
  const SourceAnnotations &source;
  CompileOptions options;
  const Machine &machine;
  const Explanation &explanation;
  EditProposer proposer;
  /// By Edits::getKey; no programs where a change does not compile.
  std::map<std::string, Explanation> compiled;
};

/// Finds fix-its for all collectives of `explanation`, those that send most
/// first.
void findFixIts(mlir::ModuleOp imported, const SourceAnnotations &source,
                const CompileOptions &options, const Machine &machine,
                Explanation &explanation);

} // namespace shardc

#endif // SHARDC_WHATIF_FIXITS_H
