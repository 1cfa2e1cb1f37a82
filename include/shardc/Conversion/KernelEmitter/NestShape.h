//===- NestShape.h - The shape of a nest ------------------------*- C++ -*-===//
//
// Queries that both targets share: whether the elements of a nest lie at linear
// places, whether they can be computed on lanes, and which of its dimensions
// are reduced. Pure functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_NESTSHAPE_H
#define SHARDC_CONVERSION_KERNELEMITTER_NESTSHAPE_H

#include "shardc/Conversion/KernelEmitter/NestEmitter.h"

#include "shardc/Analysis/KernelNest.h"

namespace shardc {

/// Where the results of a nest go: all buffers of each value.
using ResultBuffers =
    llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>>;

int64_t getNumElements(llvm::ArrayRef<int64_t> shape);

/// The last dimension longer than 1, or -1.
int64_t getLastLongDim(llvm::ArrayRef<int64_t> shape);

/// Whether elements of the nest are at linear places of all tensors alike: a
/// Map, or Rows that reduce everything.
bool isFlatNest(const KernelNest &nest);

/// Whether some value of the nest cannot be computed on lanes.
bool isScalarNest(const KernelNest &nest);

/// The sizes of the dimensions that are kept and of those that are reduced.
struct SplitShape {
  llvm::SmallVector<int64_t> kept, reduced;
};
SplitShape splitShape(const KernelNest &nest);

/// The place in the full shape of `outer`, a place in the kept dimensions, and
/// `inner`, one in the reduced dimensions.
IndexList joinIndex(const KernelNest &nest, llvm::ArrayRef<Index> outer,
                    llvm::ArrayRef<Index> inner);

/// The place in the result of `dot` of row `row` and column `column` of matrix
/// `batch`, the numbers of a GemmView.
IndexList getGemmIndex(LoopBuilder &loops, DotGeneralOp dot, const Index &batch,
                       const Index &row, const Index &column);

/// One pass of a nest over its reduced dimensions.
struct NestPass {
  llvm::ArrayRef<ReduceOp> reductions;
  /// Whether the full results are known, and stored, in this pass.
  bool stores = false;
};

/// The passes of a nest, in order: as few as its reductions and full results
/// allow. Borrows from `nest`.
llvm::SmallVector<NestPass> getPasses(const KernelNest &nest);

/// Stores the nest's full results at `index`; all are computed before the first
/// is stored, since a store may replace what another one reads.
void storeFullResults(NestEmitter &emitter, const KernelNest &nest,
                      const ResultBuffers &buffers,
                      llvm::ArrayRef<Index> index);
/// The same for the results without the reduced dimensions.
void storeOuterResults(NestEmitter &emitter, const KernelNest &nest,
                       const ResultBuffers &buffers,
                       llvm::ArrayRef<Index> index);

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_NESTSHAPE_H
