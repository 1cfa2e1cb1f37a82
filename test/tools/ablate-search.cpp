//===- ablate-search.cpp - The exact search without parts of it -----------===//
//
// Searches for the cheapest plan of a module after `differentiate`, with the
// whole search or with one part of it switched off. Prints a line of JSON:
// processor seconds, cost and lower bound. benchmarks/ablation.py makes a table
// of these.
//
//===----------------------------------------------------------------------===//

#include "PlanCheapest.h"

#include "shardc/Analysis/MeshSteps.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "ObjectiveCosts.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"

#include <ctime>

using namespace mlir;
using namespace shardc;
namespace cl = llvm::cl;

static cl::opt<std::string> input(cl::Positional, cl::desc("MODULE"));
static cl::opt<std::string> objective("objective", cl::init("time"));
static cl::opt<std::string> machine("machine", cl::init("cpu"));
static cl::opt<int64_t> deviceMemory("device-memory", cl::init(0));
static cl::opt<std::string> variantName("variant", cl::init("all parts"));
static cl::opt<bool> listsVariants("list", cl::desc("list the variants"));

namespace {

/// The search with a part changed or switched off.
struct Variant {
  llvm::StringLiteral name;
  void (*change)(SearchOptions &options);
};

} // namespace

static const Variant variants[] = {
    {"all parts", [](SearchOptions &) {}},
    {"no dual bound", [](SearchOptions &o) { o.bound.maxSweeps = 0; }},
    {"no momentum",
     [](SearchOptions &o) { o.bound.numPlainSweeps = 1'000'000; }},
    {"no majority", [](SearchOptions &o) { o.bound.minorPart = 0; }},
    {"no pruning", [](SearchOptions &o) { o.bound.prunes = false; }},
    {"no classes", [](SearchOptions &o) { o.classes.isUsed = false; }},
    {"no skipped guesses", [](SearchOptions &o) { o.guess.minGrowth = 0; }},
    {"no infinite guess", [](SearchOptions &o) { o.guess.hopeless = 1e300; }},
    {"no dominance",
     [](SearchOptions &o) { o.elimination.dropsDominated = false; }},
    {"no quick beam", [](SearchOptions &o) { o.elimination.quickBeam = 0; }},
    {"no beam fallback", [](SearchOptions &o) { o.usesBeam = false; }},
    {"no wider beams",
     [](SearchOptions &o) { o.elimination.maxBeam = o.elimination.beam; }},
    {"no rows in the order",
     [](SearchOptions &o) { o.elimination.rowWeight = 0; }},
    {"no branching", [](SearchOptions &o) { o.latency.branches = false; }},
    {"no target", [](SearchOptions &o) { o.latency.targetPart = 1; }},
    {"no drops for branches",
     [](SearchOptions &o) { o.guess.numDropSweeps = 0; }},
    {"no k-best",
     [](SearchOptions &o) { o.memory.maxTries = o.memory.maxTriesInVain = 0; }},
    {"no price of memory", [](SearchOptions &o) { o.memory.numRaises = -1; }},
};

/// The processor time of the process.
static double getSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

static LogicalResult run(ModuleOp module, const Variant &variant) {
  FailureOr<ModuleGraph> graph = ModuleGraph::build(module);
  if (failed(graph))
    return failure();
  CompileOptions compile;
  compile.objective = objective;
  compile.machine = machine;
  CheapestOptions options{
      objective,
      machine,
      /*regathers=*/false,
      /*maxStrategies=*/0,
      {},
      PeakLimit{deviceMemory, [&](ModuleOp propagated, bool) {
                  return getPeaksOnTrial(propagated, compile);
                }}};
  variant.change(options.search);
  auto steps = MeshSteps(module).steps;
  // The output has the lower bound; warnings would only repeat it.
  ScopedDiagnosticHandler silence(module->getContext(),
                                  [](Diagnostic &) { return success(); });
  double start = getSeconds();
  bool isFound = succeeded(planCheapest(*graph, options, steps));
  llvm::json::Object line{{"variant", variant.name},
                          {"seconds", getSeconds() - start}};
  if (isFound) {
    PlanCost cost = *getPlanCost(graph->functions.front().op);
    line["cost"] = cost.cost;
    line["at_least"] = cost.atLeast;
    line["proved"] = cost.isProved();
  }
  llvm::outs() << llvm::json::Value(std::move(line)) << '\n';
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM initLLVM(argc, argv);
  cl::ParseCommandLineOptions(argc, argv,
                              "Searches with parts of the search left out\n");
  DialectRegistry registry;
  registerShardcDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  if (listsVariants) {
    for (const Variant &variant : variants)
      llvm::outs() << variant.name << '\n';
    return 0;
  }
  const Variant *variant = llvm::find_if(variants, [](const Variant &variant) {
    return variant.name == variantName;
  });
  if (variant == std::end(variants)) {
    llvm::errs() << "no variant '" << variantName << "'; see --list\n";
    return 1;
  }
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, &context);
  return module && succeeded(run(*module, *variant)) ? 0 : 1;
}
