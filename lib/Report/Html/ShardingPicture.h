//===- ShardingPicture.h - Which device holds which slice -------*- C++ -*-===//
//
// Pictures of a mesh and of a tensor on it, of any number of dimensions and
// axes, partial sums and strided shardings included. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REPORT_HTML_SHARDINGPICTURE_H
#define SHARDC_LIB_REPORT_HTML_SHARDINGPICTURE_H

#include "Markup.h"

#include "shardc/Sharding/Layout.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <string>
#include <vector>

namespace shardc {

/// A tensor of shape `shape` on a mesh.
struct PlacedTensor {
  std::vector<int64_t> shape;
  /// Of a shard, padding included.
  std::vector<int64_t> localShape;
  Layout layout;

  bool operator==(const PlacedTensor &other) const {
    return shape == other.shape && localShape == other.localShape &&
           layout == other.layout;
  }
};

/// The tensor of this shape whose layout `toString(layout, mesh)` prints as
/// `text`; nothing if it is no text of a layout of such a tensor.
std::optional<PlacedTensor> readPlacedTensor(llvm::ArrayRef<int64_t> shape,
                                             llvm::StringRef text,
                                             const MeshAxes &mesh);

/// "0-3, 8" for ascending numbers.
std::string getRangesText(llvm::ArrayRef<int64_t> numbers);

/// A slice of a tensor and the devices that hold it.
struct HeldSlice {
  /// "[0:16, 8:16]".
  std::string slice;
  std::vector<int64_t> devices;
};

/// The slices of `tensor`, at most `limit`, in the order of their places.
/// Padding is no part of a slice.
std::vector<HeldSlice> getHeldSlices(const PlacedTensor &tensor,
                                     const MeshAxes &mesh, size_t limit);

/// Draws the blocks of `tensor` as a picture called `label`, each with the
/// devices that hold it. Dimensions before the last two are drawn one block
/// below the other; of many blocks the middle is left out. A rectangle lists
/// its devices in the attribute `data-devices`.
void drawPlacedTensor(Markup &markup, const PlacedTensor &tensor,
                      const MeshAxes &mesh, llvm::StringRef label);

/// Draws the devices of the mesh by their coordinates; nothing if they are too
/// many.
void drawMesh(Markup &markup, const MeshAxes &mesh);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_HTML_SHARDINGPICTURE_H
