//===- Errors.h - Errors and structures of the C API ------------*- C++ -*-===//
//
// Functions of the C API run inside of `guard`, so that no exception leaves
// them. Thread-safety: the functions are pure.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_CAPI_ERRORS_H
#define SHARDC_RT_SRC_CAPI_ERRORS_H

#include "shardc-rt/Errors.h"
#include "shardc-rt/c.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

namespace shardc::rt::capi {

/// Null for OK. Does not throw.
shardc_error *toError(const absl::Status &status) noexcept;
shardc_error *outOfMemory() noexcept;

/// Runs `function`, which returns a status, and turns exceptions into errors.
template <typename Function>
shardc_error *guard(Function function) noexcept {
  try {
    return toError(function());
  } catch (const std::bad_alloc &) {
    return outOfMemory();
  } catch (const std::exception &exception) {
    return toError(absl::InternalError(exception.what()));
  } catch (...) {
    return toError(absl::InternalError("an unknown exception"));
  }
}

/// The error for an argument that is null.
absl::Status isNull(const char *name);
/// The error for a structure of `size` bytes, where `known` are expected.
absl::Status isOfSize(size_t size, size_t known);
/// The error for a number of something, of which there are `size`.
absl::Status isNoNumber(const char *what, size_t number, size_t size);

/// Copies as much of `value` to `out` as the caller's version of the structure
/// has. All structures are of the first version yet.
template <typename T>
absl::Status give(T value, T *out, const char *name) {
  if (!out)
    return isNull(name);
  size_t size = out->struct_size;
  if (size < sizeof(T))
    return isOfSize(size, sizeof(T));
  value.struct_size = size;
  std::memset(out, 0, size);
  std::memcpy(out, &value, sizeof(T));
  return absl::OkStatus();
}

/// Reads the caller's version of a structure; null stands for zeros.
template <typename T>
absl::StatusOr<T> take(const T *in) {
  T value = {};
  if (!in)
    return value;
  size_t size = in->struct_size;
  if (size < sizeof(T))
    return isOfSize(size, sizeof(T));
  auto *bytes = reinterpret_cast<const unsigned char *>(in);
  if (std::any_of(bytes + sizeof(T), bytes + size,
                  [](unsigned char byte) { return byte != 0; }))
    return isOfSize(size, sizeof(T));
  std::memcpy(&value, in, sizeof(T));
  return value;
}

} // namespace shardc::rt::capi

#endif // SHARDC_RT_SRC_CAPI_ERRORS_H
