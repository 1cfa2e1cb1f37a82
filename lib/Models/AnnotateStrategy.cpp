//===- AnnotateStrategy.cpp - A strategy on a given model -----------------===//

#include "shardc/Models/AnnotateStrategy.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace shardc;

func::FuncOp shardc::getLoss(ModuleOp module) {
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  return training
             ? module.lookupSymbol<func::FuncOp>(training.getLoss().getAttr())
             : func::FuncOp();
}

void shardc::removeAnnotations(ModuleOp module,
                               const std::set<std::string> &kept) {
  for (StringRef name : {pipelineAttrName, recomputeAttrName, expectAttrName})
    module->removeAttr(name);
  if (kept.empty())
    module->removeAttr(rulesAttrName);
  for (auto function : module.getOps<func::FuncOp>()) {
    function->removeAttr(expectAttrName);
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      StringAttr name = getRoleName(getRole(function, index));
      if (name && kept.count(name.str()))
        continue;
      for (StringRef attribute : {shardingAttrName, gradShardingAttrName,
                                  stateShardingAttrName, logicalAxesAttrName})
        function.removeArgAttr(index, attribute);
    }
    for (unsigned index = 0; index < function.getNumResults(); ++index)
      function.removeResultAttr(
          index, StringAttr::get(module.getContext(), shardingAttrName));
  }
  SmallVector<ShardingConstraintOp> constraints;
  module.walk([&](Operation *op) {
    if (op == module || isa<func::FuncOp>(op))
      return;
    op->removeAttr(stageAttrName);
    op->removeAttr(expectAttrName);
    if (auto constraint = dyn_cast<ShardingConstraintOp>(op))
      constraints.push_back(constraint);
  });
  for (ShardingConstraintOp constraint : constraints) {
    constraint.getResult().replaceAllUsesWith(constraint.getOperand());
    constraint.erase();
  }
}

void shardc::setMesh(ModuleOp module, const MeshSpec &mesh) {
  Builder builder(module.getContext());
  SmallVector<Attribute> axes;
  for (const auto &[name, size] : mesh)
    axes.push_back(MeshAxisAttr::get(builder.getContext(),
                                     builder.getStringAttr(name), size));
  ArrayAttr list = builder.getArrayAttr(axes);
  auto meshes = module.getOps<MeshOp>();
  if (!meshes.empty())
    return (*meshes.begin()).setAxesAttr(list);
  OpBuilder inserter = OpBuilder::atBlockBegin(module.getBody());
  inserter.create<MeshOp>(module.getLoc(), builder.getStringAttr("mesh"), list);
}

namespace {

/// Annotates the arguments of one loss function.
class Annotator {
public:
  Annotator(func::FuncOp loss, MeshOp mesh, const Strategy &strategy)
      : loss(loss), strategy(strategy), roles(loss),
        meshName(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {}

  void annotate(BlockArgument argument) {
    unsigned index = argument.getArgNumber();
    Attribute role = getRole(loss, index);
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || loss.getArgAttr(index, shardingAttrName) ||
        loss.getArgAttr(index, logicalAxesAttrName))
      return;
    if (isa_and_nonnull<ParameterAttr>(role))
      return annotateParameter(argument, type);
    if (!isa_and_nonnull<InputAttr, LabelAttr>(role) || type.getRank() == 0 ||
        strategy.rowAxes.empty())
      return;
    DimAxes axes(type.getRank());
    axes[0] = strategy.rowAxes;
    set(index, shardingAttrName, axes);
  }

private:
  void annotateParameter(BlockArgument argument, RankedTensorType type) {
    unsigned index = argument.getArgNumber();
    // Under other strategies parameters are left to propagation, which leaves
    // them replicated.
    if (strategy.shardsParameters())
      set(index, shardingAttrName, getStorage(argument, type));
    DimAxes first(type.getRank());
    auto setFirst = [&](StringRef attribute, const std::string &axis) {
      if (axis.empty() || loss.getArgAttr(index, attribute))
        return;
      if (!first.empty())
        first[0] = {axis};
      set(index, attribute, first);
    };
    auto training =
        loss->getParentOfType<ModuleOp>()->getAttrOfType<TrainingAttr>(
            trainingAttrName);
    if (training.getOptimizer().getKind() != OptimizerKind::SGD)
      setFirst(stateShardingAttrName, strategy.stateAxis);
    setFirst(gradShardingAttrName, strategy.gradientAxis);
  }

  DimAxes getStorage(BlockArgument argument, RankedTensorType type) {
    std::optional<int64_t> role = roles.lookup(argument);
    if (role && (type.getRank() == 1 || type.getRank() == 2))
      return getParameterAxes(strategy, *role, type.getShape().vec(),
                              /*fsdpMinSize=*/0);
    // A parameter of no layer, such as a table of embeddings.
    DimAxes axes(type.getRank());
    if (!axes.empty() && !strategy.parameterAxis.empty())
      axes[0] = {strategy.parameterAxis};
    return axes;
  }

  void set(unsigned index, StringRef attribute, const DimAxes &axes) {
    Builder builder(loss.getContext());
    SmallVector<SmallVector<StringAttr>> dims;
    for (const std::vector<std::string> &dim : axes) {
      dims.emplace_back();
      for (const std::string &axis : dim)
        dims.back().push_back(builder.getStringAttr(axis));
    }
    loss.setArgAttr(index, attribute, ShardingAttr::getClosed(meshName, dims));
  }

  func::FuncOp loss;
  const Strategy &strategy;
  LayerRoles roles;
  FlatSymbolRefAttr meshName;
};

} // namespace

void shardc::annotateStrategy(ModuleOp module, const Strategy &strategy) {
  func::FuncOp loss = getLoss(module);
  Annotator annotator(loss, *module.getOps<MeshOp>().begin(), strategy);
  for (BlockArgument argument : loss.getArguments())
    annotator.annotate(argument);
  if (strategy.pipelineAxis.empty())
    return;
  Builder builder(module.getContext());
  module->setAttr(
      pipelineAttrName,
      PipelineAttr::get(module.getContext(),
                        builder.getStringAttr(strategy.pipelineAxis),
                        builder.getStringAttr("1f1b"),
                        /*chunks=*/1));
}

void shardc::setSchedule(ModuleOp module, StringRef schedule,
                         int64_t virtualStages) {
  if (auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName))
    module->setAttr(
        pipelineAttrName,
        PipelineAttr::get(module.getContext(), pipeline.getAxis(),
                          StringAttr::get(module.getContext(), schedule),
                          virtualStages));
}
