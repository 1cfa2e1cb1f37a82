//===- TrialCompilation.cpp - Compilation of a copy on trial --------------===//

#include "shardc/WhatIf/TrialCompilation.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Prediction.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Report/RankPrograms.h"
#include "shardc/Report/TimeEstimate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;
using namespace shardc;

/// Runs the phases from `first` to `last`, where "cheapest" compares plans by
/// `estimatePlan`; returns the first error, or "".
static std::string
runPhases(ModuleOp module, int first, int last, CompileOptions options,
          decltype(CompileState::estimatePlan) estimatePlan = estimateOnTrial,
          StageCutCache *stageCuts = nullptr) {
  options.dumpDir.clear();
  options.verifyPartition = false;
  std::string error;
  ScopedDiagnosticHandler silence(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (error.empty() &&
            diagnostic.getSeverity() == DiagnosticSeverity::Error)
          error = diagnostic.str();
        return success();
      });
  CompileState state;
  state.isTrial = true;
  state.getPeaks = getPeaksOnTrial;
  state.measurePlan = measureOnTrial;
  state.estimatePlan = std::move(estimatePlan);
  state.stageCuts = stageCuts;
  PassManager manager(module.getContext());
  manager.enableVerifier(options.verifyEach);
  buildPhases(manager, first, last, options, state);
  if (succeeded(manager.run(module)))
    return {};
  return error.empty() ? "a phase failed" : error;
}

std::string shardc::compileOnTrial(ModuleOp module, int first, int last,
                                   CompileOptions options,
                                   StageCutCache *stageCuts, bool compares) {
  options.ignoreExpectations = true;
  options.deviceMemory = 0;
  return runPhases(module, first, last, options,
                   compares ? estimateOnTrial : nullptr, stageCuts);
}

std::string shardc::searchOnTrial(ModuleOp module, CompileOptions options) {
  options.partition = "cheapest";
  options.deviceMemory = 0;
  options.ignoreExpectations = true;
  int propagate = getPhaseIndex("propagate");
  return runPhases(module, propagate, propagate, options, nullptr);
}

llvm::Expected<std::vector<int64_t>>
shardc::getPeaksOnTrial(ModuleOp module, const CompileOptions &options) {
  std::string error = compileOnTrial(module, getPhaseIndex("propagate") + 1,
                                     getPhaseIndex("memory"), options);
  if (!error.empty())
    return llvm::createStringError(error);
  // The ranks of a pipeline have one function each for a program.
  llvm::MapVector<StringRef, int64_t> peaks;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto program = function->getAttrOfType<StringAttr>(programAttrName);
    int64_t &peak = peaks[program ? program.getValue() : function.getName()];
    peak = std::max(
        peak, function->getAttrOfType<IntegerAttr>(peakBytesAttrName).getInt());
  }
  std::vector<int64_t> bytes;
  llvm::append_range(bytes, llvm::make_second_range(peaks));
  return bytes;
}

/// Makes `module` one without predictions: a plan whose memory they exceed has
/// none.
static void leaveOutPrediction(ModuleOp module) {
  if (auto predict = module.lookupSymbol<func::FuncOp>(kPredictName))
    predict.erase();
  module->setAttr(noPredictionAttrName,
                  StringAttr::get(module.getContext(), "a trial"));
}

OwningOpRef<ModuleOp> shardc::takeStep(ModuleOp module) {
  OwningOpRef<ModuleOp> step = cast<ModuleOp>(module->cloneWithoutRegions());
  OpBuilder builder =
      OpBuilder::atBlockEnd(&step->getBodyRegion().emplaceBlock());
  for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function) {
      builder.clone(op);
    } else if (function.getName() != "evaluate" &&
               function.getName() != kPredictName) {
      function->remove();
      builder.insert(function);
    }
  }
  leaveOutPrediction(*step);
  return step;
}

llvm::Expected<MeasuredPlan>
shardc::measureOnTrial(ModuleOp module, StringRef phase,
                       const CompileOptions &options) {
  leaveOutPrediction(module);
  std::string error = compileOnTrial(module, getPhaseIndex(phase) + 1,
                                     getPhaseIndex("memory"), options);
  if (!error.empty())
    return llvm::createStringError(error);
  // By rank; without a pipeline there is one.
  std::map<int64_t, int64_t> arenas;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto rank = function->getAttrOfType<IntegerAttr>(rankAttrName))
      arenas[rank.getInt()] =
          function->getAttrOfType<IntegerAttr>(arenaBytesAttrName).getInt();
  MeasuredPlan plan;
  for (auto [rank, bytes] : arenas)
    plan.arenaBytes.push_back(bytes);
  if (arenas.empty())
    plan.arenaBytes.push_back(
        module->getAttrOfType<IntegerAttr>(arenaBytesAttrName).getInt());
  llvm::Expected<PlanEstimate> estimate = getEstimate(module, options);
  if (!estimate)
    return estimate.takeError();
  plan.seconds = estimate->overlappedSeconds;
  return plan;
}

llvm::Expected<PlanEstimate>
shardc::estimateOnTrial(ModuleOp module, const CompileOptions &options) {
  std::string error = runPhases(module, getPhaseIndex("propagate") + 1,
                                getPhaseIndex("memory"), options);
  if (!error.empty())
    return llvm::createStringError(error);
  return getEstimate(module, options);
}

llvm::Expected<PlanEstimate>
shardc::getEstimate(ModuleOp module, const CompileOptions &options) {
  func::FuncOp step = getStep(module);
  if (!step)
    return llvm::createStringError("the module has no function");
  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty())
    return llvm::createStringError("the module has no mesh");
  llvm::Expected<Machine> machine =
      loadMachineFor(*meshes.begin(), options.machine);
  if (!machine)
    return machine.takeError();
  // A pipeline's step ends with its last rank.
  if (auto ranks = getRankPrograms(module, getProgramName(step));
      !ranks.empty()) {
    PlanEstimate estimate;
    estimate.seconds = estimate.overlappedSeconds =
        estimateSeconds(ranks, *machine);
    for (func::FuncOp rank : ranks)
      estimate.wireBytes = std::max(
          estimate.wireBytes, getCommunicationReport(rank).wireBytesPerDevice);
    return estimate;
  }
  TimeEstimate time = estimateTime(step, *machine);
  return PlanEstimate{time.overlappedSeconds, time.getSeconds(),
                      getCommunicationReport(step).wireBytesPerDevice};
}
