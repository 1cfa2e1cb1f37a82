//===- Extents.h - Parts of a file that one process writes ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_EXTENTS_H
#define SHARDC_RT_SRC_CHECKPOINT_EXTENTS_H

#include "absl/types/span.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardc::rt {

/// Contiguous bytes of a file, which lie at `place` of a block of memory.
struct Extent {
  uint64_t begin = 0, bytes = 0, place = 0;
};

/// The bytes of a file that one process writes, which are packed in memory: one
/// extent behind the other. First `add`, then `pack`, then the others. Threads
/// may share a constant one.
class Extents {
public:
  /// Adds bytes that were not added before, in any order.
  void add(uint64_t begin, uint64_t bytes);

  /// Joins extents that touch, and assigns places from `place` on. Returns the
  /// place behind the last.
  uint64_t pack(uint64_t place);

  /// Ascending and disjoint; none touches the next.
  absl::Span<const Extent> all() const { return extents; }

  /// Whether they are so short that calls of the system for each would take
  /// most of the time of writing.
  bool areShort() const;

  /// The place of a byte that was added. `hint` is of the caller: 0 before the
  /// first search of a row, which is fast if it ascends.
  uint64_t placeOf(uint64_t at, size_t &hint) const;

private:
  std::vector<Extent> extents;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_CHECKPOINT_EXTENTS_H
