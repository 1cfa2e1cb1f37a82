//===- GpuGemmPlan.cpp - How a block divides a tile of a GEMM -------------===//

#include "GpuGemmPlan.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace shardc {

/// Rows and columns of a thread at most: one access moves four floats, and 16
/// sums of products need eight accesses for four terms each.
static constexpr int64_t mostSide = 4;

/// Terms that a thread reads at a time.
static constexpr int64_t termsAtOnce = 4;

/// Slices at most. The elements of a tile are as many times fewer than those of
/// its threads, and each is a sum of so many.
static constexpr int64_t mostSlices = 32;

/// Threads that a GEMM should have: the contraction is cut into more slices
/// below the first number, and threads have fewer rows below the second. The
/// latency of memory is long beside the work of a few terms, and a GPU has more
/// than a hundred multiprocessors.
static constexpr int64_t enoughThreads = 128 * gemmThreads;
static constexpr int64_t fewThreads = 64 * gemmThreads;

int64_t GpuGemmPlan::getTilesDown() const {
  return llvm::divideCeil(view.m, getTileRows());
}

int64_t GpuGemmPlan::getTilesAcross() const {
  return llvm::divideCeil(view.n, getTileColumns());
}

static int64_t ceilPowerOfTwo(int64_t number) {
  return llvm::bit_ceil(uint64_t(number));
}

GpuGemmPlan planGpuGemm(const GemmView &view) {
  GpuGemmPlan plan;
  plan.view = view;
  plan.threadRows = std::min(mostSide, ceilPowerOfTwo(view.m));
  plan.threadColumns = std::min(mostSide, ceilPowerOfTwo(view.n));
  auto getThreads = [&] {
    return view.batch * llvm::divideCeil(view.m, plan.threadRows) *
           llvm::divideCeil(view.n, plan.threadColumns) * plan.slices;
  };
  const int64_t mostUsedSlices = std::min(
      mostSlices, ceilPowerOfTwo(llvm::divideCeil(view.k, termsAtOnce)));
  while (plan.slices < mostUsedSlices && getThreads() < enoughThreads)
    plan.slices *= 2;
  while (plan.threadRows > 1 && getThreads() < fewThreads)
    plan.threadRows /= 2;
  // Tiles that are about square read least. Threads that a small result leaves
  // over are beyond its columns.
  while (plan.slices * plan.threadsDown * plan.threadsAcross < gemmThreads) {
    const bool isWide = plan.getTileColumns() > plan.getTileRows();
    const bool hasRows = plan.getTileRows() < view.m;
    const bool hasColumns = plan.getTileColumns() < view.n;
    if (hasRows && (isWide || !hasColumns))
      plan.threadsDown *= 2;
    else
      plan.threadsAcross *= 2;
  }
  return plan;
}

} // namespace shardc
