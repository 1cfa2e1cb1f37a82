//===- NestPlan.h - Vectorisation and division of a nest --------*- C++ -*-===//
//
// How a nest is computed on a CPU: the lanes of its vectors, and the units of
// work that it is divided into. Pure functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOCPU_NESTPLAN_H
#define SHARDC_LIB_CONVERSION_KERNELSTOCPU_NESTPLAN_H

#include "shardc/Conversion/KernelEmitter/NestShape.h"

#include "shardc/Analysis/GemmView.h"

namespace shardc {

/// Lanes of a vector that every CPU of the plan has: eight floats fill a
/// register of AVX2. The order of additions and the division into units follow
/// from them on every CPU, so that all compute the same bits.
constexpr int64_t baseLanes = 8;

/// Columns that are one unit: of a reduction over rows, and of a GEMM whose
/// operands are swapped.
constexpr int64_t columnBlock = 4 * baseLanes;

/// Rows whose pairs of columns fill one vector.
constexpr int64_t rowsOfPairs = baseLanes / 2;

/// Chains of additions for each element in a register tile of so many rows,
/// added up at the end: as many as hide the latency of multiply-add, and the
/// same on every CPU.
int64_t getGemmChains(const GemmView &gemm, int64_t rows);

/// A nest with its division into work.
struct NestPlan {
  KernelNest nest;
  /// Elements are at linear places of all tensors alike.
  bool isFlat = false;
  /// Some value cannot be computed on lanes.
  bool isScalar = false;
  /// The view of a Gemm; its operands swapped if `isSwapped`, so that the lanes
  /// run over the rows of the result.
  GemmView gemm;
  bool isSwapped = false;
  /// Lanes run over the contraction.
  bool isInnerProduct = false;
  /// Lanes run over pairs of columns of `rowsOfPairs` rows.
  bool hasPairs = false;
  /// Devices whose GEMMs the function computes, and adds up, or computes side
  /// by side.
  int64_t devices = 1;
  /// If not 0, the columns of the devices' results, which have one left factor,
  /// lie side by side in vectors, those of each in so many lanes.
  int64_t deviceLanes = 0;
  /// Lanes of its vectors.
  int64_t numLanes = baseLanes;
  /// Rows of a register tile, and of a unit (Gemm).
  int64_t tileRows = 1, unitRows = 1;
  /// Chains of each element in whole tiles.
  int64_t chains = 1;
  /// Rows at the end whose elements have the chains of a tile of so many rows.
  int64_t lastRows = 0;
  /// Independent units, and how many of them make one iteration of the kernel.
  int64_t units = 1;
  int64_t unitsPerIteration = 1;

  int64_t getExtent() const {
    return (units + unitsPerIteration - 1) / unitsPerIteration;
  }
};

/// Plans a nest: how it is vectorised, with at most so many lanes, and divided.
/// Another function of the same iterations may compute the GEMMs of
/// `groupDevices`.
NestPlan planNest(KernelNest nest, int64_t mostLanes, int64_t groupDevices);

/// Lets the function of a Gemm compute those of `devices` devices, which have
/// one left factor, in the same iterations. Elements have the same chains.
/// Vectors are of the base target: of wider ones, what is behind the GEMM would
/// take a part for each device, by shuffles that cost more than they save.
void planSideBySide(NestPlan &plan, int64_t devices);

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOCPU_NESTPLAN_H
