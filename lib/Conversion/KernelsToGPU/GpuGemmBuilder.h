//===- GpuGemmBuilder.h - A tile of a GEMM by a block -----------*- C++ -*-===//
//
// Each thread loads its rows of the left factor and its columns of the right
// one, four terms at a time and as vectors along whichever dimension lies side
// by side in memory: transposed factors are read as well as others. Loads of
// several such parts come before the products, so that they are in flight
// together. The sums of all slices of the contraction meet in shared memory;
// then each thread adds up and stores single elements, with the epilogue.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUGEMMBUILDER_H
#define SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUGEMMBUILDER_H

#include "GpuBlock.h"
#include "GpuNestPlan.h"

namespace shardc {

/// Builds the work of one thread of a block.
class GpuGemmBuilder {
public:
  GpuGemmBuilder(NestEmitter &emitter, GpuBlock &block, const GpuNestPlan &plan,
                 const ResultBuffers &buffers);

  /// Builds tile `unit`, the same in all threads of the block, which come here
  /// together.
  void buildTile(const Index &unit);

private:
  NestEmitter &emitter;
  LoopBuilder &loops;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  VectorMath &math;
  GpuBlock &block;
  const KernelNest &nest;
  const GpuGemmPlan &plan;
  const ResultBuffers &buffers;
  /// The type of sums.
  mlir::Type type;
  mlir::Value lhs, rhs;

  using Values = llvm::SmallVector<mlir::Value>;

  /// This thread's rows of the left factor, or columns of the right one.
  struct Side {
    mlir::Value tensor;
    GemmStrides strides;
    /// The element at which the matrix of the batch begins; null: the first.
    mlir::Value matrix;
    /// Places along the free dimension. Those beyond the last one are the last
    /// one once more; their products are dropped.
    Values places;
    /// Whether the places are neighbours in memory, at a multiple of a vector.
    bool areNeighbours = false;
  };
  Side getSide(mlir::Value tensor, const GemmStrides &strides,
               mlir::Value batch, mlir::Value first, int64_t count,
               int64_t size, bool isWhole);
  /// Terms from `k` on, for each place `terms` of them.
  Values load(const Side &side, mlir::Value k, int64_t terms);

  /// Terms of both factors, loaded.
  struct Part {
    Values rows, columns;
    int64_t terms;
    /// Whether they are this thread's to add; null: always.
    mlir::Value isThere;
  };
  Part loadPart(const Side &rows, const Side &columns, mlir::Value k,
                int64_t terms, mlir::Value isThere = nullptr);
  void addPart(const Part &part, Values &sums);
  /// The sums of this thread's slice, row by row.
  Values sumSlice(const Side &rows, const Side &columns, mlir::Value slice);

  /// The address of sum `place` of slice `slice` of the tile.
  mlir::Value getSumAddress(mlir::Value slice, mlir::Value place);
  void shareSums(llvm::ArrayRef<mlir::Value> sums, mlir::Value slice,
                 mlir::Value thread);
  /// The element at `place` of the tile, its slices added in pairs.
  mlir::Value addSlices(mlir::Value place);
  void storeTile(const Index &batch, mlir::Value firstRow,
                 mlir::Value firstColumn);
};

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUGEMMBUILDER_H
