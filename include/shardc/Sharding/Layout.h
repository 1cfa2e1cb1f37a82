//===- Layout.h - Shardings as small integers -------------------*- C++ -*-===//
//
// Analyses compute with layouts instead of attributes. Mesh axes are numbered;
// a layout is one list of axis numbers per tensor dimension and a set of axes
// over which the tensor is unreduced. Axes of size 1 shard nothing and never
// occur in a layout. Plain values; thread-safe.
//
// Strided sharding. When any but the minor-most axis leaves a dimension, the
// remaining shards are not blocks. The list then keeps a gap in the place of
// the axis, written "*n" for n parts that are not sharded. Example: eight
// elements over {"a", "b"}, both of size 2, and after an all-gather over "a":
//
//   (a, b)         (0, 0)   (0, 1)   (1, 0)   (1, 1)
//   {"a", "b"}     0 1      2 3      4 5      6 7
//   {"*2", "b"}    0 1 4 5  2 3 6 7  0 1 4 5  2 3 6 7
//
// The elements of a shard keep their global order. A list with a gap divides
// its dimension evenly.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SHARDING_LAYOUT_H
#define SHARDC_SHARDING_LAYOUT_H

#include "shardc/Dialect/Shardc/IR/Enums.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <tuple>
#include <utility>

namespace shardc {

/// Axis numbers, major to minor; in the lists of a Layout -n is a gap of n.
using AxisList = llvm::SmallVector<int, 2>;
/// Bit i stands for axis i.
using AxisSet = uint64_t;

/// ceil(numerator / denominator) of a non-negative and a positive number.
inline int64_t ceilDiv(int64_t numerator, int64_t denominator) {
  return (numerator + denominator - 1) / denominator;
}

inline AxisSet axisBit(int axis) { return AxisSet(1) << axis; }

/// Whether an entry of an AxisList is a gap.
inline bool isGap(int entry) { return entry < 0; }
/// Whether `axes` has a gap: its shards are strided.
bool isStrided(llvm::ArrayRef<int> axes);
/// Meshes with more sharding axes than this have no strided shardings: their
/// layouts would be too many to enumerate.
constexpr int maxStridedAxes = 3;

/// The axes of `axes`, without its gaps.
AxisSet getAxisSet(llvm::ArrayRef<int> axes);
/// Merges adjacent gaps and drops those at the end, which have no effect.
void normalizeGaps(AxisList &axes);

/// The axes of a mesh, numbered in declaration order; at most 64.
class MeshAxes {
public:
  MeshAxes() = default;
  explicit MeshAxes(llvm::ArrayRef<std::pair<std::string, int64_t>> axes)
      : axes(axes.begin(), axes.end()) {}

  int getNumAxes() const { return axes.size(); }
  llvm::StringRef getName(int axis) const { return axes[axis].first; }
  int64_t getSize(int axis) const { return axes[axis].second; }
  /// The number of axis `name`, or -1.
  int find(llvm::StringRef name) const;
  /// Devices in a group over `group`, whose gaps are skipped.
  int64_t getNumShards(llvm::ArrayRef<int> group) const;
  /// The number of parts that `axes` cuts a dimension into: shards times gaps.
  int64_t getNumParts(llvm::ArrayRef<int> axes) const;
  int64_t getNumShards(AxisSet group) const;
  /// The members of `set` in declaration order.
  AxisList getList(AxisSet set) const;
  /// `"data", "model"` for messages.
  std::string toString(llvm::ArrayRef<int> group) const;

private:
  llvm::SmallVector<std::pair<std::string, int64_t>, 4> axes;
};

/// The sharding of one tensor.
struct Layout {
  /// One list per dimension.
  llvm::SmallVector<AxisList, 2> dims;
  /// Axes over which shards are unreduced; `reduction` combines them.
  AxisSet unreduced = 0;
  ReductionKind reduction = ReductionKind::Sum;

  Layout() = default;
  explicit Layout(int64_t rank) : dims(rank) {}

  /// Axes that shard some dimension.
  AxisSet getAxes() const;
  /// Whether some dimension has a gap.
  bool isStrided() const;
  /// Whether every device holds the whole, reduced tensor.
  bool isReplicated() const { return getAxes() == 0 && unreduced == 0; }
  /// Shape of a shard: ceil(size / shards) in each dimension.
  llvm::SmallVector<int64_t> getLocalShape(llvm::ArrayRef<int64_t> shape,
                                           const MeshAxes &mesh) const;
  /// Elements of a shard.
  int64_t getLocalElements(llvm::ArrayRef<int64_t> shape,
                           const MeshAxes &mesh) const;

  bool operator==(const Layout &other) const {
    return dims == other.dims && unreduced == other.unreduced;
  }
  bool operator!=(const Layout &other) const { return !(*this == other); }
  /// A total order, for deterministic containers.
  bool operator<(const Layout &other) const {
    return std::tie(unreduced, dims) < std::tie(other.unreduced, other.dims);
  }
};

struct LayoutHash {
  size_t operator()(const Layout &layout) const;
};

/// `[{"data"}, {}]` and, if there are any, `unreduced={"model"}`.
std::string toString(const Layout &layout, const MeshAxes &mesh);

} // namespace shardc

#endif // SHARDC_SHARDING_LAYOUT_H
