//===- RowReader.h - Arrays that stay in their files ------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_DATA_ROWREADER_H
#define SHARDC_RT_SRC_DATA_ROWREADER_H

#include "data/FitRows.h"
#include "data/StoredElements.h"

#include <optional>
#include <string>
#include <vector>

namespace shardc::rt {

/// The rows of an array that stays in its file. Threads may share a constant
/// one.
class RowReader {
public:
  /// `elements` are those of no scalar.
  explicit RowReader(StoredElements elements)
      : elements(std::move(elements)),
        ownShape(this->elements.header().shape()) {}

  /// Of the array as read.
  DType dtype() const { return fit ? fit->dtype() : elements.header().dtype(); }
  const std::vector<int64_t> &shape() const { return ownShape; }
  /// As of a StoredArray.
  std::string storage() const { return elements.header().storage(); }

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
  StoredElements elements;
  std::vector<int64_t> ownShape;
  std::optional<RowFit> fit; ///< Empty: elements are taken as they are.
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_ROWREADER_H
