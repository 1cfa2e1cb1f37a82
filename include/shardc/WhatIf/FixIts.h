//===- FixIts.h - Changes that remove collectives, priced -------*- C++ -*-===//
//
// Finds by compiling which changes of annotations remove a collective, and at
// what price. Compiles in the context of the module: not thread-safe.
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

/// Changes of annotations that are compiled for one collective at most.
constexpr size_t maxTriedChanges = 8;
/// Changes that are compiled for a module at most; fewer if each is a search
/// for the cheapest plan.
constexpr size_t maxCompiledChanges = 64, maxSearchedChanges = 24;

/// Finds remedies for collectives of the programs of one module. Every change
/// is compiled up to `collectives`; equal ones once. Searches for the cheapest
/// plan are short, which costs say. They do not look for plans that fit in the
/// memory of a device: a change whose plan does not is no remedy.
class RemedyFinder {
public:
  /// For the programs of `explanation`, of what `imported`, a module after
  /// `import`, becomes with `options`; it is left as it is. Times are on
  /// `machine`. Borrows its arguments but the options.
  RemedyFinder(mlir::ModuleOp imported, const CompileOptions &options,
               const Machine &machine, const Explanation &explanation);

  /// Adds to `collective` of `program`, both of the explanation, and to every
  /// tensor in it the best of the changes that remove it and pay; no change for
  /// another program makes the step slower and send more.
  /// First come those that cost neither more time nor more bytes, then those
  /// that are faster, both by time, then those that send less, by bytes. A
  /// tensor is removed if no collective of the kind moves it over any of the
  /// axes, and what it sends over them has not grown. Where nothing that
  /// removes the collective pays, adds what the fastest that does costs.
  void find(const ExplainedProgram &program, ExplainedCollective &collective);

private:
  bool pays(const ExplainedProgram &program, const Explanation &trial) const;
  void offer(std::optional<Remedy> &best, const Edits &edits,
             const ProgramCost &before, const ProgramCost &after) const;
  const Explanation *compile(const Edits &edits);
  Explanation run(const Edits &edits);
  bool fits(mlir::ModuleOp module) const;

  mlir::ModuleOp imported;
  CompileOptions options;
  const Machine &machine;
  const Explanation &explanation;
  EditProposer proposer;
  /// By Edits::getKey; no programs where a change does not compile.
  std::map<std::string, Explanation> compiled;
};

/// Finds remedies for all collectives of `explanation`, those that send most
/// first.
void findRemedies(mlir::ModuleOp imported, const CompileOptions &options,
                  const Machine &machine, Explanation &explanation);

} // namespace shardc

#endif // SHARDC_WHATIF_FIXITS_H
