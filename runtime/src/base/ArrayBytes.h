//===- ArrayBytes.h - Whether arrays have the bytes of their shape *- C++ -*-=//

#ifndef SHARDC_RT_SRC_BASE_ARRAYBYTES_H
#define SHARDC_RT_SRC_BASE_ARRAYBYTES_H

#include "shardc-rt/HostArray.h"

#include "absl/status/statusor.h"

namespace shardc::rt {

/// The bytes of an array of this type and shape. InvalidArgument: a dimension
/// is negative, or so large that no memory has them.
[[nodiscard]] absl::StatusOr<int64_t> bytesOf(DType dtype,
                                              absl::Span<const int64_t> shape);

/// InvalidArgument: the data of the array `name` has `bytes`, which are not
/// those of its type and shape.
[[nodiscard]] absl::Status checkBytes(absl::string_view name, DType dtype,
                                      absl::Span<const int64_t> shape,
                                      uint64_t bytes);

/// The same of all of `arrays`.
[[nodiscard]] absl::Status checkBytes(const ArrayMap &arrays);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_ARRAYBYTES_H
