//===- PriceCheapest.cpp - What the cheapest plan would send --------------===//

#include "PriceCheapest.h"

#include "RunAside.h"

#include "shardc/Pipelines/Phases.h"

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

/// Partitions the module at the least cost; returns why that failed, if it did.
static std::string partitionCheapest(ModuleOp module, CompileOptions options) {
  options.partition = "cheapest";
  options.maxAssignments = maxAssignments;
  return runAside(module, getPhaseIndex("propagate"),
                  getPhaseIndex("collectives"), options);
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
    std::string error = partitionCheapest(differentiated, options);
    if (!error.empty()) {
      mlir::emitRemark(loc)
          << text << "; what the cheapest plan "
          << "(--partition=cheapest) sends is not known: " << error;
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
