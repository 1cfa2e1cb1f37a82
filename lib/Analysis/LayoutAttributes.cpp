//===- LayoutAttributes.cpp - Layouts from attributes and back ------------===//

#include "shardc/Analysis/LayoutAttributes.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

using namespace mlir;
using namespace shardc;

MeshAxes shardc::getMeshAxes(MeshOp mesh) {
  auto pipeline =
      mesh->getParentOp()->getAttrOfType<PipelineAttr>(pipelineAttrName);
  SmallVector<std::pair<std::string, int64_t>> axes;
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
    bool isOfStages = pipeline && pipeline.getAxis() == axis.getName();
    axes.emplace_back(axis.getName().getValue().str(),
                      isOfStages ? 1 : axis.getSize());
  }
  return MeshAxes(axes);
}

Layout shardc::getLayout(ShardingAttr sharding, const MeshAxes &mesh) {
  Layout layout(sharding.getRank());
  auto find = [&](StringAttr axis) {
    int number = mesh.find(axis.getValue());
    return number >= 0 && mesh.getSize(number) > 1 ? number : -1;
  };
  for (auto [dim, axes] : llvm::zip_equal(sharding.getDims(), layout.dims))
    for (StringAttr axis : dim.getAxes()) {
      if (int64_t gap = DimShardingAttr::getGapSize(axis))
        axes.push_back(-gap);
      else if (int number = find(axis); number >= 0)
        axes.push_back(number);
    }
  for (StringAttr axis : sharding.getUnreduced())
    if (int number = find(axis); number >= 0)
      layout.unreduced |= axisBit(number);
  return layout;
}

SmallVector<StringAttr> shardc::getAxisNames(ArrayRef<int> axes,
                                             const MeshAxes &mesh,
                                             MLIRContext *context) {
  return llvm::map_to_vector(axes, [&](int axis) -> StringAttr {
    return isGap(axis) ? DimShardingAttr::getGap(-axis, context)
                       : StringAttr::get(context, mesh.getName(axis));
  });
}

ShardingAttr shardc::getSharding(const Layout &layout, const MeshAxes &mesh,
                                 FlatSymbolRefAttr meshName) {
  MLIRContext *context = meshName.getContext();
  SmallVector<SmallVector<StringAttr>> dims;
  for (const AxisList &axes : layout.dims)
    dims.push_back(getAxisNames(axes, mesh, context));
  return ShardingAttr::getClosed(
      meshName, dims,
      getAxisNames(mesh.getList(layout.unreduced), mesh, context));
}
