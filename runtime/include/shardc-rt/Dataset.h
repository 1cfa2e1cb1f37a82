//===- Dataset.h - Rows to train and evaluate on ----------------*- C++ -*-===//
//
// Thread-safety: data sets and batches are values; threads may share a constant
// one. The functions may be called from any thread, with arguments of their
// own.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_DATASET_H
#define SHARDC_RT_DATASET_H

#include "shardc-rt/Errors.h"
#include "shardc-rt/Executor.h"
#include "shardc-rt/Export.h"
#include "shardc-rt/HostArray.h"
#include "shardc-rt/Plan.h"

#include <string>
#include <vector>

namespace shardc::rt {

/// Arrays named after a plan's inputs, all with the same number of rows.
struct Dataset {
  std::string name;
  ArrayMap arrays;
  int64_t rows = 0;
};

/// Rows of a data set put together for a step.
struct SHARDC_RT_API Batch {
  ArrayMap arrays;
  /// Rows that are data; the rest repeats the last one (evaluation only).
  int64_t validRows = 0;
  /// The arrays, borrowed.
  NamedArrays views() const;
};

struct DatasetOptions {
  /// Of synthetic data.
  uint64_t seed = 0;
  /// Where shipped data sets are looked for, in order.
  std::vector<std::string> dataDirs;
};

/// Loads what `spec` names:
///   FILE.npz               arrays by name;
///   synthetic:quadratic    x 10000x10 standard normal, y = sum of x² plus
///                          0.1 times standard normal noise;
///   digits, digits:train   1437 handwritten 8x8 digits, x in [0, 1], y 0..9;
///   digits:test            the other 360.
/// Errors: NotFound, InvalidArgument.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<Dataset>
loadDataset(const std::string &spec, const DatasetOptions &options);

/// Makes `dataset` fit the inputs and labels of `plan`: drops other arrays,
/// converts between floating-point types and between i32 and i64.
/// InvalidArgument names the array and row: missing, another type or shape, not
/// finite, a label out of range.
[[nodiscard]] SHARDC_RT_API absl::Status fitToPlan(const Plan &plan,
                                                   Dataset &dataset);

} // namespace shardc::rt

#endif // SHARDC_RT_DATASET_H
