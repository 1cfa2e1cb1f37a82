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

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace shardc::rt {

class RowReader;

/// Arrays to train or evaluate on. First `loadDataset`, then `fitToPlan`.
struct Dataset {
  std::string name = "the data"; ///< In messages.
  ArrayMap arrays;
  /// Arrays that are not in memory: a batch reads the rows that it needs from
  /// the file (`DatasetOptions::byRows`).
  std::map<std::string, std::shared_ptr<const RowReader>> inFile;
  /// Of every array but those of `whole`, once they fit a plan.
  int64_t rows = 0;
  /// The arrays that each batch has as they are: of inputs that have no rows of
  /// the batch, such as scalars.
  std::set<std::string> whole;
  /// The stored types of arrays that were converted when they were read: "u8"
  /// or "big-endian f64 in Fortran order", or "text", which has no type.
  std::map<std::string, std::string> storage;
  /// Arrays that cannot be read, and why: an error if a plan needs them.
  std::map<std::string, absl::Status> unreadable;
  /// Of `arrays` those that could not be left in their file, as asked for, and
  /// why.
  std::map<std::string, std::string> readWhole;
  /// The conversions of `fitToPlan` and the arrays that it ignored, for people.
  std::vector<std::string> notes;
  /// What costs more memory and time than it has to, for people.
  std::vector<std::string> warnings;
};

/// Rows of a data set, assembled for a step. In a process that has only some of
/// a mesh's devices, rows that none of these takes may be zeros.
struct SHARDC_RT_API Batch {
  ArrayMap arrays;
  /// The number of rows of data; the others repeat the last one (evaluation
  /// only).
  int64_t validRows = 0;
  /// The arrays, borrowed.
  NamedArrays views() const;
};

struct DatasetOptions {
  /// Of synthetic data.
  uint64_t seed = 0;
  /// Folders of the shipped data sets, searched in order.
  std::vector<std::string> dataDirs;
  /// Leave arrays of files .npz and .npy in their file, so that a process that
  /// has only some of a mesh's devices reads only their rows. This takes arrays
  /// in the order of C that are not compressed; others are read as a whole. A
  /// row that does not fit the plan is found when a batch takes it.
  bool byRows = false;
  /// Called again and again while files are read; may be empty.
  std::function<void()> onProgress = {};
};

/// Loads the data set that `spec` names:
///   FILE.npz               arrays by name;
///   X.npy,Y.npy            arrays named after the files, or X=FILE.npy;
///   FILE.csv               a line of column names, then a row of numbers a
///                          line: every column is an array;
///   synthetic:quadratic    x 10000x10 standard normal, y = sum of x² plus
///                          0.1 times standard normal noise;
///   digits, digits:train   1437 handwritten 8x8 digits, x in [0, 1], y 0..9;
///   digits:test            the other 360.
/// Errors: NotFound, InvalidArgument.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<Dataset>
loadDataset(const std::string &spec, const DatasetOptions &options);

/// Loads several data sets, each as `loadDataset` does, but reads the digits
/// once for both of their parts. The first error.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<std::vector<Dataset>>
loadDatasets(const std::vector<std::string> &specs,
             const DatasetOptions &options);

/// The files that `loadDataset` would read.
SHARDC_RT_API std::vector<std::string> dataFiles(const std::string &spec,
                                                 const DatasetOptions &options);

/// Makes `dataset` fit the inputs and labels of `plan`, or those that `program`
/// takes, if that is given. All must have the same number of rows, but for
/// inputs that are scalars or have another leading dimension than the batch:
/// these have the shape of the input, and each batch has them as they are.
/// Other arrays are ignored. An input `x` that is missing is assembled from
/// columns x0, x1, … or x1, x2, …; dimensions of size 1 may be missing.
/// Floating-point numbers are rounded to the model's type; integers and bools
/// are converted if that changes no value. `notes` record this. InvalidArgument
/// names the array and row: missing, another type or shape, not finite, not
/// exact, a label out of range. NotFound: no such program.
[[nodiscard]] SHARDC_RT_API absl::Status
fitToPlan(const Plan &plan, Dataset &dataset, absl::string_view program = {});

} // namespace shardc::rt

#endif // SHARDC_RT_DATASET_H
