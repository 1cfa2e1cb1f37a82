//===- StoredElements.h - Elements that are read from their file -*- C++
//-*-===//

#ifndef SHARDC_RT_SRC_DATA_STOREDELEMENTS_H
#define SHARDC_RT_SRC_DATA_STOREDELEMENTS_H

#include "base/ReadableFile.h"
#include "data/Npz.h"
#include "data/ZipMembers.h"

#include "absl/status/statusor.h"

#include <map>
#include <memory>
#include <string>

namespace shardc::rt {

/// An array in the order of C in an .npy file, or in a stored member of an .npz
/// archive, of which any elements can be read. Threads may share a constant
/// one.
class StoredElements {
public:
  /// Of the array whose .npy file is the `bytes` of `file` from `begin` on.
  /// InvalidArgument: it cannot be read. FailedPrecondition: it is in the order
  /// of Fortran.
  [[nodiscard]] static absl::StatusOr<StoredElements>
  create(std::shared_ptr<const ReadableFile> file, uint64_t begin,
         uint64_t bytes);

  const NpyHeader &header() const { return ownHeader; }
  const std::string &path() const { return file->path(); }

  /// Reads elements [first, first + count) into those of `out`, which is of the
  /// header's `dtype`, from `to` on. Reads no other elements.
  [[nodiscard]] absl::Status read(int64_t first, int64_t count, HostArray &out,
                                  int64_t to) const;

private:
  StoredElements(std::shared_ptr<const ReadableFile> file, uint64_t begin,
                 NpyHeader header)
      : file(std::move(file)), begin(begin), ownHeader(std::move(header)) {}

  std::shared_ptr<const ReadableFile> file;
  uint64_t begin; ///< Of the first element, in bytes.
  NpyHeader ownHeader;
};

/// Those of an .npz archive, by name (without ".npy"), and where they lie;
/// those that can only be read whole are left out.
struct StoredArrays {
  std::shared_ptr<const ReadableFile> file;
  std::map<std::string, StoredElements> arrays;
  std::map<std::string, StoredMember> members;
};
[[nodiscard]] absl::StatusOr<StoredArrays>
findStoredArrays(const std::string &path);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_STOREDELEMENTS_H
