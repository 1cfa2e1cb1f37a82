//===- Layout.cpp - Shardings as small integers ---------------------------===//

#include "shardc/Analysis/Layout.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace shardc;

MeshAxes::MeshAxes(MeshOp mesh) {
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    axes.emplace_back(axis.getName().getValue().str(), axis.getSize());
}

int MeshAxes::find(StringRef name) const {
  for (auto [index, axis] : llvm::enumerate(axes))
    if (axis.first == name)
      return index;
  return -1;
}

int64_t MeshAxes::getNumShards(ArrayRef<int> group) const {
  int64_t shards = 1;
  for (int axis : group)
    shards *= getSize(axis);
  return shards;
}

int64_t MeshAxes::getNumShards(AxisSet group) const {
  int64_t shards = 1;
  for (int axis = 0; axis < getNumAxes(); ++axis)
    if (group & axisBit(axis))
      shards *= getSize(axis);
  return shards;
}

AxisList MeshAxes::getList(AxisSet set) const {
  AxisList list;
  for (int axis = 0; axis < getNumAxes(); ++axis)
    if (set & axisBit(axis))
      list.push_back(axis);
  return list;
}

std::string MeshAxes::toString(ArrayRef<int> group) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(group, os,
                        [&](int axis) { os << '"' << getName(axis) << '"'; });
  return text;
}

AxisSet Layout::getAxes() const {
  AxisSet set = 0;
  for (const AxisList &dim : dims)
    for (int axis : dim)
      set |= axisBit(axis);
  return set;
}

SmallVector<int64_t> Layout::getLocalShape(ArrayRef<int64_t> shape,
                                           const MeshAxes &mesh) const {
  SmallVector<int64_t> local;
  for (auto [size, axes] : llvm::zip_equal(shape, dims))
    local.push_back(ceilDiv(size, mesh.getNumShards(axes)));
  return local;
}

int64_t Layout::getLocalElements(ArrayRef<int64_t> shape,
                                 const MeshAxes &mesh) const {
  int64_t elements = 1;
  for (auto [size, axes] : llvm::zip_equal(shape, dims))
    elements *= ceilDiv(size, mesh.getNumShards(axes));
  return elements;
}

Layout shardc::getLayout(ShardingAttr sharding, const MeshAxes &mesh) {
  Layout layout(sharding.getRank());
  auto find = [&](StringAttr axis) {
    int number = mesh.find(axis.getValue());
    return number >= 0 && mesh.getSize(number) > 1 ? number : -1;
  };
  for (auto [dim, axes] : llvm::zip_equal(sharding.getDims(), layout.dims))
    for (StringAttr axis : dim.getAxes())
      if (int number = find(axis); number >= 0)
        axes.push_back(number);
  for (StringAttr axis : sharding.getUnreduced())
    if (int number = find(axis); number >= 0)
      layout.unreduced |= axisBit(number);
  return layout;
}

SmallVector<StringAttr> shardc::getAxisNames(ArrayRef<int> axes,
                                             const MeshAxes &mesh,
                                             MLIRContext *context) {
  return llvm::map_to_vector(axes, [&](int axis) {
    return StringAttr::get(context, mesh.getName(axis));
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

std::string shardc::toString(const Layout &layout, const MeshAxes &mesh) {
  std::string text = "[";
  for (auto [index, axes] : llvm::enumerate(layout.dims))
    text += (index ? ", {" : "{") + mesh.toString(axes) + "}";
  text += "]";
  if (layout.unreduced)
    text +=
        " unreduced={" + mesh.toString(mesh.getList(layout.unreduced)) + "}";
  return text;
}
