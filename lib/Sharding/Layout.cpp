//===- Layout.cpp - Shardings as small integers ---------------------------===//

#include "shardc/Sharding/Layout.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace shardc;

bool shardc::isStrided(ArrayRef<int> axes) { return llvm::any_of(axes, isGap); }

AxisSet shardc::getAxisSet(ArrayRef<int> axes) {
  AxisSet set = 0;
  for (int axis : axes)
    if (!isGap(axis))
      set |= axisBit(axis);
  return set;
}

void shardc::normalizeGaps(AxisList &axes) {
  AxisList result;
  for (int entry : axes) {
    if (entry == -1)
      continue;
    if (isGap(entry) && !result.empty() && isGap(result.back()))
      result.back() *= -entry;
    else
      result.push_back(entry);
  }
  if (!result.empty() && isGap(result.back()))
    result.pop_back();
  axes = std::move(result);
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
    shards *= isGap(axis) ? 1 : getSize(axis);
  return shards;
}

int64_t MeshAxes::getNumParts(ArrayRef<int> axes) const {
  int64_t parts = 1;
  for (int axis : axes)
    parts *= isGap(axis) ? -axis : getSize(axis);
  return parts;
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
  llvm::interleaveComma(group, os, [&](int axis) {
    os << '"';
    if (isGap(axis))
      os << '*' << -axis;
    else
      os << getName(axis);
    os << '"';
  });
  return text;
}

size_t LayoutHash::operator()(const Layout &layout) const {
  llvm::hash_code hash = llvm::hash_value(layout.unreduced);
  for (const AxisList &axes : layout.dims)
    hash = llvm::hash_combine(
        hash, llvm::hash_combine_range(axes.begin(), axes.end()));
  return hash;
}

AxisSet Layout::getAxes() const {
  AxisSet set = 0;
  for (const AxisList &dim : dims)
    set |= getAxisSet(dim);
  return set;
}

bool Layout::isStrided() const {
  return llvm::any_of(
      dims, [](const AxisList &axes) { return shardc::isStrided(axes); });
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
