//===- RowReader.cpp - Arrays that stay in their files --------------------===//

#include "data/RowReader.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

RowReader RowReader::fitted(RowFit newFit, std::vector<int64_t> shape) const {
  RowReader reader = *this;
  reader.fit = std::move(newFit);
  reader.ownShape = std::move(shape);
  return reader;
}

absl::Status RowReader::read(int64_t first, int64_t count, HostArray &out,
                             int64_t toRow) const {
  std::vector<int64_t> shape = ownShape;
  shape[0] = count;
  const int64_t size = numElements(shape);
  if (size == 0)
    return absl::OkStatus();
  const int64_t rowSize = size / count;
  if (!fit)
    return elements.read(first * rowSize, size, out, toRow * rowSize);
  HostArray stored(elements.header().dtype(), shape);
  absl::Status status = elements.read(first * rowSize, size, stored, 0);
  if (absl::IsInvalidArgument(status))
    return absl::InvalidArgumentError(absl::StrCat(
        elements.path(), ": counted from row ", first, ", ", status.message()));
  if (!status.ok())
    return status;
  bool isRounded = false;
  return fit->convert(stored, 0, count, first, out, toRow, isRounded);
}

absl::StatusOr<HostArray> RowReader::readAll() const {
  HostArray array(dtype(), ownShape);
  absl::Status status = read(0, ownShape[0], array, 0);
  return status.ok() ? absl::StatusOr<HostArray>(std::move(array)) : status;
}
