//===- SmallMeshes.cpp - Small meshes that represent a large one ----------===//

#include "SmallMeshes.h"

using namespace mlir;
using namespace shardc;

/// Meshes of more devices than this are replaced.
static constexpr int64_t manyDevices = 64;
/// The most devices of a replacement, if fewer cannot represent the mesh.
static constexpr int64_t maxDevices = 1024;

int64_t shardc::getNumDevices(const MeshAxes &mesh) {
  int64_t devices = 1;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    devices *= mesh.getSize(axis);
  return devices;
}

bool shardc::hasManyDevices(const MeshAxes &mesh) {
  return getNumDevices(mesh) > manyDevices;
}

/// Calls `use` with all sizes of axes that a mesh of at most `maxDevices` may
/// have, in order.
static void forEachSizes(const MeshAxes &mesh, SmallVector<int64_t> &sizes,
                         int64_t devices,
                         function_ref<void(ArrayRef<int64_t>)> use) {
  int axis = sizes.size();
  if (axis == mesh.getNumAxes())
    return use(sizes);
  int64_t most = std::min(mesh.getSize(axis), maxDevices / devices);
  for (int64_t size = std::min<int64_t>(mesh.getSize(axis), 2); size <= most;
       ++size) {
    sizes.push_back(size);
    forEachSizes(mesh, sizes, devices * size, use);
    sizes.pop_back();
  }
}

std::vector<MeshAxes> shardc::getSmallMeshes(const MeshAxes &mesh,
                                             const StridedGaps &gaps) {
  using Rank = std::tuple<bool, bool, int64_t>;
  std::vector<std::pair<Rank, MeshAxes>> ranked;
  SmallVector<int64_t> sizes;
  forEachSizes(mesh, sizes, 1, [&](ArrayRef<int64_t> sizes) {
    SmallVector<std::pair<std::string, int64_t>> axes;
    for (auto [axis, size] : llvm::enumerate(sizes))
      axes.emplace_back(mesh.getName(axis).str(), size);
    MeshAxes small(axes);
    if (gaps.canMoveTo(small))
      ranked.push_back({Rank{hasManyDevices(small), !gaps.compareAlike(small),
                             getNumDevices(small)},
                        std::move(small)});
  });
  llvm::stable_sort(ranked, llvm::less_first());
  std::vector<MeshAxes> meshes;
  for (auto &[rank, small] : ranked)
    meshes.push_back(std::move(small));
  return meshes;
}
