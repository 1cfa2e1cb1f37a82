//===- OccupiedBytes.h - Bytes that are taken at some step ------*- C++ -*-===//
//
// A segment tree over steps. Each node covers some steps in a row and holds two
// unions of byte ranges, of buffers that are alive at all of these steps and of
// buffers that are alive at any. Buffers side by side become one range, so a
// node holds few ranges where buffers are packed well. A value class; not
// thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_ANALYSIS_OCCUPIEDBYTES_H
#define SHARDC_LIB_ANALYSIS_OCCUPIEDBYTES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace shardc {

/// The bytes that buffers occupy over their lives. With s steps, `add` and
/// `get` visit O(log s) nodes; `add` takes time in proportion to the ranges
/// there.
class OccupiedBytes {
public:
  /// From the first byte up to the byte behind the last.
  using Range = std::pair<int64_t, int64_t>;
  /// Disjoint ranges in ascending order that do not touch.
  using Union = std::vector<Range>;

  /// Lives begin and end at one of `steps`, which are in any order.
  explicit OccupiedBytes(std::vector<int64_t> steps);

  /// Occupies `range`, which is not empty, at the steps [first, last].
  void add(int64_t first, int64_t last, Range range);

  /// The bytes that are occupied at one or more of the steps [first, last], as
  /// O(log s) unions that may overlap. They are borrowed until the next `add`.
  llvm::SmallVector<llvm::ArrayRef<Range>> get(int64_t first,
                                               int64_t last) const;

private:
  struct Node {
    /// Of buffers alive at all steps of the node and not at all steps of its
    /// parent; of buffers alive at any step of the node.
    Union always, ever;
  };

  static void insert(Union &ranges, Range range);
  size_t getLeaf(int64_t step) const;

  /// Ascending, one for each leaf.
  std::vector<int64_t> steps;
  size_t numLeaves;
  /// Node 1 is the root, 2n and 2n + 1 are below node n.
  std::vector<Node> nodes;
};

} // namespace shardc

#endif // SHARDC_LIB_ANALYSIS_OCCUPIEDBYTES_H
