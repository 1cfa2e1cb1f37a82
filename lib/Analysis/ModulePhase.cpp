//===- ModulePhase.cpp - The phase of a module ----------------------------===//

#include "shardc/Analysis/ModulePhase.h"

#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace shardc;

StringRef shardc::getPhaseName(ModulePhase phase) {
  static constexpr StringLiteral names[] = {
      "import",  "differentiate", "propagate", "partition",
      "kernels", "schedule",      "memory",    "codegen"};
  return names[static_cast<size_t>(phase)];
}

/// The phase that adds ops such as `op`, or attributes that it has.
static std::optional<ModulePhase> findPhase(Operation *op) {
  if (isa<CollectiveStartOp, CollectiveWaitOp>(op))
    return ModulePhase::Schedule;
  if (isa<KernelOp, GemmOp>(op))
    return ModulePhase::Kernels;
  if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp,
          CollectivePermuteOp, SliceOp, MaskOp>(op))
    return ModulePhase::Partition;
  if (isa<ReshardOp>(op) || getStrategyAttr(op))
    return ModulePhase::Propagate;
  if (op->hasAttr(partAttrName))
    return ModulePhase::Differentiate;
  return std::nullopt;
}

std::optional<ModulePhase> shardc::findPhase(ModuleOp module) {
  std::optional<ModulePhase> found;
  auto add = [&](std::optional<ModulePhase> phase) {
    if (phase && (!found || *phase > *found))
      found = phase;
  };
  for (Operation &op : *module.getBody())
    if (isa<ModuleOp>(op) || op.getName().getStringRef() == "gpu.module")
      return ModulePhase::Codegen;
  if (module->hasAttr(arenaBytesAttrName))
    return ModulePhase::Memory;
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  if (training)
    add(ModulePhase::Import);
  for (auto function : module.getOps<func::FuncOp>()) {
    // `differentiate` replaces the loss function: if it is there, the module is
    // a source, even with ops of later phases.
    if (training && training.getLoss().getValue() == function.getName())
      continue;
    if (function.getName() == "train_step" && found)
      add(ModulePhase::Differentiate);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (function.getArgAttr(i, globalShapeAttrName))
        add(ModulePhase::Partition);
    // The bodies of kernels and starts add no information.
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      add(::findPhase(op));
      return isa<KernelOp, CollectiveStartOp>(op) ? WalkResult::skip()
                                                  : WalkResult::advance();
    });
  }
  // Functions on their own may name parts of a step without being one.
  if (found == ModulePhase::Differentiate && !training)
    return std::nullopt;
  return found;
}

LogicalResult shardc::checkInputPhase(const Pass &pass, ModuleOp module,
                                      ModulePhase first, ModulePhase last) {
  std::optional<ModulePhase> found = findPhase(module);
  if (!found || (first <= *found && *found <= last))
    return success();
  InFlightDiagnostic error = module.emitError(pass.getArgument());
  error << ": expected IR of the phase '" << getPhaseName(first) << "'";
  if (first != last)
    error << " to '" << getPhaseName(last) << "'";
  return error << ", found IR of the phase '" << getPhaseName(*found) << "'";
}
