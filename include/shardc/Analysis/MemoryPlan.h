//===- MemoryPlan.h - Offsets for buffers with lifetimes --------*- C++ -*-===//
//
// Packs buffers that live over ranges of steps into one arena, without IR. The
// method is greedy by size with best fit (Pisarchyk and Lee, arXiv 2001.03288).
// Buffers that must lie side by side are placed as one body, each keeping its
// own life. Deterministic: the result depends on sizes, ranges and their order
// alone. A value class; not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_MEMORYPLAN_H
#define SHARDC_ANALYSIS_MEMORYPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace shardc {

/// Every buffer starts at a multiple of this many bytes.
constexpr int64_t bufferAlignment = 64;

/// `bytes` rounded up to the alignment.
inline int64_t alignBytes(int64_t bytes) {
  return (bytes + bufferAlignment - 1) / bufferAlignment * bufferAlignment;
}

class OccupiedBytes;

/// Places buffers so that those alive at a common step do not overlap.
class MemoryPlan {
public:
  /// Offsets start at `base`, a multiple of the alignment.
  explicit MemoryPlan(int64_t base = 0) : base(base), end(base) {}

  /// Adds a buffer of `bytes`, alive at the steps [first, last]; returns its
  /// number.
  unsigned addBuffer(int64_t bytes, int64_t first, int64_t last);

  /// Makes every buffer of `run` start where the one before it ends, up to the
  /// alignment. A buffer is in one run at most.
  void addRun(llvm::ArrayRef<unsigned> run);

  /// Decides all offsets.
  void place();

  /// Offset of a buffer, after `place`.
  int64_t getOffset(unsigned buffer) const { return buffers[buffer].offset; }
  /// The first byte beyond all buffers, and `base` if there are none.
  int64_t getEnd() const { return end; }
  /// The most bytes alive at any step: no plan can end before base plus this.
  int64_t getLowerBound() const;

private:
  struct Buffer {
    int64_t bytes;
    int64_t first, last;
    int64_t offset = 0;
    bool isInRun = false;
  };
  using Run = llvm::SmallVector<unsigned, 1>;

  int64_t getBytes(const Run &run) const;
  int64_t findOffset(const Run &run, const OccupiedBytes &occupied) const;

  int64_t base, end;
  llvm::SmallVector<Buffer> buffers;
  llvm::SmallVector<Run> runs;
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_MEMORYPLAN_H
