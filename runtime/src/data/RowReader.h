//===- RowReader.h - Arrays that stay in their files ------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_DATA_ROWREADER_H
#define SHARDC_RT_SRC_DATA_ROWREADER_H

#include "base/ReadableFile.h"
#include "data/FitRows.h"
#include "data/Npz.h"

#include "absl/status/statusor.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardc::rt {

/// An array in an .npy file, or in a stored member of an .npz archive, of which
/// any rows can be read. Threads may share a constant one.
class RowReader {
public:
  /// Of the array whose .npy file is the `bytes` of `file` from `begin` on.
  /// InvalidArgument: it cannot be read, or is a scalar. FailedPrecondition:
  /// its rows are not contiguous, so it can only be read whole.
  [[nodiscard]] static absl::StatusOr<RowReader>
  create(std::shared_ptr<const ReadableFile> file, uint64_t begin,
         uint64_t bytes);

  /// Of the array as read.
  DType dtype() const { return fit ? fit->dtype() : header.dtype(); }
  const std::vector<int64_t> &shape() const { return ownShape; }
  /// As of a StoredArray.
  std::string storage() const { return header.storage(); }

  /// The same rows converted, as `shape` (of as many elements a row).
  RowReader fitted(RowFit newFit, std::vector<int64_t> shape) const;

  /// Reads rows [first, first + count) into rows of `out`, which is of type
  /// `dtype`, from `toRow` on. Reads no other rows. InvalidArgument names a row
  /// that does not fit; otherwise the errors of reading the file.
  [[nodiscard]] absl::Status read(int64_t first, int64_t count, HostArray &out,
                                  int64_t toRow) const;

  /// All rows.
  [[nodiscard]] absl::StatusOr<HostArray> readAll() const;

private:
  RowReader(std::shared_ptr<const ReadableFile> file, uint64_t begin,
            NpyHeader header)
      : file(std::move(file)), begin(begin), header(std::move(header)),
        ownShape(this->header.shape()) {}

  std::shared_ptr<const ReadableFile> file;
  uint64_t begin; ///< Of the first element, in bytes.
  NpyHeader header;
  std::vector<int64_t> ownShape;
  std::optional<RowFit> fit; ///< Empty: elements are taken as they are.
};

/// The arrays of an .npz archive of which rows can be read, by name.
[[nodiscard]] absl::StatusOr<std::map<std::string, RowReader>>
findRows(const std::string &path);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_ROWREADER_H
