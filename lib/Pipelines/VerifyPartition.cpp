//===- VerifyPartition.cpp - Runs the partition check in a pipeline -------===//

#include "VerifyPartition.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Interpreter/PartitionCheck.h"
#include "shardc/Interpreter/ShrinkSizes.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace shardc;

/// "; sizes checked: 1024 as 8, data=1024 as 2", or nothing.
static std::string toString(ArrayRef<ShrunkSize> changes) {
  std::string text;
  for (const ShrunkSize &change : changes)
    text += (text.empty() ? "" : ", ") +
            (change.axis.empty() ? "" : change.axis + "=") +
            std::to_string(change.from) + " as " + std::to_string(change.to);
  return text.empty() ? text : "; sizes checked: " + text;
}

namespace {

class VerifyPartitionPass
    : public PassWrapper<VerifyPartitionPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyPartitionPass)

  VerifyPartitionPass(const CompileOptions &options, int partition, int last,
                      CompileState &state)
      : options(options), partition(partition), last(last), state(state) {
    // Contracts apply to the module itself, not to shrunk sizes.
    this->options.ignoreExpectations = true;
    // The interpreter knows the kernels of a CPU.
    this->options.target = CompileOptions().target;
  }

  StringRef getName() const override { return "VerifyPartition"; }

  void runOnOperation() override {
    OwningOpRef<ModuleOp> global = getOperation().clone();
    FailureOr<std::vector<ShrunkSize>> changes = shrinkSizes(*global);
    if (failed(changes))
      return signalPassFailure();
    numberValues(*global);
    OwningOpRef<ModuleOp> program = global->clone();
    PartitionSummary summary;
    std::string phases;
    for (int index = partition;
         index <= std::min(last, getPhaseIndex("collectives")); ++index) {
      if (failed(runPhase(*program, index)))
        return signalPassFailure();
      FailureOr<PartitionSummary> checked = checkPartition(*global, *program);
      if (failed(checked)) {
        state.hasBrokenContract = true;
        getOperation().emitError("phase '")
            << getPhases()[index].name << "' changed what the program computes"
            << toString(*changes);
        return signalPassFailure();
      }
      summary = *checked;
      phases += (phases.empty() ? "" : " and ") + getPhases()[index].name.str();
    }
    mlir::emitRemark(getOperation().getLoc())
        << "partition verified: " << summary.values << " values of "
        << summary.ops << " ops agree on " << summary.devices
        << " devices after " << phases << ", " << summary.exact
        << " of them bit for bit" << toString(*changes);
    if (getOperation()->hasAttr(pipelineAttrName) &&
        last >= getPhaseIndex("collectives") &&
        failed(verifyRanks(*global, *program, *changes)))
      return signalPassFailure();
    if (summary.nonFinite > 0)
      mlir::emitRemark(getOperation().getLoc())
          << summary.nonFinite
          << " values are infinite or not a number on the inputs tried: "
             "padding cannot be told apart in them";
    markAllAnalysesPreserved();
  }

private:
  /// Checks the programs of the ranks of a pipeline that the phases up to
  /// `schedule` make of `program`, which has been through `collectives`.
  LogicalResult verifyRanks(ModuleOp global, ModuleOp program,
                            ArrayRef<ShrunkSize> changes) {
    for (const char *phase : {"kernels", "schedule"})
      if (failed(runPhase(program, getPhaseIndex(phase))))
        return failure();
    FailureOr<PartitionSummary> checked = checkRanks(global, program);
    if (failed(checked)) {
      state.hasBrokenContract = true;
      return getOperation().emitError("the programs of the ranks do not "
                                      "compute what the loop computes")
             << toString(changes);
    }
    mlir::emitRemark(getOperation().getLoc())
        << "pipeline verified: " << checked->values << " values of "
        << checked->ops << " ops of " << checked->ranks
        << " ranks agree with the loop after schedule, " << checked->exact
        << " of them bit for bit";
    return success();
  }

  /// Runs the passes of phase `index`. Their remarks come from the run on the
  /// module itself.
  LogicalResult runPhase(ModuleOp program, int index) {
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
    });
    PassManager manager(&getContext());
    CompileState unused;
    getPhases()[index].build(manager, options, unused);
    return manager.run(program);
  }

  CompileOptions options;
  int partition, last;
  CompileState &state;
};

} // namespace

std::unique_ptr<Pass>
shardc::createVerifyPartitionPass(const CompileOptions &options, int partition,
                                  int last, CompileState &state) {
  return std::make_unique<VerifyPartitionPass>(options, partition, last, state);
}
