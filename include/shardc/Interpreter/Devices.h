//===- Devices.h - The devices of a mesh ------------------------*- C++ -*-===//
//
// Devices are numbered row-major over the mesh, the last axis fastest. Plain
// values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_DEVICES_H
#define SHARDC_INTERPRETER_DEVICES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Sharding/Layout.h"

namespace shardc {

class Devices {
public:
  explicit Devices(const MeshAxes &mesh);

  const MeshAxes &getMesh() const { return mesh; }
  int64_t getNumDevices() const { return numDevices; }

  /// The position of `device` in its group over `axes`, major to minor and
  /// without gaps.
  int64_t getIndex(int64_t device, llvm::ArrayRef<int> axes) const;

  /// The groups over `axes`: the devices that agree on all other axes, each
  /// group in the order of `getIndex`.
  std::vector<std::vector<int64_t>> getGroups(llvm::ArrayRef<int> axes) const;

  /// For each of the `size` positions of `device` along a dimension sharded
  /// over `axes`, which may have gaps, its index in the whole dimension. If
  /// blocks do not fill the dimension, the last indices are past its end.
  std::vector<int64_t> getElements(int64_t device, llvm::ArrayRef<int> axes,
                                   int64_t size) const;

  /// The numbers of axes that attributes name, or gaps; all exist.
  AxisList getAxes(llvm::ArrayRef<mlir::StringAttr> names) const;
  AxisList getAxes(mlir::ArrayAttr names) const;

  /// `3 (data=1, model=1)` for messages.
  std::string toString(int64_t device) const;

private:
  MeshAxes mesh;
  int64_t numDevices;
};

} // namespace shardc

#endif // SHARDC_INTERPRETER_DEVICES_H
