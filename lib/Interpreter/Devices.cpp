//===- Devices.cpp - The devices of a mesh --------------------------------===//

#include "shardc/Interpreter/Devices.h"

#include <map>

using namespace mlir;
using namespace shardc;

Devices::Devices(const MeshAxes &mesh) : mesh(mesh), numDevices(1) {
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    numDevices *= mesh.getSize(axis);
}

/// The coordinate of `device` on each axis.
static SmallVector<int64_t> getCoordinates(int64_t device,
                                           const MeshAxes &mesh) {
  SmallVector<int64_t> coordinates(mesh.getNumAxes());
  for (int axis = mesh.getNumAxes(); axis-- > 0;) {
    coordinates[axis] = device % mesh.getSize(axis);
    device /= mesh.getSize(axis);
  }
  return coordinates;
}

int64_t Devices::getIndex(int64_t device, ArrayRef<int> axes) const {
  SmallVector<int64_t> coordinates = getCoordinates(device, mesh);
  int64_t index = 0;
  for (int axis : axes)
    if (!isGap(axis))
      index = index * mesh.getSize(axis) + coordinates[axis];
  return index;
}

std::vector<int64_t> Devices::getElements(int64_t device, ArrayRef<int> axes,
                                          int64_t size) const {
  SmallVector<int64_t> coordinates = getCoordinates(device, mesh);
  // All indices of the dimension without those of other devices along some
  // axis.
  std::vector<int64_t> elements;
  int64_t whole = size * mesh.getNumShards(axes),
          parts = mesh.getNumParts(axes);
  for (int64_t index = 0; index < whole; ++index) {
    int64_t part = index * parts / whole;
    bool isOwn = true;
    for (int entry : llvm::reverse(axes)) {
      int64_t count = isGap(entry) ? -entry : mesh.getSize(entry);
      isOwn &= isGap(entry) || part % count == coordinates[entry];
      part /= count;
    }
    if (isOwn)
      elements.push_back(index);
  }
  return elements;
}

std::vector<std::vector<int64_t>> Devices::getGroups(ArrayRef<int> axes) const {
  AxisList others;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    if (!llvm::is_contained(axes, axis))
      others.push_back(axis);
  int64_t size = mesh.getNumShards(axes);
  std::vector<std::vector<int64_t>> groups(numDevices / size,
                                           std::vector<int64_t>(size));
  for (int64_t device = 0; device < numDevices; ++device)
    groups[getIndex(device, others)][getIndex(device, axes)] = device;
  return groups;
}

AxisList Devices::getAxes(ArrayRef<StringAttr> names) const {
  AxisList axes;
  for (StringAttr name : names) {
    int64_t gap = DimShardingAttr::getGapSize(name);
    axes.push_back(gap ? -static_cast<int>(gap) : mesh.find(name.getValue()));
  }
  return axes;
}

AxisList Devices::getAxes(ArrayAttr names) const {
  return getAxes(llvm::to_vector(names.getAsRange<StringAttr>()));
}

std::string Devices::toString(int64_t device) const {
  // The axis of a pipeline has size 1 here, and no coordinate.
  std::string text;
  for (auto [axis, coordinate] : llvm::enumerate(getCoordinates(device, mesh)))
    if (mesh.getSize(axis) > 1)
      text += (text.empty() ? "" : ", ") + mesh.getName(axis).str() + "=" +
              std::to_string(coordinate);
  return std::to_string(device) + (text.empty() ? "" : " (" + text + ")");
}
