//===- DeviceCoordinates.h - Which shard a device has -----------*- C++ -*-===//
//
// Reads the context of a kernel: the device's coordinates on the mesh, then the
// seed, then the microbatch. From the coordinates follow the shard of a tensor
// that the device has and the places of its elements in the global tensor.
//
// Not thread-safe; one per kernel.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_DEVICECOORDINATES_H
#define SHARDC_CONVERSION_KERNELEMITTER_DEVICECOORDINATES_H

#include "shardc/Conversion/KernelEmitter/LoopBuilder.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include <optional>
#include <set>
#include <utility>

namespace shardc {

/// The device's place on the mesh, as code of one kernel function.
class DeviceCoordinates {
public:
  /// `context` is the function's pointer to the context.
  DeviceCoordinates(LoopBuilder &loops, MeshOp mesh, mlir::Value context)
      : loops(loops), mesh(mesh), context(context) {}

  /// This device's index over mesh axes, major to minor, as i64.
  mlir::Value getShardIndex(llvm::ArrayRef<mlir::StringAttr> axes);
  /// The places along dimension `dim` of the global tensor of which `result` is
  /// the shard `shard` and, in a loop, the part `microbatch` (see IotaOp): a
  /// scalar i64, or a vector of lanes.
  mlir::Value
  getGlobalPlaces(mlir::Value result, int64_t dim, const Index &index,
                  std::optional<ShardingAttr> shard,
                  std::optional<llvm::ArrayRef<int64_t>> microbatch);
  /// The seed of the run, as i64.
  mlir::Value getSeed() { return loadContext(mesh.getAxes().size()); }
  /// The number of devices over the axes.
  int64_t getNumShards(llvm::ArrayRef<mlir::StringAttr> axes) {
    return mesh.getNumShards(axes);
  }

  /// The mesh axes, by number and ascending, whose coordinates the code built
  /// since the last call reads.
  std::set<int64_t> takeAxes() { return std::exchange(axesRead, {}); }

private:
  LoopBuilder &loops;
  MeshOp mesh;
  mlir::Value context;
  std::set<int64_t> axesRead;

  mlir::Value loadContext(int64_t position);
};

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_DEVICECOORDINATES_H
