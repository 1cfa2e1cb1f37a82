//===- PlanMemory.cpp - Static memory planning ----------------------------===//
//
// Gives every buffer an offset in the arena. Arguments come first, in the order
// in which functions declare them, and have the same offset in all functions.
// Behind them, each function packs its temporary buffers, greedily by size
// (FunctionMemory.h, MemoryPlan.h).
//
// A limit of memory is one of training: a program of predictions that exceeds
// it is left out.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/FunctionMemory.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Prediction.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/MemoryPlan.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Report/MemoryReport.h"
#include "shardc/Transforms/EmitMemoryError.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
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
    FailureOr<int64_t> largest = planArenas();
    if (succeeded(largest) && memoryLimit > 0 && *largest > memoryLimit &&
        leaveOutPrediction(*largest))
      largest = planArenas();
    if (failed(largest))
      return signalPassFailure();
    if (memoryLimit > 0 && *largest > memoryLimit)
      refuse(*largest);
  }

  /// Plans the arenas of all devices and returns the bytes of the largest.
  FailureOr<int64_t> planArenas() {
    // Each rank of a pipeline has an arena of its own.
    llvm::MapVector<int64_t, SmallVector<func::FuncOp>> ranks;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto rank = function->getAttrOfType<IntegerAttr>(rankAttrName);
      ranks[rank ? rank.getInt() : -1].push_back(function);
    }
    int64_t largest = 0;
    for (auto &[rank, functions] : ranks) {
      FailureOr<int64_t> arena = planArena(functions);
      if (failed(arena))
        return failure();
      largest = std::max(largest, *arena);
      if (rank >= 0)
        for (func::FuncOp function : functions)
          function->setAttr(arenaBytesAttrName,
                            Builder(&getContext()).getI64IntegerAttr(*arena));
    }
    getOperation()->setAttr(arenaBytesAttrName,
                            Builder(&getContext()).getI64IntegerAttr(largest));
    return largest;
  }

  /// Erases the program of predictions, and notes why: with it a device needs
  /// `bytes`. Returns whether there was one.
  bool leaveOutPrediction(int64_t bytes) {
    bool isErased = false;
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (getProgramName(function) == kPredictName) {
        function.erase();
        isErased = true;
      }
    if (isErased)
      getOperation()->setAttr(
          noPredictionAttrName,
          StringAttr::get(&getContext(), "with predictions a device needs " +
                                             Twine(bytes) +
                                             " bytes of memory and has " +
                                             Twine(int64_t(memoryLimit))));
    return isErased;
  }

  /// Plans the arena that `functions` share and returns its bytes.
  FailureOr<int64_t> planArena(ArrayRef<func::FuncOp> functions) {
    FailureOr<ArgumentLayout> arguments = placeArguments(functions);
    if (failed(arguments))
      return failure();
    int64_t arena = arguments->bytes;
    for (func::FuncOp function : functions) {
      FunctionMemory memory(function, arguments->offsets, arguments->bytes);
      arena = std::max(arena, memory.plan());
      memory.annotate();
      LLVM_DEBUG(print(function));
    }
    return arena;
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
      InFlightDiagnostic error = emitMemoryError(getOperation())
                                 << "a device needs " << arena
                                 << " bytes of memory and has "
                                 << int64_t(memoryLimit);
      attachLargest(error, report);
    }
    signalPassFailure();
  }
};

} // namespace
