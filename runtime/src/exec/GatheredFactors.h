//===- GatheredFactors.h - All-gathers that need no copy --------*- C++ -*-===//
//
// Virtual devices of one process see each other's shards. If nobody but GEMMs
// reads a gathered matrix, these read its shards where they lie, and nothing is
// copied. With w sharded over four devices,
//
//   g = all_gather w;   c = x g;   d = c gᵀ
//
// both GEMMs pack the shards of w, and g is never written. It keeps its place
// in the arena, and the bytes that a plan counts stay.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_GATHEREDFACTORS_H
#define SHARDC_RT_SRC_EXEC_GATHEREDFACTORS_H

#include "exec/ProgramUses.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"

#include <utility>
#include <vector>

namespace shardc::rt {

/// Decides for each tensor of the all-gathers of a program, without a pipeline
/// and of a process that has all devices. It needs no copy if
///
///  - only GEMMs of f32, without a batch, read the result, as factors that are
///    neither summed nor merged with those of other devices;
///  - no other buffer, and no tensor or result of the program, is in the
///    result's place while it is read;
///  - nobody writes the shards, which are in their own place, before the last
///    of these GEMMs has ended;
///  - shards are blocks of rows or of columns of the matrix, which lie one
///    after the other or have `minExtent` rows or columns.
///
/// Immutable once it is made; borrows what it is made of.
class GatheredFactors {
public:
  /// Where none is.
  GatheredFactors() = default;
  /// Adds the lists of pieces to `prepared`.
  GatheredFactors(const ProgramBuffers &buffers, PreparedSteps &prepared);

  /// A matrix that is read in place.
  struct Factor {
    MatrixPieces pieces;
    /// How many, and the bytes of each; 1: whole, in the place of its first
    /// shard.
    int64_t numPieces = 1;
    uint64_t bytesOfPiece = 0;
    /// Of the shards, by the address of the matrix on a device.
    absl::flat_hash_map<const void *, absl::Span<void *const>> addresses = {};
  };

  /// Whether tensor `item` of collective `start` needs no copy.
  bool isInPlace(uint32_t start, size_t item) const {
    return inPlace.contains({start, item});
  }
  /// The gathered matrix in a buffer that is read in place; null: it is not.
  const Factor *find(uint32_t buffer) const {
    auto found = factors.find(buffer);
    return found == factors.end() ? nullptr : &found->second;
  }

private:
  /// Rows or columns of a piece: panels that reach over its end take longer to
  /// pack.
  static constexpr int64_t minExtent = 32;

  /// The GEMMs that read a gathered matrix.
  struct Readers {
    int64_t columns = 0;  ///< Of the matrix.
    uint32_t last = 0;    ///< The command with which all have ended.
    bool canRead = false; ///< Whether they can read pieces.
  };

  void add(const ProgramUses &uses, uint32_t start, size_t item);
  Readers readersOf(const ProgramUses &uses, uint32_t start,
                    uint32_t buffer) const;
  bool canRead(uint32_t command, uint32_t buffer) const;

  const ProgramBuffers *buffers = nullptr;
  PreparedSteps *prepared = nullptr;
  absl::flat_hash_set<std::pair<uint32_t, size_t>> inPlace;
  absl::flat_hash_map<uint32_t, Factor> factors; ///< By buffer.
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_GATHEREDFACTORS_H
