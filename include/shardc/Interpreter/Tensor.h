//===- Tensor.h - The values of the reference interpreter -------*- C++ -*-===//
//
// Elements of every type are doubles: integers are exact up to 2^53, their sums
// do not depend on the order, and conversions to narrower floats do not round.
// Truth values are 0 and 1. Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_TENSOR_H
#define SHARDC_INTERPRETER_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace shardc {

/// A dense tensor, row-major.
struct Tensor {
  llvm::SmallVector<int64_t, 3> shape;
  std::vector<double> data;

  Tensor() = default;
  /// All elements `value`.
  Tensor(llvm::ArrayRef<int64_t> shape, double value);

  int64_t getNumElements() const { return static_cast<int64_t>(data.size()); }
};

/// The given indices of dimension 0 of `tensor`, in their order.
Tensor takeRows(const Tensor &tensor, llvm::ArrayRef<int64_t> rows);

/// Elements between neighbours along each dimension of a row-major `shape`.
llvm::SmallVector<int64_t, 3> getStrides(llvm::ArrayRef<int64_t> shape);

/// The coordinates of element `linear` of a row-major `shape`.
llvm::SmallVector<int64_t, 3> getPlace(int64_t linear,
                                       llvm::ArrayRef<int64_t> shape);

/// Calls `visit(place, linear, offset)` on every element of `shape` in
/// row-major order, where `offset` is the sum of coordinates times `strides`
/// (one per dimension).
template <typename Visit>
void forEachPlace(llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<int64_t> strides, Visit visit) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  llvm::SmallVector<int64_t, 3> place(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t linear = 0; linear < count; ++linear) {
    visit(llvm::ArrayRef<int64_t>(place), linear, offset);
    for (size_t dim = shape.size(); dim-- > 0;) {
      offset += strides[dim];
      if (++place[dim] < shape[dim])
        break;
      offset -= shape[dim] * strides[dim];
      place[dim] = 0;
    }
  }
}

} // namespace shardc

#endif // SHARDC_INTERPRETER_TENSOR_H
