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

#include <string>

namespace shardc::rt {

/// Parses the bytes of an .npy file; `what` names it in errors. Little-endian,
/// C-ordered f4, f8, i4, i8, u1 (as i32), b1. InvalidArgument otherwise.
[[nodiscard]] absl::StatusOr<HostArray> parseNpy(absl::string_view bytes,
                                                 absl::string_view what);

/// The bytes of an .npy file of version 1.0. InvalidArgument for bf16, which
/// NumPy lacks.
[[nodiscard]] absl::StatusOr<std::string> formatNpy(ArrayView array);

/// All arrays of an .npz archive by name (without ".npy"). NotFound if it
/// cannot be opened; InvalidArgument names the entry that is damaged.
[[nodiscard]] absl::StatusOr<ArrayMap> readNpz(const std::string &path);

/// The array of an .npy file.
[[nodiscard]] absl::StatusOr<HostArray> readNpy(const std::string &path);

/// Writes an archive, replacing the file in one step.
[[nodiscard]] absl::Status writeNpz(const std::string &path,
                                    const ArrayMap &arrays);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_NPZ_H
