//===- check-partitions.cpp - Random programs and --verify-partition ------===//
//
// Makes random programs, compiles each up to the phase `collectives` and has
// the partition verified. A failing one is printed with the commands that
// repeat it. With --plant it is the verification that is checked: each program
// gets a fault, which must be found.
//
//===----------------------------------------------------------------------===//

#include "PlantFault.h"
#include "RandomProgram.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Driver/CommandLine.h"
#include "shardc/Interpreter/PartitionCheck.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Support/MeshSpec.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;
namespace cl = llvm::cl;

static cl::OptionCategory category("check-partitions options");
static cl::opt<uint64_t> firstSeed("seed", cl::cat(category), cl::init(0),
                                   cl::desc("Of the first program"));
static cl::opt<uint64_t> count("count", cl::cat(category), cl::init(100),
                               cl::desc("How many programs, one per seed"));
static cl::opt<bool> onlyPrint("print", cl::cat(category),
                               cl::desc("Print the programs, check nothing"));
static cl::opt<bool> plant("plant", cl::cat(category),
                           cl::desc("Plant a fault in each program"));

/// Faults planted so far.
static uint64_t numFaults = 0;

/// Partitions `module` and plants a fault, of which it leaves a description in
/// `output`; returns whether the fault is found, or there is no place for one.
static bool findFault(ModuleOp module, uint64_t seed,
                      const CompileOptions &options, std::string &output) {
  CompileState state;
  state.getPeaks = getPeaksOnTrial;
  state.measurePlan = measureOnTrial;
  PassManager planner(module.getContext()), partitioner(module.getContext());
  int partition = getPhaseIndex("partition");
  buildPhases(planner, 0, partition - 1, options, state);
  if (failed(planner.run(module)))
    return false;
  numberValues(module);
  OwningOpRef<ModuleOp> global = module.clone();
  buildPhases(partitioner, partition, partition, options, state);
  if (failed(partitioner.run(module)))
    return false;
  std::string fault = test::plantFault(module, seed);
  if (fault.empty())
    return true;
  ++numFaults;
  output += fault + "\n";
  return failed(checkPartition(*global, module));
}

/// The axes of `mesh` that the module has: programs have one to three, and
/// --mesh is the same for all.
static std::string keepAxes(ModuleOp module, const std::string &mesh) {
  std::string error;
  MeshSpec kept;
  for (const auto &axis : parseMeshSpec(mesh, error).value_or(MeshSpec()))
    for (auto op : module.getOps<MeshOp>())
      for (Attribute each : op.getAxes())
        if (cast<MeshAxisAttr>(each).getName() == axis.first)
          kept.push_back(axis);
  return toString(kept);
}

/// Compiles `text`; returns whether its partition was verified and leaves what
/// the compiler said in `output`.
static bool checkProgram(const std::string &text, uint64_t seed,
                         CompileOptions options, MLIRContext &context,
                         std::string &output) {
  llvm::raw_string_ostream os(output);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(text, "program.mlir"), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context, os);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return false;
  options.mesh = keepAxes(*module, options.mesh);
  if (plant)
    return findFault(*module, seed, options, output);
  CompileState state;
  state.getPeaks = getPeaksOnTrial;
  state.measurePlan = measureOnTrial;
  PassManager manager(&context);
  buildPhases(manager, 0, getPhaseIndex("collectives"), options, state);
  return succeeded(manager.run(*module)) &&
         llvm::StringRef(output).contains("partition verified");
}

int main(int argc, char **argv) {
  llvm::InitLLVM initLLVM(argc, argv);
  CompileOptionsFlags flags(category);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Verifies the partitions of random programs\n");
  CompileOptions options = flags.get();
  options.verifyPartition = !plant;

  DialectRegistry registry;
  registerShardcDialects(registry);
  uint64_t failures = 0;
  for (uint64_t seed = firstSeed; seed < firstSeed + count; ++seed) {
    std::string text = test::makeRandomProgram(seed), output;
    if (onlyPrint) {
      llvm::outs() << text;
      continue;
    }
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.printOpOnDiagnostic(false);
    if (checkProgram(text, seed, options, context, output))
      continue;
    ++failures;
    llvm::outs() << "FAILED seed " << seed << "\n"
                 << output << text << "repeat with:";
    for (int i = 0; i < argc; ++i)
      llvm::outs() << ' ' << argv[i];
    llvm::outs() << " --seed=" << seed << " --count=1\n"
                 << "or, with the same compile options: check-partitions "
                    "--print --seed="
                 << seed
                 << " --count=1 | shardc-opt --compile-to=collectives "
                    "--verify-partition\n\n";
  }
  if (plant)
    llvm::outs() << numFaults - failures << " of " << numFaults
                 << " planted faults are found\n";
  else if (!onlyPrint)
    llvm::outs() << count - failures << " of " << count
                 << " random programs compute what they do unpartitioned\n";
  // Some faults change nothing: a shard gathered over one axis rather than
  // another and sliced again, maxima of maxima.
  uint64_t allowed = plant ? numFaults / 100 : 0;
  return failures <= allowed ? 0 : 3;
}
