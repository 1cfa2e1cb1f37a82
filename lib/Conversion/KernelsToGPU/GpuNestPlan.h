//===- GpuNestPlan.h - How a grid shares a nest -----------------*- C++ -*-===//
//
// Maps the work of a nest to threads by shapes alone: equal kernels have equal
// grids and add up in equal order on every GPU. Pure functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUNESTPLAN_H
#define SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUNESTPLAN_H

#include "GpuGemmPlan.h"

#include "shardc/Conversion/KernelEmitter/NestShape.h"

namespace shardc {

/// Lanes of a vector: four floats are the 128 bits that one access moves.
constexpr int64_t gpuLanes = 4;

/// Threads of a warp.
constexpr int64_t warpSize = 32;

/// Columns that a block reduces side by side at most: 128 bytes of floats, the
/// unit of memory traffic.
constexpr int64_t mostColumnsPerBlock = 32;

/// A nest with its place in the grid.
struct GpuNestPlan {
  KernelNest nest;
  /// Elements are at linear places of all tensors alike.
  bool isFlat = false;
  /// Lanes of the vectors that a thread computes; 1: single elements.
  int64_t lanes = 1;
  /// The units that are distributed, in order. Map: vectors, one per thread.
  /// Rows: rows, one per group of threads. Columns: blocks of columns, one
  /// per block of threads. Gemm: tiles, one per block of threads.
  int64_t units = 1;
  /// Vectors of a row (Rows), or rows (Columns), which the threads of a unit
  /// share.
  int64_t steps = 1;
  /// Columns of a unit: a power of two (Columns).
  int64_t columns = 1;
  /// Threads that reduce a row together (Rows): a power of two up to a warp, or
  /// a whole block.
  int64_t groupThreads = 1;
  /// Whether threads keep their values of a row between passes (Rows).
  bool keepsRows = false;
  /// Tiles (Gemm).
  GpuGemmPlan gemm;
  /// Blocks of the grid that are this nest's; they stride over the units.
  int64_t blocks = 1;
};

/// The nests of a kernel with the grid that runs them, the blocks of the first
/// nest first.
struct GpuKernelPlan {
  std::vector<GpuNestPlan> nests;
  int64_t blocks = 0;
  /// Threads per block, in one dimension: a multiple of `warpSize`.
  int64_t threads = 0;
};

GpuKernelPlan planGpuKernel(KernelOp kernel);

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUNESTPLAN_H
