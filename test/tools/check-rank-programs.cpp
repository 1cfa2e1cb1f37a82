//===- check-rank-programs.cpp - Faults in programs of ranks --------------===//
//
// Makes the programs of the ranks of a model, with the numbers of the values
// that they are checked by. Prints them (--print); or checks an edited text of
// them (--programs=FILE), with exit code 70 if they diverge; or plants every
// fault that it knows, one at a time, each of which must be found (--plant).
//
//===----------------------------------------------------------------------===//

#include "PlantFault.h"

#include "shardc/Driver/CommandLine.h"
#include "shardc/Interpreter/PartitionCheck.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Support/ExitCodes.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;
namespace cl = llvm::cl;

static cl::OptionCategory category("check-rank-programs options");
static cl::opt<std::string> input(cl::Positional, cl::Required,
                                  cl::desc("MODEL.mlir"), cl::cat(category));
static cl::opt<bool> print("print", cl::cat(category),
                           cl::desc("Print the programs"));
static cl::opt<std::string> edited("programs", cl::cat(category),
                                   cl::desc("Check these programs"));
static cl::opt<bool> plant("plant", cl::cat(category),
                           cl::desc("Plant all faults, one at a time"));

/// Plants each fault in a copy of `programs`; returns whether all are found.
static bool findFaults(ModuleOp global, ModuleOp programs) {
  size_t count = test::getRankFaults(programs).size(), found = 0;
  for (size_t index = 0; index < count; ++index) {
    OwningOpRef<ModuleOp> copy = programs.clone();
    test::Fault fault = test::getRankFaults(*copy)[index];
    std::string text;
    llvm::raw_string_ostream(text) << *fault.op << " " << fault.what;
    fault.plant();
    ScopedDiagnosticHandler quiet(programs.getContext(),
                                  [](Diagnostic &) { return success(); });
    if (failed(verify(*copy)) || failed(checkRanks(global, *copy)))
      ++found;
    else
      llvm::outs() << "NOT FOUND: " << text << "\n";
  }
  llvm::outs() << found << " of " << count << " planted faults are found\n";
  return found == count && count > 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM initLLVM(argc, argv);
  CompileOptionsFlags flags(category);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Checks the programs of a pipeline's ranks\n");
  CompileOptions options = flags.get();
  DialectRegistry registry;
  registerShardcDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);

  OwningOpRef<ModuleOp> programs = parseSourceFile<ModuleOp>(input, &context);
  CompileState state;
  state.getPeaks = getPeaksOnTrial;
  PassManager planner(&context), maker(&context);
  int partition = getPhaseIndex("partition");
  buildPhases(planner, 0, partition - 1, options, state);
  buildPhases(maker, partition, getPhaseIndex("schedule"), options, state);
  if (!programs || failed(planner.run(*programs)))
    return static_cast<int>(ExitCode::InvalidInput);
  numberValues(*programs);
  OwningOpRef<ModuleOp> global = programs->clone();
  if (failed(maker.run(*programs)))
    return static_cast<int>(ExitCode::InvalidInput);
  if (print) {
    programs->print(llvm::outs());
    return 0;
  }
  if (plant)
    return findFaults(*global, *programs) ? 0 : 3;
  if (!edited.empty() &&
      !(programs = parseSourceFile<ModuleOp>(edited, &context)))
    return static_cast<int>(ExitCode::InvalidInput);
  FailureOr<PartitionSummary> checked = checkRanks(*global, *programs);
  if (failed(checked))
    return static_cast<int>(ExitCode::Internal);
  llvm::outs() << checked->values << " values agree\n";
  return 0;
}
