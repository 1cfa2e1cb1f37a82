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

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardc::rt {

/// An array as read.
struct StoredArray {
  HostArray array;
  /// The type and order in the file if they differ from those of `array`, as
  /// "u8" or "big-endian f64 in Fortran order"; the values are the same.
  std::string storage;
};

/// The header of an .npy file: what its elements are and where they begin.
/// Immutable.
class NpyHeader {
public:
  /// Reads that of a file of `fileBytes`, of which `bytes` are the first: all
  /// of the header is expected to be in the first `largest`. InvalidArgument as
  /// `parseNpy`, without the file's name.
  [[nodiscard]] static absl::StatusOr<NpyHeader> parse(absl::string_view bytes,
                                                       uint64_t fileBytes);
  static constexpr uint64_t largest = uint64_t(1) << 16;

  /// Of the array as read.
  DType dtype() const { return type; }
  const std::vector<int64_t> &shape() const { return ownShape; }
  /// As of a StoredArray.
  std::string storage() const;
  /// Whether elements are stored in Fortran's order, not in that of C.
  bool isFortran() const { return fortran; }
  /// The place of the first element, in bytes, and the size of one.
  uint64_t begin() const { return ownBegin; }
  int elementBytes() const { return width; }

  /// Makes `count` elements that are stored at `data` those of `array`, whose
  /// type is `dtype`, from number `first` on. InvalidArgument: a u64 that i64
  /// cannot hold.
  [[nodiscard]] absl::Status decode(const char *data, int64_t count,
                                    HostArray &array, int64_t first) const;

private:
  std::string name; ///< Of the stored type: "f16", "u8".
  char kind = 0;    ///< Of it: f, i, u or b.
  int width = 0;    ///< Of it, in bytes.
  bool isBigEndian = false;
  bool fortran = false;
  DType type = DType::F32; ///< Holds all its values, but for those of u64.
  std::vector<int64_t> ownShape;
  uint64_t ownBegin = 0;

  absl::Status parseType(const std::string &descr);
  bool isSameInMemory() const;
  uint64_t loadBits(const char *data) const;
  absl::Status store(uint64_t bits, HostArray &array, int64_t i) const;
};

/// Parses the bytes of an .npy file; `what` names it in errors. f2, f4, f8, i1
/// to i8, u1 to u8 and b1 in either byte order, ordered as in C or Fortran; f16
/// becomes f32, smaller integers i32, u32 and u64 i64. InvalidArgument
/// otherwise, and for a u64 that i64 cannot hold.
[[nodiscard]] absl::StatusOr<StoredArray> parseNpy(absl::string_view bytes,
                                                   absl::string_view what);

/// The header of an .npy file of version 1.0. InvalidArgument for bf16, which
/// NumPy lacks.
[[nodiscard]] absl::StatusOr<std::string>
formatNpyHeader(DType dtype, absl::Span<const int64_t> shape);

/// The bytes of an .npy file of version 1.0. InvalidArgument for bf16, which
/// NumPy lacks.
[[nodiscard]] absl::StatusOr<std::string> formatNpy(ArrayView array);

/// The array of an .npy file.
[[nodiscard]] absl::StatusOr<StoredArray>
readNpy(const std::string &path, const std::function<void()> &onProgress = {});

/// The entries of an .npz archive, by name (without ".npy"): an array, or the
/// reason why it cannot be read. Those in `leftOut` are not read. `onProgress`
/// is called for each MiB, if there is one. NotFound or InvalidArgument if the
/// archive itself cannot be opened.
[[nodiscard]] absl::StatusOr<std::map<std::string, absl::StatusOr<StoredArray>>>
readNpzEntries(const std::string &path,
               const std::set<std::string> &leftOut = {},
               const std::function<void()> &onProgress = {});

/// All arrays of an .npz archive by name. As `readNpzEntries`, but every entry
/// must be an array.
[[nodiscard]] absl::StatusOr<ArrayMap>
readNpz(const std::string &path, const std::function<void()> &onProgress = {});

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_NPZ_H
