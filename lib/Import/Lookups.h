//===- Lookups.h - Elements and rows by index -------------------*- C++ -*-===//
//
// The core has no op for indices that are values. Rows are looked up by
// products with one-hot rows, single elements by sums over the selected
// element, and written by the same masks.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_IMPORT_LOOKUPS_H
#define SHARDC_LIB_IMPORT_LOOKUPS_H

#include "Lowering.h"

namespace shardc {

/// `indices`, each at least 0 and less than `size`.
mlir::Value clampIndices(Lowering &lowering, mlir::Location loc,
                         mlir::Value indices, int64_t size);

/// Whether the number along dimension `dim` is that of `indices`: booleans of
/// `shape`, whose `dims` are those of `indices`.
mlir::Value buildOneHot(Lowering &lowering, mlir::Location loc,
                        mlir::Value indices, llvm::ArrayRef<int64_t> shape,
                        int64_t dim, llvm::ArrayRef<int64_t> dims);

/// The sum over dimension `dim` of the elements of `x` that `mask`, of its
/// shape, selects.
mlir::Value sumSelected(Lowering &lowering, mlir::Location loc,
                        mlir::Value mask, mlir::Value x, int64_t dim);

/// The elements of dimension `dim` of `table` with the numbers `indices`, which
/// are in range: the dimensions of `indices`, then the others of `table`.
mlir::Value takeRows(Lowering &lowering, mlir::Location loc, mlir::Value table,
                     mlir::Value indices, int64_t dim);

/// `x` with dimension `from` at the place `to`.
mlir::Value moveDim(Lowering &lowering, mlir::Location loc, mlir::Value x,
                    int64_t from, int64_t to);

/// Whether windows of `sizes` at `starts`, scalars, are windows of `x`.
bool isWindow(mlir::Value x, mlir::ValueRange starts,
              llvm::ArrayRef<int64_t> sizes);

/// The window of `sizes` of `x` at `starts`, which are clamped so that it lies
/// within.
mlir::Value takeWindow(Lowering &lowering, mlir::Location loc, mlir::Value x,
                       mlir::ValueRange starts, llvm::ArrayRef<int64_t> sizes);

/// `x` with the window at `starts`, clamped as in takeWindow, replaced by
/// `update`.
mlir::Value putWindow(Lowering &lowering, mlir::Location loc, mlir::Value x,
                      mlir::Value update, mlir::ValueRange starts);

/// Which operand elements the index vectors of a gather or scatter name.
struct IndexVectors {
  /// The dimensions of the operand that the entries of a vector index.
  llvm::SmallVector<int64_t> starts;
  /// The operand dimensions that pair with dimensions of the indices, and
  /// those.
  llvm::SmallVector<int64_t> batching, indexBatching;
  /// The dimension of the indices that holds the entries of a vector.
  int64_t vectorDim = 0;
};

/// Entry `entry` of the index vectors of `op`, its second operand: a tensor
/// with the other dimensions of the indices.
mlir::Value getIndexEntry(Lowering &lowering, mlir::Operation *op,
                          const IndexVectors &vectors, int64_t entry);

/// How many entries the index vectors of `op` have.
int64_t getNumIndexEntries(Lowering &lowering, mlir::Operation *op,
                           const IndexVectors &vectors);

/// If each row of `operand` has one index of its own, as in
/// jnp.take_along_axis(x, i[:, None], 1) and x[jnp.arange(n), i]: the dimension
/// that is indexed, and for each row its index.
struct RowIndices {
  int64_t dim;
  mlir::Value indices;
};
std::optional<RowIndices> matchRowIndices(Lowering &lowering,
                                          mlir::Operation *op,
                                          const IndexVectors &vectors);

/// If each row of `operand` has several indices, as in the gradient of
/// jnp.sort: the dimension that is indexed, the indices, their dimension that
/// numbers those of a row, and the number of elements that they choose from.
/// The others of their dimensions are those of the operand besides `dim`, in
/// their order.
struct RowLists {
  int64_t dim;
  mlir::Value indices;
  int64_t listDim;
  int64_t size;
  /// The shape of the indices with the elements of a row behind.
  llvm::SmallVector<int64_t> getPairs() const {
    llvm::SmallVector<int64_t> shape(getTensorShape(indices));
    shape.push_back(size);
    return shape;
  }
};
std::optional<RowLists> matchRowLists(Lowering &lowering, mlir::Operation *op,
                                      const IndexVectors &vectors);

/// If the index vectors have one entry, or several of the leading dimensions:
/// the operand with these dimensions in one, and the numbers in it.
struct FlatIndices {
  mlir::Value operand;
  mlir::Value indices;
  int64_t dim;
};
std::optional<FlatIndices> flattenIndices(Lowering &lowering,
                                          mlir::Operation *op,
                                          const IndexVectors &vectors,
                                          bool isClamped);

} // namespace shardc

#endif // SHARDC_LIB_IMPORT_LOOKUPS_H
