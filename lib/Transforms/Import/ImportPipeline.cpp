//===- ImportPipeline.cpp - The pipeline of the command line --------------===//

#include "ImportSteps.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Support/InputFiles.h"
#include "shardc/Support/MeshSpec.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace shardc;

/// The most bytes of a schedule's file: of 4194304 tasks, the most that there
/// are, each has 16.
static constexpr uint64_t maxScheduleBytes = uint64_t(1) << 26;

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
  if (!isScheduleFile(option))
    return option;
  if (std::string error = checkInputSize(option, maxScheduleBytes);
      !error.empty())
    return module.emitError("pipeline-schedule: ") << error;
  auto buffer = llvm::MemoryBuffer::getFile(option, /*IsText=*/true);
  if (std::error_code error = buffer.getError())
    return module.emitError("pipeline-schedule: cannot read '")
           << option << "': " << error.message();
  std::string text = (*buffer)->getBuffer().str();
  // A schedule by name has no line (`isScheduleText`).
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
      pipeline ? pipeline.getAxis() : builder.getStringAttr(defaultStageAxis);
  std::string schedule = pipeline ? pipeline.getSchedule().str() : "1f1b";
  int64_t chunks = pipeline ? pipeline.getChunks() : 1;
  if (!overrides.schedule.empty()) {
    FailureOr<std::string> read = readSchedule(module, overrides.schedule);
    if (failed(read))
      return failure();
    schedule = *read;
  }
  if (overrides.chunks > maxChunks)
    return module.emitError("virtual-stages: expected 1 to ")
           << maxChunks << ", got " << overrides.chunks;
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
    int64_t last = -1;
    loss.walk([&](Operation *op) {
      if (auto stage = op->getAttrOfType<IntegerAttr>(stageAttrName))
        last = std::max(last, stage.getInt());
    });
    if (last != mesh.getAxisSize(axis.getValue()) * chunks - 1)
      removeStages(loss);
  }
  return success();
}
