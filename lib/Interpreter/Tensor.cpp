//===- Tensor.cpp - The values of the reference interpreter ---------------===//

#include "shardc/Interpreter/Tensor.h"

#include <algorithm>

using namespace shardc;

Tensor::Tensor(llvm::ArrayRef<int64_t> shape, double value)
    : shape(shape.begin(), shape.end()) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  data.assign(count, value);
}

Tensor shardc::takeRows(const Tensor &tensor, llvm::ArrayRef<int64_t> rows) {
  llvm::SmallVector<int64_t, 3> shape = tensor.shape;
  shape[0] = rows.size();
  Tensor result(shape, 0);
  int64_t size = getStrides(tensor.shape)[0];
  for (size_t row = 0; row < rows.size(); ++row)
    std::copy_n(tensor.data.begin() + rows[row] * size, size,
                result.data.begin() + row * size);
  return result;
}

llvm::SmallVector<int64_t, 3>
shardc::getStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 3> strides(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  return strides;
}

llvm::SmallVector<int64_t, 3> shardc::getPlace(int64_t linear,
                                               llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 3> place(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    place[dim] = linear % shape[dim];
    linear /= shape[dim];
  }
  return place;
}
