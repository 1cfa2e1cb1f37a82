//===- ShrinkSizes.h - The same program with smaller sizes ------*- C++ -*-===//
//
// The partitioner depends on a size only through its cuts: the groups of
// devices that divide a dimension, that exceed it, that leave devices without
// elements, or that cut where other groups do. The check of a program may
// therefore use the smallest sizes with equal cuts.
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
/// over global tensors, by the smallest that is cut alike, consistently. If the
/// mesh has more than 64 devices, its axes become smaller as well, with the
/// gaps of strided shardings that are products of them; otherwise gaps count as
/// axes. Sizes of reshapes that split or merge dimensions, and of constants
/// with different elements, stay, and so does the ratio of a batch to its
/// microbatches. Returns the changes. Emits an error and fails if no mesh of at
/// most 64 devices, or of a few more with room for all values, can represent a
/// larger one.
mlir::FailureOr<std::vector<ShrunkSize>> shrinkSizes(mlir::ModuleOp module);

} // namespace shardc

#endif // SHARDC_INTERPRETER_SHRINKSIZES_H
