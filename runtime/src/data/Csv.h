//===- Csv.h - Tables of numbers as text ------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_DATA_CSV_H
#define SHARDC_RT_SRC_DATA_CSV_H

#include "shardc-rt/Dataset.h"

namespace shardc::rt {

/// Reads a table: a line of column names, then lines of as many numbers,
/// separated by commas (RFC 4180; fields may be in quotes). Every column is an
/// array of one dimension, of i64 if all its numbers are integers and else of
/// f64. `what` names the text in errors. InvalidArgument names line and column.
/// `onProgress` is called now and then, if there is one.
[[nodiscard]] absl::StatusOr<Dataset>
parseCsv(absl::string_view text, absl::string_view what,
         const std::function<void()> &onProgress = {});

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_CSV_H
