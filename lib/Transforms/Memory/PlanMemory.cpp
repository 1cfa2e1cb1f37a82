//===- PlanMemory.cpp - Static memory planning ----------------------------===//
//
// Gives every buffer an offset in the arena. Arguments come first, in the order
// in which functions declare them, and have the same offset in all functions.
// Behind them, each function packs its temporary buffers, greedily by size
// (FunctionMemory.h, MemoryPlan.h).
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/FunctionMemory.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/MemoryPlan.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Report/MemoryReport.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-plan-memory"

namespace shardc {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct PlanMemoryPass : shardc::impl::PlanMemoryPassBase<PlanMemoryPass> {
  using PlanMemoryPassBase::PlanMemoryPassBase;

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Kernels,
                               ModulePhase::Memory)))
      return signalPassFailure();
    if (memoryLimit < 0) {
      getOperation().emitError("memory-limit: expected 0 (no limit) or more, "
                               "found ")
          << memoryLimit.getValue();
      return signalPassFailure();
    }
    // Offsets and sizes of arguments by name, the same in every function.
    llvm::StringMap<int64_t> offsets, sizes;
    int64_t base = 0;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      for (BlockArgument argument : function.getArguments()) {
        StringRef name = getRoleName(function, argument.getArgNumber());
        int64_t bytes = getNumBytes(argument.getType());
        if (name.empty()) {
          function.emitError("argument ")
              << argument.getArgNumber() << " has no shardc.role";
          return signalPassFailure();
        }
        auto [it, isNew] = sizes.try_emplace(name, bytes);
        if (!isNew && it->second != bytes) {
          function.emitError("argument \"")
              << name << "\" has " << bytes << " bytes here and " << it->second
              << " in another program";
          return signalPassFailure();
        }
        if (isNew) {
          LLVM_DEBUG(llvm::dbgs() << "argument \"" << name << "\": " << bytes
                                  << " bytes at " << base << '\n');
          offsets[name] = base;
          base += alignBytes(bytes);
        }
      }
    }
    int64_t arena = base;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      FunctionMemory memory(function, offsets, base);
      arena = std::max(arena, memory.plan());
      memory.annotate();
      LLVM_DEBUG(print(function));
    }
    getOperation()->setAttr(arenaBytesAttrName,
                            Builder(&getContext()).getI64IntegerAttr(arena));
    if (memoryLimit > 0 && arena > memoryLimit)
      refuse(arena);
  }

  static void print(func::FuncOp function) {
    llvm::dbgs() << "@" << function.getName() << ": "
                 << function->getAttr(peakBytesAttrName) << " bytes\n";
    function.walk([](Operation *op) {
      if (Attribute offsets = op->getAttr(offsetsAttrName))
        llvm::dbgs() << "  " << describeOp(op) << ": " << offsets << '\n';
    });
  }

  /// Reports that the arena exceeds the limit, and names the largest buffers.
  void refuse(int64_t arena) {
    MemoryReport report(getOperation());
    {
      InFlightDiagnostic error = getOperation().emitError()
                                 << "a device needs " << arena
                                 << " bytes of memory and has "
                                 << int64_t(memoryLimit);
      attachLargest(error, report);
    }
    signalPassFailure();
  }
};

} // namespace
