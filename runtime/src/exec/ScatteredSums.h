//===- ScatteredSums.h - Reduce-scatters that need no copy ------*- C++ -*-===//
//
// A GEMM whose result only a reduce-scatter reads is computed as the sum over
// devices (ReplicationAnalysis.h), of which each device gets its shard. That
// need not be copied: with d sharded over two devices,
//
//   c = aᵀ b;   d = reduce_scatter c;   w = w - d
//
// the update reads its half of c. Halves of columns are no matrices of their
// own in c; then the GEMM stores c half by half, one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_SCATTEREDSUMS_H
#define SHARDC_RT_SRC_EXEC_SCATTEREDSUMS_H

#include "exec/ProgramUses.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include <utility>

namespace shardc::rt {

/// Decides for each tensor of the reduce-scatters of a program, without a
/// pipeline and of a process that has all devices. It needs no copy if
///
///  - its operand is the sum over the devices already;
///  - all shards are equally large, a multiple of the plan's alignment;
///  - no GEMM reads the shards, and no other buffer, tensor or result of the
///    program is in their place;
///  - nobody writes the sum before the last who reads a shard has ended;
///  - shards are blocks of rows of the sum, or of columns, which are a multiple
///    of `GemmPieces::columnsOfPanels`, and its GEMMs have factors of f32 and
///    are not merged with those of other devices along their rows.
///
/// Immutable once it is made; borrows what it is made of.
class ScatteredSums {
public:
  /// Where none is.
  ScatteredSums() = default;
  /// Tells `buffers` where shards are.
  explicit ScatteredSums(ProgramBuffers &buffers);

  /// Whether tensor `item` of collective `start` needs no copy.
  bool isInPlace(uint32_t start, size_t item) const {
    return inPlace.contains({start, item});
  }
  /// The columns of the blocks in which a buffer is stored, one after the
  /// other; 0: it is stored as usual.
  int64_t columnsOfBlocks(uint32_t buffer) const {
    auto found = blocks.find(buffer);
    return found == blocks.end() ? 0 : found->second;
  }

private:
  void add(const ProgramUses &uses, ProgramBuffers &buffers, uint32_t start,
           size_t item);
  /// Has the GEMMs that compute a sum, of rows of `columns`, store it in blocks
  /// of `ofBlock` columns; false: they cannot.
  bool storeInBlocks(const ProgramBuffers &buffers, uint32_t sum,
                     int64_t columns, int64_t ofBlock);

  absl::flat_hash_set<std::pair<uint32_t, size_t>> inPlace;
  absl::flat_hash_map<uint32_t, int64_t> blocks; ///< By buffer.
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_SCATTEREDSUMS_H
