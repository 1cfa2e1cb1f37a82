//===- BrokenPasses.cpp - Passes that break the IR ------------------------===//

#include "shardc/Pipelines/BrokenPasses.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

using namespace mlir;

namespace {

class BrokenPasses : public PassInstrumentation {
public:
  explicit BrokenPasses(shardc::CompileState &state) : state(state) {}

  /// Called where the pass has failed, and where the verifier has after it.
  void runAfterPassFailed(Pass *pass, Operation *op) override {
    // A pass that runs others fails with them.
    if (state.hasBrokenContract || isVerified(op))
      return;
    state.hasBrokenContract = true;
    StringRef name =
        pass->getArgument().empty() ? pass->getName() : pass->getArgument();
    op->emitError("the pass '") << name << "' left IR that does not verify";
  }

private:
  /// The verifier has said why not.
  static bool isVerified(Operation *op) {
    ScopedDiagnosticHandler silence(op->getContext(),
                                    [](Diagnostic &) { return success(); });
    return succeeded(verify(op));
  }

  shardc::CompileState &state;
};

} // namespace

void shardc::reportBrokenPasses(PassManager &manager, CompileState &state) {
  manager.addInstrumentation(std::make_unique<BrokenPasses>(state));
}
