//===- ImportPipeline.cpp - The pipeline of the command line --------------===//

#include "ImportSteps.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/PipelineSchedules/ScheduleText.h"
#include "shardc/Support/MeshSpec.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace shardc;

/// The axis of a pipeline that only options ask for.
static constexpr StringLiteral defaultAxis = "stage";

static IntegerAttr getStage(Operation *op) {
  return op->getAttrOfType<IntegerAttr>(stageAttrName);
}

static void removeStages(func::FuncOp loss) {
  loss.walk([](Operation *op) { op->removeAttr(stageAttrName); });
}

/// Gives `axis` of `mesh` a new size, in front of the others if it is new; 0
/// removes it.
static void setAxisSize(MeshOp mesh, StringAttr axis, int64_t size) {
  SmallVector<Attribute> axes;
  bool isKnown = mesh.getAxisSize(axis.getValue()) > 0;
  auto sized = MeshAxisAttr::get(mesh.getContext(), axis, size);
  if (!isKnown && size > 0)
    axes.push_back(sized);
  for (auto each : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
    if (each.getName() != axis)
      axes.push_back(each);
    else if (size > 0)
      axes.push_back(sized);
  }
  mesh.setAxesAttr(Builder(mesh.getContext()).getArrayAttr(axes));
}

/// The schedule that `option` names: the text of the file if it is one.
static FailureOr<std::string> readSchedule(ModuleOp module,
                                           const std::string &option) {
  if (!StringRef(option).ends_with(".csv"))
    return option;
  auto buffer = llvm::MemoryBuffer::getFile(option, /*IsText=*/true);
  if (std::error_code error = buffer.getError())
    return module.emitError("pipeline-schedule: cannot read '")
           << option << "': " << error.message();
  std::string text = (*buffer)->getBuffer().str();
  // A schedule by name has no line.
  if (text.empty() || text.back() != '\n')
    text += '\n';
  return text;
}

LogicalResult shardc::overridePipeline(func::FuncOp loss, MeshOp mesh,
                                       const PipelineOverrides &overrides) {
  auto module = loss->getParentOfType<ModuleOp>();
  auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName);
  if (overrides.stages == 0) {
    if (!overrides.schedule.empty() || overrides.chunks > 0)
      return module.emitError("stages: 0 stages have no ")
             << (overrides.schedule.empty() ? "virtual-stages"
                                            : "pipeline-schedule");
    if (pipeline)
      setAxisSize(mesh, pipeline.getAxis(), 0);
    if (mesh.getAxes().empty())
      setAxisSize(mesh, StringAttr::get(mesh.getContext(), "device"), 1);
    module->removeAttr(pipelineAttrName);
    removeStages(loss);
    return success();
  }
  if (!pipeline && overrides.stages < 0) {
    if (overrides.schedule.empty() && overrides.chunks == 0)
      return success();
    return module.emitError(overrides.schedule.empty() ? "virtual-stages"
                                                       : "pipeline-schedule")
           << ": the model has no `shardc.pipeline`; stages=S makes one";
  }
  Builder builder(module.getContext());
  StringAttr axis =
      pipeline ? pipeline.getAxis() : builder.getStringAttr(defaultAxis);
  std::string schedule = pipeline ? pipeline.getSchedule().str() : "1f1b";
  int64_t chunks = pipeline ? pipeline.getChunks() : 1;
  if (!overrides.schedule.empty()) {
    FailureOr<std::string> read = readSchedule(module, overrides.schedule);
    if (failed(read))
      return failure();
    schedule = *read;
  }
  if (overrides.chunks > 0)
    chunks = overrides.chunks;
  if (overrides.stages > 0) {
    std::string error;
    std::optional<MeshSpec> asked = parseMeshSpec(overrides.mesh, error);
    if (!overrides.mesh.empty() && asked)
      for (const auto &[name, size] : *asked)
        if (name == axis.getValue() && size != overrides.stages)
          return module.emitError("stages: ")
                 << overrides.stages << " stages, but mesh '" << overrides.mesh
                 << "' has " << size << " devices along " << axis;
    setAxisSize(mesh, axis, overrides.stages);
    if (failed(mesh.verify()))
      return failure();
  }
  module->setAttr(pipelineAttrName,
                  PipelineAttr::get(module.getContext(), axis,
                                    builder.getStringAttr(schedule), chunks));
  // Labels of another number of stages are those of another cut.
  if (overrides.stages > 0 || overrides.chunks > 0) {
    int64_t count = 0;
    loss.walk([&](Operation *op) {
      if (IntegerAttr stage = getStage(op))
        count = std::max(count, stage.getInt() + 1);
    });
    if (count != mesh.getAxisSize(axis.getValue()) * chunks)
      removeStages(loss);
  }
  return success();
}

/// Checks that the module's schedule suits its pipeline.
static LogicalResult verifySchedule(ModuleOp module, PipelineAttr pipeline,
                                    int64_t ranks) {
  int64_t microbatches =
      module->getAttrOfType<TrainingAttr>(trainingAttrName).getMicrobatches();
  StringRef text = pipeline.getSchedule().getValue();
  llvm::Expected<PipelineSchedule> schedule =
      text.contains('\n')
          ? readPipelineSchedule(text, ranks, ranks * pipeline.getChunks(),
                                 microbatches)
          : makePipelineSchedule(text, ranks, pipeline.getChunks(),
                                 microbatches);
  if (schedule)
    return success();
  return module.emitError("`shardc.pipeline`: ")
         << llvm::toString(schedule.takeError());
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
    for (Operation &op : loss.getBody().front())
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
    IntegerAttr stage = getStage(op);
    if (stage && stage.getInt() >= numStages)
      return op->emitOpError("is on stage ")
             << stage.getInt() << ", but the pipeline has stages 0 to "
             << numStages - 1;
    Operation *latest = stage ? op : nullptr;
    for (Value operand : op->getOperands()) {
      Operation *other = latestBefore.lookup(operand);
      if (!other)
        continue;
      if (stage && stage.getInt() < getStage(other).getInt()) {
        InFlightDiagnostic error =
            op->emitOpError("is on stage ")
            << stage.getInt() << ", but it needs a value of stage "
            << getStage(other).getInt() << ": stages follow the forward pass";
        error.attachNote(other->getLoc()) << "that value is made here";
        return error;
      }
      if (!latest || getStage(latest).getInt() < getStage(other).getInt())
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

LogicalResult shardc::verifyPipeline(func::FuncOp loss, MeshOp mesh) {
  auto module = loss->getParentOfType<ModuleOp>();
  auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName);
  if (!pipeline) {
    WalkResult walk = loss.walk([](Operation *op) {
      if (!getStage(op))
        return WalkResult::advance();
      op->emitOpError("has a `shardc.stage`, but the module has no "
                      "`shardc.pipeline`");
      return WalkResult::interrupt();
    });
    return failure(walk.wasInterrupted());
  }
  int64_t ranks = mesh.getAxisSize(pipeline.getAxis().getValue());
  if (ranks == 0)
    return module.emitError("`shardc.pipeline` names axis ")
           << pipeline.getAxis() << ", which mesh @" << mesh.getSymName()
           << " lacks";
  if (failed(verifySchedule(module, pipeline, ranks)) ||
      failed(verifyRules(module, pipeline.getAxis())))
    return failure();
  return StageVerifier(loss, ranks * pipeline.getChunks()).verify();
}
