//===- FitRows.cpp - Elements of the data as a model takes them -----------===//

#include "data/FitRows.h"

#include "base/Convert.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <cstring>

using namespace shardc::rt;

bool RowFit::takes(DType from) const {
  return from == to || (to != DType::Bool && (isFloat(to) || !isFloat(from)));
}

absl::Status RowFit::errorAt(int64_t row, absl::string_view found,
                             absl::string_view expected) const {
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": row ", row, " ", found, ", ", expected));
}

absl::Status RowFit::convertFloat(const HostArray &rows, int64_t i, int64_t row,
                                  HostArray &out, int64_t j,
                                  bool &isRounded) const {
  double value = numberAt(rows, i);
  if (!std::isfinite(value))
    return errorAt(row, absl::StrCat("holds ", value),
                   "expected finite numbers");
  storeNumber(out, j, value);
  double stored = numberAt(out, j);
  if (!std::isfinite(stored))
    return errorAt(row, absl::StrCat("holds ", value),
                   absl::StrCat("which ", toString(to), " cannot hold"));
  isRounded |= value != stored;
  return absl::OkStatus();
}

absl::Status RowFit::convertInteger(const HostArray &rows, int64_t i,
                                    int64_t row, HostArray &out,
                                    int64_t j) const {
  int64_t value = integerAt(rows, i);
  if (labelClasses > 0 && (value < 0 || value >= labelClasses))
    return errorAt(row, absl::StrCat("has label ", value),
                   absl::StrCat("expected 0 to ", labelClasses - 1));
  if (!storeInteger(out, j, value))
    return errorAt(
        row, absl::StrCat("holds ", value),
        absl::StrCat("which ", toString(to), " cannot hold exactly"));
  return absl::OkStatus();
}

bool RowFit::keeps(const HostArray &rows, int64_t first, int64_t count) const {
  const int64_t width = byteSize(to);
  return rows.dtype == to && isFloat(to) &&
         areFinite(to,
                   reinterpret_cast<const char *>(rows.data.data()) +
                       first * width,
                   count * width);
}

absl::Status RowFit::convert(const HostArray &rows, int64_t from, int64_t count,
                             int64_t firstRow, HostArray &out, int64_t toRow,
                             bool &isRounded) const {
  const int64_t rowSize =
      rows.shape.empty() ? 1
                         : numElements(absl::MakeSpan(rows.shape).subspan(1));
  const int64_t first = from * rowSize, end = first + count * rowSize;
  const int64_t place = toRow * rowSize;
  if (keeps(rows, first, end - first)) {
    const int64_t width = byteSize(to), bytes = (end - first) * width;
    if (bytes > 0)
      std::memcpy(out.data.data() + place * width,
                  rows.data.data() + first * width, bytes);
    return absl::OkStatus();
  }
  for (int64_t i = first; i < end; ++i) {
    const int64_t row = firstRow + (i - first) / rowSize;
    const int64_t j = place + (i - first);
    absl::Status status = isFloat(rows.dtype)
                              ? convertFloat(rows, i, row, out, j, isRounded)
                              : convertInteger(rows, i, row, out, j);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}
