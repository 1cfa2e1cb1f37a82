//===- VerifyPipeline.cpp - Whether a loss suits its pipeline -------------===//

#include "shardc/Transforms/Pipeline/VerifyPipeline.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/VerifySharding.h"
#include "shardc/PipelineSchedules/ScheduleText.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace shardc;

static IntegerAttr getLabel(Operation *op) {
  return op->getAttrOfType<IntegerAttr>(stageAttrName);
}

/// Checks that the module's schedule suits its pipeline.
static LogicalResult verifySchedule(ModuleOp module, PipelineAttr pipeline,
                                    int64_t ranks, StringRef file) {
  int64_t microbatches =
      module->getAttrOfType<TrainingAttr>(trainingAttrName).getMicrobatches();
  StringRef schedule = pipeline.getSchedule().getValue();
  llvm::Error error =
      getPipelineSchedule(schedule, file.empty() ? "schedule" : file, ranks,
                          pipeline.getChunks(), microbatches)
          .takeError();
  if (!error)
    return success();
  bool isFile = isScheduleText(schedule) && !file.empty();
  return module.emitError(isFile ? "pipeline-schedule: "
                                 : "`shardc.pipeline`: ")
         << llvm::toString(std::move(error));
}

/// Checks that no rule of a logical axis names the pipeline's axis.
static LogicalResult verifyRules(ModuleOp module, StringAttr axis) {
  auto rules = module->getAttrOfType<DictionaryAttr>(rulesAttrName);
  if (!rules)
    return success();
  for (NamedAttribute rule : rules)
    if (llvm::is_contained(cast<ArrayAttr>(rule.getValue()), axis))
      return module.emitError("the rule of logical axis ")
             << rule.getName() << " names " << axis
             << ", which is the axis of the stages of `shardc.pipeline`; "
                "nothing is sharded over it";
  return success();
}

namespace {

/// Checks the numbers that ops of the loss have.
class StageVerifier {
public:
  StageVerifier(func::FuncOp loss, int64_t numStages)
      : loss(loss), numStages(numStages), labelled(numStages, nullptr) {}

  LogicalResult verify() {
    Block &block = loss.getBody().front();
    if (block.getTerminator()->hasAttr(stageAttrName))
      return block.getTerminator()->emitOpError(
          "has a `shardc.stage`; the loss is on the stage of the op that makes "
          "it");
    for (Operation &op : block.without_terminator())
      if (failed(verify(&op)))
        return failure();
    bool isEmpty = llvm::none_of(labelled, [](Operation *op) { return op; });
    for (auto [stage, op] : llvm::enumerate(labelled))
      if (!op && !isEmpty)
        return loss.emitError("no op is on stage ")
               << stage << " of " << numStages << ": expected one with "
               << "`shardc.stage = " << stage << " : i64`";
    return success();
  }

private:
  LogicalResult verify(Operation *op) {
    IntegerAttr stage = getLabel(op);
    if (stage && stage.getInt() >= numStages)
      return op->emitOpError("is on stage ")
             << stage.getInt() << ", but the pipeline has stages 0 to "
             << numStages - 1;
    Operation *latest = stage ? op : nullptr;
    for (Value operand : op->getOperands()) {
      Operation *other = latestBefore.lookup(operand);
      if (!other)
        continue;
      if (stage && stage.getInt() < getLabel(other).getInt()) {
        InFlightDiagnostic error =
            op->emitOpError("is on stage ")
            << stage.getInt() << ", but it needs a value of stage "
            << getLabel(other).getInt() << ": stages follow the forward pass";
        error.attachNote(other->getLoc()) << "that value is made here";
        return error;
      }
      if (!latest || getLabel(latest).getInt() < getLabel(other).getInt())
        latest = other;
    }
    if (stage && !labelled[stage.getInt()])
      labelled[stage.getInt()] = op;
    for (Value result : op->getResults())
      if (latest)
        latestBefore[result] = latest;
    return success();
  }

  func::FuncOp loss;
  int64_t numStages;
  /// By stage the first op on it.
  SmallVector<Operation *> labelled;
  /// The op of the last stage among those with a stage that a value needs.
  llvm::DenseMap<Value, Operation *> latestBefore;
};

} // namespace

LogicalResult shardc::verifyPipeline(func::FuncOp loss, MeshOp mesh,
                                     StringRef scheduleFile) {
  auto module = loss->getParentOfType<ModuleOp>();
  auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName);
  if (!pipeline) {
    WalkResult walk = loss.walk([](Operation *op) {
      if (!getLabel(op))
        return WalkResult::advance();
      op->emitOpError("has a `shardc.stage`, but the module has no "
                      "`shardc.pipeline`");
      return WalkResult::interrupt();
    });
    return failure(walk.wasInterrupted());
  }
  if (failed(verifyAxis(pipeline.getAxis(), mesh, [&] {
        return module.emitError("`shardc.pipeline` ");
      })))
    return failure();
  int64_t ranks = mesh.getAxisSize(pipeline.getAxis().getValue());
  if (failed(verifySchedule(module, pipeline, ranks, scheduleFile)) ||
      failed(verifyRules(module, pipeline.getAxis())))
    return failure();
  return StageVerifier(loss, ranks * pipeline.getChunks()).verify();
}
