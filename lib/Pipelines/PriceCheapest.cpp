//===- PriceCheapest.cpp - What the cheapest plan would send --------------===//

#include "PriceCheapest.h"

#include "shardc/Pipelines/Phases.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace shardc;

/// Ways to shard single ops, and combinations of them, of which a search takes
/// about a second.
constexpr int64_t maxAssignments = 200'000;

func::FuncOp shardc::getStep(ModuleOp module) {
  if (auto step = module.lookupSymbol<func::FuncOp>("train_step"))
    return step;
  auto functions = module.getOps<func::FuncOp>();
  return functions.empty() ? func::FuncOp() : *functions.begin();
}

/// The module partitioned at the least cost, or failure where there is no such
/// plan or too much to search.
static LogicalResult partitionCheapest(ModuleOp module,
                                       const CompileOptions &options) {
  CompileOptions other = options;
  other.partition = "cheapest";
  other.maxAssignments = maxAssignments;
  other.dumpDir.clear();
  other.verifyPartition = false;
  other.ignoreExpectations = true;
  ScopedDiagnosticHandler silence(module.getContext(),
                                  [](Diagnostic &) { return success(); });
  CompileState state;
  PassManager manager(module.getContext());
  buildPhases(manager, getPhaseIndex("propagate"), getPhaseIndex("collectives"),
              other, state);
  return manager.run(module);
}

void shardc::remarkOnCheapest(const CommunicationReport &report,
                              ModuleOp differentiated,
                              const CompileOptions &options) {
  Location loc = getStep(differentiated).getLoc();
  int64_t bytes = report.wireBytesPerDevice;
  std::string text =
      "a step sends " + std::to_string(bytes) + " bytes per device";
  CommunicationReport cheapest = report;
  if (options.partition != "cheapest") {
    if (failed(partitionCheapest(differentiated, options))) {
      mlir::emitRemark(loc) << text
                            << "; --partition=cheapest searches for the plan "
                               "that sends the fewest";
      return;
    }
    cheapest = getCommunicationReport(getStep(differentiated));
    text += "; the cheapest plan that uses every axis " +
            std::to_string(cheapest.wireBytesPerDevice) +
            " (--partition=cheapest)";
  }
  int64_t least = cheapest.leastWireBytes.value_or(0);
  if (least < cheapest.wireBytesPerDevice)
    text += "; no such plan sends fewer than " + std::to_string(least);
  else if (options.partition == "cheapest")
    text += ", the fewest of all plans that use every axis";
  mlir::emitRemark(loc) << text;
}
