//===- GemmView.h - dot_general as a strided GEMM ---------------*- C++ -*-===//
//
// Views a dot_general over row-major buffers as a batch of GEMMs of strided
// matrices. Code generation and the choice of library GEMMs share the view and
// the one threshold between the two. Pure functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_GEMMVIEW_H
#define SHARDC_ANALYSIS_GEMMVIEW_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include <optional>

namespace shardc {

/// A stride in elements per batch, row (m), column (n) and contraction (k).
struct GemmStrides {
  int64_t batch = 0;
  /// Of the free dimension: m for the left operand, n for the right one.
  int64_t free = 0;
  int64_t contracted = 0;
};

/// result[b, m, n] = Σ_k lhs[b, m, k] · rhs[b, k, n].
struct GemmView {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  GemmStrides lhs, rhs;
  /// Whether the factors and the result are of f32.
  bool isF32 = false;
};

/// The view of `dot`, or nullopt where its dimensions do not collapse to one
/// stride each.
std::optional<GemmView> getGemmView(DotGeneralOp dot);

/// The blocks into which a sum over `rows` rows of tensors with so many columns
/// together is cut on CPUs, where the sum has `elementsOfSum` elements: of 128
/// rows, else of fewer down to 64, else of more up to 256, whose number divides
/// `rows`. There are four blocks at least, and their sums have a quarter of the
/// elements of the rows at most; else as many, if that is 256 KiB or less. 1:
/// it is not cut, since nothing does.
int64_t getBlocksOfRows(int64_t rows, int64_t columns, int64_t elementsOfSum);

/// Whether the GEMM is large enough for a library call: the threshold between
/// generated code and the runtime's packed GEMMs, or a GPU's library. An
/// estimate: packing and a separate epilogue cost about as much as generated
/// code loses on a million multiply-adds. On CPUs generated code keeps, of
/// matrices that are no batch and at any size, a right factor of at most 192
/// rows and columns (32 if not all is f32) and at least as many rows beside it,
/// whose terms lie side by side; and, of f32, sums over rows that
/// `shardc-split-sums` cuts into blocks (at least twice as many rows as other
/// sides, and those at most 128); and, of f32, up to four million multiply-adds
/// where no side is below 64 and a factor or the result has at most 16384
/// elements. It keeps results of at most four columns as well, and of as many
/// rows, but for rows of a batch on CPUs.
bool isLargeGemm(const GemmView &view, bool isForCPU);

} // namespace shardc

#endif // SHARDC_ANALYSIS_GEMMVIEW_H
