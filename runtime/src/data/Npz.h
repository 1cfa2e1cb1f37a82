//===- Npz.h - NumPy's array files ------------------------------*- C++ -*-===//
//
// .npy (NumPy Enhancement Proposal 1, format versions 1 to 3) and .npz, a zip
// archive of them. Files are not trusted: every header field is checked.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_DATA_NPZ_H
#define SHARDC_RT_SRC_DATA_NPZ_H

#include "shardc-rt/HostArray.h"

#include "absl/status/statusor.h"

#include <map>
#include <string>

namespace shardc::rt {

/// An array as read.
struct StoredArray {
  HostArray array;
  /// The type and order in the file if they differ from those of `array`, as
  /// "u8" or "big-endian f64 in Fortran order"; the values are the same.
  std::string storage;
};

/// Parses the bytes of an .npy file; `what` names it in errors. f2, f4, f8, i1
/// to i8, u1 to u8 and b1 in either byte order, ordered as in C or Fortran; f16
/// becomes f32, smaller integers i32, u32 and u64 i64. InvalidArgument
/// otherwise, and for a u64 that i64 cannot hold.
[[nodiscard]] absl::StatusOr<StoredArray> parseNpy(absl::string_view bytes,
                                                   absl::string_view what);

/// The bytes of an .npy file of version 1.0. InvalidArgument for bf16, which
/// NumPy lacks.
[[nodiscard]] absl::StatusOr<std::string> formatNpy(ArrayView array);

/// The array of an .npy file.
[[nodiscard]] absl::StatusOr<StoredArray> readNpy(const std::string &path);

/// The entries of an .npz archive, by name (without ".npy"): an array, or the
/// reason why it cannot be read. NotFound or InvalidArgument if the archive
/// itself cannot be opened.
[[nodiscard]] absl::StatusOr<std::map<std::string, absl::StatusOr<StoredArray>>>
readNpzEntries(const std::string &path);

/// All arrays of an .npz archive by name. As `readNpzEntries`, but every entry
/// must be an array.
[[nodiscard]] absl::StatusOr<ArrayMap> readNpz(const std::string &path);

/// Writes an archive, replacing the file in one step.
[[nodiscard]] absl::Status writeNpz(const std::string &path,
                                    const ArrayMap &arrays);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_NPZ_H
