//===- HostArray.h - Arrays in host memory ----------------------*- C++ -*-===//
//
// Thread-safety: arrays are values. Threads may share a constant one.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_HOSTARRAY_H
#define SHARDC_RT_HOSTARRAY_H

#include "shardc-rt/DType.h"

#include "absl/types/span.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace shardc::rt {

/// Product of `shape`; 1 for a scalar.
SHARDC_RT_API int64_t numElements(absl::Span<const int64_t> shape);

/// A shape as "f32[32,16]", for messages.
SHARDC_RT_API std::string describe(DType dtype,
                                   absl::Span<const int64_t> shape);

/// A borrowed, dense, row-major array. `data` has as many elements as `shape`
/// says; functions that take a view refuse null where there are elements.
struct ArrayView {
  DType dtype = DType::F32;
  absl::Span<const int64_t> shape;
  const void *data = nullptr;
};

/// An owned, dense, row-major array.
struct SHARDC_RT_API HostArray {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  HostArray() = default;
  /// Zeros.
  HostArray(DType dtype, std::vector<int64_t> shape);
  /// A copy of `view`, which has data.
  explicit HostArray(ArrayView view);

  ArrayView view() const { return {dtype, shape, data.data()}; }

  /// The elements as T, which must be as wide as `dtype`.
  template <typename T>
  absl::Span<T> values() {
    return {reinterpret_cast<T *>(data.data()), data.size() / sizeof(T)};
  }
  template <typename T>
  absl::Span<const T> values() const {
    return {reinterpret_cast<const T *>(data.data()), data.size() / sizeof(T)};
  }
};

/// Arrays by name.
using ArrayMap = std::map<std::string, HostArray>;

} // namespace shardc::rt

#endif // SHARDC_RT_HOSTARRAY_H
