//===- Reports.cpp - Passes that print reports ----------------------------===//
//
// The passes over the reports of lib/Report, for use on textual IR.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Report/ShardingsReport.h"
#include "shardc/Transforms/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_REPORTCOMMUNICATIONPASS
#define GEN_PASS_DEF_REPORTSHARDINGSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// Prints `getReport(function)` of every function to standard output.
template <typename GetReport>
static void report(ModuleOp module, bool json, GetReport getReport) {
  llvm::json::Object all;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto report = getReport(function);
    if (json) {
      all[function.getName()] = toJson(report);
      continue;
    }
    llvm::outs() << "@" << function.getName() << '\n';
    print(report, llvm::outs());
    llvm::outs() << '\n';
  }
  if (json)
    llvm::outs() << llvm::json::Value(std::move(all)) << '\n';
}

namespace {

struct ReportCommunicationPass
    : shardc::impl::ReportCommunicationPassBase<ReportCommunicationPass> {
  using Base =
      shardc::impl::ReportCommunicationPassBase<ReportCommunicationPass>;
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Codegen)))
      return signalPassFailure();
    report(getOperation(), json, getCommunicationReport);
    markAllAnalysesPreserved();
  }
};

struct ReportShardingsPass
    : shardc::impl::ReportShardingsPassBase<ReportShardingsPass> {
  using Base = shardc::impl::ReportShardingsPassBase<ReportShardingsPass>;
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Propagate,
                               ModulePhase::Codegen)))
      return signalPassFailure();
    FailureOr<MeshOp> mesh = getMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    report(getOperation(), json, [&](func::FuncOp function) {
      return getShardingsReport(function, *mesh);
    });
    markAllAnalysesPreserved();
  }
};

} // namespace
