//===- FitRows.h - Elements of the data as a model takes them ---*- C++ -*-===//

#ifndef SHARDC_RT_SRC_DATA_FITROWS_H
#define SHARDC_RT_SRC_DATA_FITROWS_H

#include "shardc-rt/HostArray.h"
#include "shardc-rt/Plan.h"

#include "absl/status/status.h"

#include <string>

namespace shardc::rt {

/// Converts the elements of an array to the type of an input or label, and
/// checks them: floating-point numbers are rounded and have to be finite,
/// integers keep their values, and labels are in their range. Immutable.
class RowFit {
public:
  /// `what` names the array in errors.
  RowFit(const TensorInfo &tensor, std::string what)
      : to(tensor.dtype), labelClasses(tensor.labelClasses),
        what(std::move(what)) {}

  /// The type of converted elements.
  DType dtype() const { return to; }

  /// Whether elements of type `from` can be converted: floats to floats,
  /// integers to anything but bools.
  bool takes(DType from) const;

  /// Whether `convert` leaves elements [first, first + count) as they are.
  bool keeps(const HostArray &rows, int64_t first, int64_t count) const;

  /// Converts rows [from, from + count) of `rows`, the first of which is number
  /// `firstRow` of the array, to rows of `out` from `toRow` on. `isRounded` is
  /// set if a number has changed. InvalidArgument names the row.
  [[nodiscard]] absl::Status convert(const HostArray &rows, int64_t from,
                                     int64_t count, int64_t firstRow,
                                     HostArray &out, int64_t toRow,
                                     bool &isRounded) const;

private:
  absl::Status errorAt(int64_t row, absl::string_view found,
                       absl::string_view expected) const;
  absl::Status convertFloat(const HostArray &rows, int64_t i, int64_t row,
                            HostArray &out, int64_t j, bool &isRounded) const;
  absl::Status convertInteger(const HostArray &rows, int64_t i, int64_t row,
                              HostArray &out, int64_t j) const;

  DType to;
  int64_t labelClasses;
  std::string what;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_FITROWS_H
