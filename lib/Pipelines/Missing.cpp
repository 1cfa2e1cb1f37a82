// Temporary: weak stand-ins for passes whose files are still arriving.
#include "mlir/IR/BuiltinOps.h"
#include "shardc/Dialect/Shardc/Transforms/Passes.h"
using namespace mlir;
namespace {
struct Missing : PassWrapper<Missing, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Missing)
  Missing(StringRef what) : what(what.str()) {}
  StringRef getArgument() const override { return what; }
  void runOnOperation() override {
    if (what == "shardc-combine-collectives")
      return;
    getOperation().emitError("pass not there yet: ") << what;
    signalPassFailure();
  }
  std::string what;
};
} // namespace
namespace shardc {
#define PLAIN(NAME, ARG)                                                       \
  __attribute__((weak)) std::unique_ptr<Pass> create##NAME##Pass() {           \
    return std::make_unique<Missing>(ARG);                                     \
  }
#define WITH_OPTIONS(NAME, ARG)                                                \
  PLAIN(NAME, ARG)                                                             \
  __attribute__((weak)) std::unique_ptr<Pass> create##NAME##Pass(              \
      NAME##PassOptions) {                                                     \
    return std::make_unique<Missing>(ARG);                                     \
  }
WITH_OPTIONS(Import, "shardc-import")
WITH_OPTIONS(DecomposeComposites, "shardc-decompose-composites")
PLAIN(Differentiate, "shardc-differentiate")
PLAIN(Propagate, "shardc-propagate")
PLAIN(InsertReshards, "shardc-insert-reshards")
PLAIN(Partition, "shardc-partition")
WITH_OPTIONS(CombineCollectives, "shardc-combine-collectives")
PLAIN(FormGemms, "shardc-form-gemms")
PLAIN(FuseKernels, "shardc-fuse-kernels")
PLAIN(Schedule, "shardc-schedule")
PLAIN(PlanMemory, "shardc-plan-memory")
} // namespace shardc
