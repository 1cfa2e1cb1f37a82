//===- ArrayBytes.cpp - Whether arrays have the bytes of their shape ------===//

#include "base/ArrayBytes.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

absl::StatusOr<int64_t> shardc::rt::bytesOf(DType dtype,
                                            absl::Span<const int64_t> shape) {
  int64_t bytes = byteSize(dtype);
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
      return absl::InvalidArgumentError(
          absl::StrCat("has a dimension of size ", size));
  return bytes;
}

absl::Status shardc::rt::checkBytes(absl::string_view name, DType dtype,
                                    absl::Span<const int64_t> shape,
                                    uint64_t bytes) {
  absl::StatusOr<int64_t> expected = bytesOf(dtype, shape);
  if (!expected.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("array \"", name, "\" ", expected.status().message()));
  if (static_cast<uint64_t>(*expected) != bytes)
    return absl::InvalidArgumentError(
        absl::StrCat("array \"", name, "\" has ", bytes, " bytes, but ",
                     describe(dtype, shape), " takes ", *expected));
  return absl::OkStatus();
}

absl::Status shardc::rt::checkBytes(const ArrayMap &arrays) {
  for (const auto &[name, array] : arrays)
    if (absl::Status status =
            checkBytes(name, array.dtype, array.shape, array.data.size());
        !status.ok())
      return status;
  return absl::OkStatus();
}
