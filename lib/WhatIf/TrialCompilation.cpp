//===- TrialCompilation.cpp - What other options would make of a module ---===//

#include "shardc/WhatIf/TrialCompilation.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Pipelines/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace shardc;

std::string shardc::compileOnTrial(ModuleOp module, int first, int last,
                                   CompileOptions options) {
  options.dumpDir.clear();
  options.verifyPartition = false;
  options.ignoreExpectations = true;
  options.deviceMemory = 0;
  std::string error;
  ScopedDiagnosticHandler silence(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (error.empty() &&
            diagnostic.getSeverity() == DiagnosticSeverity::Error)
          error = diagnostic.str();
        return success();
      });
  CompileState state;
  PassManager manager(module.getContext());
  buildPhases(manager, first, last, options, state);
  if (succeeded(manager.run(module)))
    return {};
  return error.empty() ? "a phase failed" : error;
}

llvm::Expected<std::vector<int64_t>>
shardc::getPeaksOnTrial(ModuleOp module, const CompileOptions &options) {
  std::string error = compileOnTrial(module, getPhaseIndex("propagate") + 1,
                                     getPhaseIndex("memory"), options);
  if (!error.empty())
    return llvm::createStringError(error);
  std::vector<int64_t> peaks;
  for (auto function : module.getOps<func::FuncOp>())
    peaks.push_back(
        function->getAttrOfType<IntegerAttr>(peakBytesAttrName).getInt());
  return peaks;
}
