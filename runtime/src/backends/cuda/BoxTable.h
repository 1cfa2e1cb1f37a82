//===- BoxTable.h - The boxes of a launch -----------------------*- C++ -*-===//
//
// A kernel of collectives reads in a table in the GPU's memory which boxes it
// copies or reduces, however many there are. The table has an entry for each
// box, and the number of the entry of each block.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_BOXTABLE_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_BOXTABLE_H

#include "backends/cuda/Driver.h"

#include "absl/types/span.h"

#include <cstdint>
#include <vector>

namespace shardc::rt::cuda {

/// A box that is reduced over the operands, or copied if there is one: `height`
/// runs of `width` bytes, every `inPitch` bytes in each operand and every
/// `outPitch` in each result. All results get all of it. A result may be the
/// operands' own box, and overlaps no other.
struct BoxReduction {
  uint64_t width, height, inPitch, outPitch;
  std::vector<CUdeviceptr> operands, results;
};

/// The head of an entry; the addresses of the operands and of the results
/// follow. A *unit* is the bytes that a thread reads at once. The units of a
/// box are numbered row by row; thread i of the box has unit i and every
/// `blocks * threads` further, which is `rowStep` rows and `columnStep` units.
struct BoxEntry {
  uint64_t width; ///< Units of a row.
  uint64_t height;
  uint64_t inPitch, outPitch; ///< Bytes.
  uint64_t rowStep, columnStep;
  uint32_t firstBlock;
  uint32_t unitShift; ///< log2 of the bytes of a unit.
};
static_assert(sizeof(BoxEntry) == 56);

/// The most bytes of a unit.
inline constexpr uint64_t vectorBytes = 16;

struct BoxTable {
  std::vector<char> entries;
  std::vector<uint32_t> entryOfBlock;
};

/// The table of boxes that all have as many operands and results. Units of
/// reductions are elements of `elementBytes` or vectors of them; those of
/// copies, where it is 0, any power of two. Rows that vectors do not divide are
/// two entries. Blocks of `threads` threads have an equal part of the work:
/// about `maxBlocks` blocks if there is much, else a unit a thread.
BoxTable makeBoxTable(absl::Span<const BoxReduction> boxes,
                      uint64_t elementBytes, uint64_t threads,
                      uint64_t maxBlocks);

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_BOXTABLE_H
