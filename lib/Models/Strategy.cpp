//===- Strategy.cpp - The annotations of sharding strategies --------------===//

#include "shardc/Models/Strategy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace shardc;

Strategy::Strategy(llvm::StringRef text) {
  // Another name of it.
  if (text == "pp+tp")
    text = "tp+pp";
  if (text.consume_back("+pp") || text.consume_back("pp"))
    pipelineAxis = "stage";
  bool isHybrid = text.starts_with("hsdp");
  if (isHybrid)
    rowAxes = {"replica", "shard"};
  else if (!text.empty() && text != "none" && text != "tp")
    rowAxes = {"data"};
  if (isHybrid)
    parameterAxis = "shard";
  else if (text.starts_with("fsdp"))
    parameterAxis = "data";
  if (text == "tp" || text.ends_with("+tp"))
    modelAxis = "model";
  if (text == "zero1" || text == "zero2")
    stateAxis = "data";
  if (text == "zero2")
    gradientAxis = "data";
}

std::vector<std::string> Strategy::getAxes() const {
  std::vector<std::string> axes;
  if (!pipelineAxis.empty())
    axes.push_back(pipelineAxis);
  axes.insert(axes.end(), rowAxes.begin(), rowAxes.end());
  if (!modelAxis.empty())
    axes.push_back(modelAxis);
  return axes;
}

DimAxes shardc::getParameterAxes(const Strategy &strategy, int64_t layer,
                                 const std::vector<int64_t> &shape,
                                 int64_t fsdpMinSize) {
  DimAxes axes(shape.size());
  bool isColumn = layer % 2 == 0;
  bool isBias = shape.size() == 1;
  // The columns of an even layer are contracted with the rows of the next one;
  // a bias has the sharding of its layer's columns.
  size_t modelDim = isBias || !isColumn ? 0 : 1;
  bool onModel = !strategy.modelAxis.empty() && (!isBias || isColumn);
  if (onModel)
    axes[modelDim].push_back(strategy.modelAxis);
  if (strategy.parameterAxis.empty())
    return axes;
  int64_t size = 1;
  for (int64_t dim : shape)
    size *= dim;
  if (size < fsdpMinSize)
    return axes;
  if (strategy.modelAxis.empty())
    axes[0].push_back(strategy.parameterAxis);
  else if (!isBias)
    axes[1 - modelDim].push_back(strategy.parameterAxis);
  return axes;
}

MeshSpec shardc::getMesh(const MlpSpec &spec, const Strategy &strategy) {
  MeshSpec mesh = spec.mesh;
  std::vector<std::string> axes = strategy.getAxes();
  if (mesh.empty() && !strategy.pipelineAxis.empty()) {
    // Two stages, or as asked, and eight devices with two stages.
    static const std::vector<int64_t> sizes[] = {{}, {4}, {2, 2}};
    mesh.emplace_back(axes[0], spec.stages.value_or(2));
    for (auto [axis, size] :
         llvm::zip(llvm::drop_begin(axes), sizes[axes.size() - 1]))
      mesh.emplace_back(axis, size);
    return mesh;
  }
  if (mesh.empty()) {
    // Eight devices: 8, 4x2 or 2x2x2; hsdp 2x4.
    static const std::vector<int64_t> sizes[] = {{}, {8}, {4, 2}, {2, 2, 2}};
    for (auto [axis, size] : llvm::zip(axes, sizes[axes.size()]))
      mesh.emplace_back(axis, size);
    if (spec.strategy == "hsdp")
      std::swap(mesh[0].second, mesh[1].second);
    return mesh;
  }
  for (const std::string &axis : axes)
    if (llvm::none_of(mesh, [&](const auto &it) { return it.first == axis; })) {
      bool isStages = axis == strategy.pipelineAxis;
      mesh.insert(isStages ? mesh.begin() : mesh.end(),
                  {axis, isStages ? spec.stages.value_or(2) : 1});
    }
  return mesh;
}

std::string shardc::nameSharding(const DimAxes &axes) {
  bool first = !axes.empty() && !axes[0].empty();
  bool second = axes.size() > 1 && !axes[1].empty();
  if (!first && !second)
    return axes.size() == 1 ? "replicated_1d" : "replicated";
  if (axes.size() == 1)
    return "split_" + llvm::join(axes[0], "_");
  if (first && second)
    return llvm::join(axes[0], "_") + "_by_" + llvm::join(axes[1], "_");
  return first ? "rows_" + llvm::join(axes[0], "_")
               : "cols_" + llvm::join(axes[1], "_");
}
