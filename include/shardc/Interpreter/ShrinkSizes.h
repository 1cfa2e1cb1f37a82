//===- ShrinkSizes.h - The same program, small ------------------*- C++ -*-===//
//
// The partitioner depends on a size only through its cuts: which groups of
// devices divide a dimension, are more than its elements, leave some devices
// without any, or cut it where other groups do. So a program may be checked
// with small sizes instead.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_SHRINKSIZES_H
#define SHARDC_INTERPRETER_SHRINKSIZES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace shardc {

/// A size, of a dimension or of a mesh axis, and its replacement.
struct ShrunkSize {
  /// The axis; empty for dimensions.
  std::string axis;
  int64_t from, to;
};

/// Whether a dimension of `size` over a mesh of `axes` (sizes above 1) is cut
/// in the same way as one of `otherSize` over `otherAxes`: for every two
/// disjoint groups of axes S and T, in either order, of p and q devices, the
/// same of these hold: p divides the size; p is greater; some of p devices have
/// no element; the shards over S then T end where those over S do.
bool isCutAlike(int64_t size, llvm::ArrayRef<int64_t> axes, int64_t otherSize,
                llvm::ArrayRef<int64_t> otherAxes);

/// Replaces every size of a dimension in the functions of `module`, which are
/// over global tensors, by the smallest that is cut alike, the same everywhere;
/// if the mesh has more than 64 devices its axes become smaller as well, and
/// gaps of strided shards with the axes that they are products of. Sizes of
/// reshapes that split or merge dimensions, and of constants with different
/// elements, stay. The ratio of a batch to its microbatches stays. If the mesh
/// stays, gaps count as axes. Returns the changes. Emits an error and fails if
/// no mesh of at most 64 devices can represent a larger one, nor one of a few
/// more devices with room for all values.
mlir::FailureOr<std::vector<ShrunkSize>> shrinkSizes(mlir::ModuleOp module);

} // namespace shardc

#endif // SHARDC_INTERPRETER_SHRINKSIZES_H
