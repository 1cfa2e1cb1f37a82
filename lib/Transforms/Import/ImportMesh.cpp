//===- ImportMesh.cpp - The mesh of the command line ----------------------===//

#include "ImportSteps.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Expect.h"
#include "shardc/Support/MeshSpec.h"
#include "shardc/Support/Suggest.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace shardc;

/// The mesh axes that annotations, contracts and rules of the module name.
static llvm::StringSet<> findUsedAxes(ModuleOp module) {
  llvm::StringSet<> used;
  auto addAxes = [&](ArrayRef<StringAttr> axes) {
    for (StringAttr axis : axes)
      used.insert(axis.getValue());
  };
  module->walk([&](Operation *op) {
    op->getAttrDictionary().walk([&](ShardingAttr sharding) {
      for (DimShardingAttr dim : sharding.getDims())
        addAxes(dim.getAxes());
      addAxes(sharding.getReplicated());
      addAxes(sharding.getUnreduced());
    });
    op->getAttrDictionary().walk([&](Attribute attribute) {
      if (std::optional<CollectiveFilter> filter = getFilter(attribute);
          filter && filter->axis)
        used.insert(filter->axis.getValue());
    });
  });
  if (auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName))
    used.insert(pipeline.getAxis().getValue());
  if (auto rules = module->getAttrOfType<DictionaryAttr>(rulesAttrName))
    for (NamedAttribute rule : rules)
      for (auto axis :
           cast<ArrayAttr>(rule.getValue()).getAsRange<StringAttr>())
        used.insert(axis.getValue());
  return used;
}

/// Emits an error for an axis of several devices in `wanted` that the model
/// does not have, if it names axes at all: that axis would shard nothing.
static LogicalResult checkAxes(MeshOp mesh, const llvm::StringSet<> &used,
                               const MeshSpec &wanted, const std::string &spec,
                               StringRef stageAxis) {
  std::vector<std::string> known;
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    known.push_back(axis.getName().str());
  for (const auto &axis : used)
    if (!llvm::is_contained(known, axis.getKey()))
      known.push_back(axis.getKey().str());
  llvm::sort(known);
  for (const auto &[name, size] : wanted)
    if (size > 1 && !used.empty() && name != stageAxis &&
        !llvm::is_contained(known, name))
      return mesh->getParentOfType<ModuleOp>().emitError("mesh '")
             << spec << "': the model has no axis '" << name << "'"
             << suggest(name, known);
  return success();
}

FailureOr<MeshOp> shardc::overrideMesh(ModuleOp module, const std::string &spec,
                                       StringRef stageAxis) {
  MeshSpec wanted;
  if (!spec.empty()) {
    std::string error;
    std::optional<MeshSpec> parsed = parseMeshSpec(spec, error);
    if (!parsed)
      return module.emitError(error);
    wanted = *parsed;
  }

  Builder builder(module.getContext());
  SmallVector<Attribute> axes;
  llvm::StringSet<> names;
  for (const auto &[name, size] : wanted) {
    axes.push_back(MeshAxisAttr::get(module.getContext(),
                                     builder.getStringAttr(name), size));
    names.insert(name);
  }

  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty()) {
    if (axes.empty())
      axes.push_back(MeshAxisAttr::get(module.getContext(),
                                       builder.getStringAttr("device"), 1));
    auto top = OpBuilder::atBlockBegin(module.getBody());
    return top.create<MeshOp>(module.getLoc(), "mesh",
                              builder.getArrayAttr(axes));
  }

  MeshOp mesh = *meshes.begin();
  if (wanted.empty())
    return mesh;
  llvm::StringSet<> used = findUsedAxes(module);
  if (failed(checkAxes(mesh, used, wanted, spec, stageAxis)))
    return failure();
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    if (used.contains(axis.getName().getValue()) &&
        !names.contains(axis.getName().getValue()))
      axes.push_back(MeshAxisAttr::get(module.getContext(), axis.getName(), 1));
  mesh.setAxesAttr(builder.getArrayAttr(axes));
  return mesh;
}
