//===- GpuGemmPlan.h - How a block divides a tile of a GEMM -----*- C++ -*-===//
//
// A block of threads computes a tile of the result. Each thread has a few rows
// and columns of it and a slice of the contraction; the slices are added up in
// shared memory:
//
//   tile            threadsDown·threadRows × threadsAcross·threadColumns
//   threads         threadsDown · threadsAcross · slices = gemmThreads
//
// All follows from the sizes alone, and with it the order of additions. Pure
// functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUGEMMPLAN_H
#define SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUGEMMPLAN_H

#include "shardc/Analysis/GemmView.h"

namespace shardc {

/// Threads of a block that computes tiles.
constexpr int64_t gemmThreads = 256;

struct GpuGemmPlan {
  GemmView view;
  /// Elements that a thread has, at most four by four.
  int64_t threadRows = 1, threadColumns = 1;
  /// Threads side by side in a tile; threads into which the contraction is cut.
  /// All are powers of two.
  int64_t threadsDown = 1, threadsAcross = 1, slices = 1;

  int64_t getTileRows() const { return threadsDown * threadRows; }
  int64_t getTileColumns() const { return threadsAcross * threadColumns; }
  int64_t getTilesDown() const;
  int64_t getTilesAcross() const;
};

GpuGemmPlan planGpuGemm(const GemmView &view);

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUGEMMPLAN_H
