//===- Batches.h - Batches in a deterministic order -------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_DATA_BATCHES_H
#define SHARDC_RT_SRC_DATA_BATCHES_H

#include "shardc-rt/Dataset.h"
#include "shardc-rt/Trace.h"

#include <cstdint>
#include <memory>

namespace shardc::rt {

/// The order of `rows` rows in epoch `epoch`: a Fisher-Yates shuffle driven by
/// Philox4x32-10 keyed by the seed, the same on every machine.
std::vector<int64_t> shuffledRows(int64_t rows, uint64_t seed, int64_t epoch);

/// `shuffledRows` or, if not `shuffle`, the rows in order.
std::vector<int64_t> orderOfRows(int64_t rows, uint64_t seed, bool shuffle,
                                 int64_t epoch);

/// The rows of a batch that this process takes of each array; all of those that
/// are not named.
using RowsOfBatch = std::map<std::string, std::vector<RowRange>>;

/// The rows of the inputs and labels of a plan that the devices of an executor
/// in this process take.
RowsOfBatch rowsOf(const Executor &executor);

/// Puts rows `order[begin...]`, `size` of them, into a batch. Rows past the end
/// of `order` repeat its last one. Rows that are not in `taken` are zeros, and
/// are not read where they are in a file. Errors are those of
/// `RowReader::read`.
[[nodiscard]] absl::StatusOr<Batch>
gatherBatch(const Dataset &dataset, const std::vector<int64_t> &order,
            int64_t begin, int64_t size, const RowsOfBatch &taken = {});

/// The same in the memory of `batch`, which is empty or was gathered from the
/// same data set with the same `size` and `taken`.
[[nodiscard]] absl::Status gatherBatch(const Dataset &dataset,
                                       const std::vector<int64_t> &order,
                                       int64_t begin, int64_t size,
                                       const RowsOfBatch &taken, Batch &batch);

/// InvalidArgument: an array of `dataset` has not its rows, as one that was not
/// made to fit a plan.
[[nodiscard]] absl::Status checkRows(const Dataset &dataset);

/// Batches of an epoch, whose last rows are dropped if they do not fill one.
/// InvalidArgument: `dataset` has fewer than `batchSize` rows, or that is below
/// 1, or that of `checkRows`.
[[nodiscard]] absl::StatusOr<int64_t> batchesPerEpoch(const Dataset &dataset,
                                                      int64_t batchSize);

struct BatchStreamOptions {
  int64_t batchSize = 0;
  uint64_t seed = 0;
  bool shuffle = true;
  /// The first batch, and the one behind the last, counted through all epochs.
  int64_t begin = 0, end = INT64_MAX;
  /// Prepared by a thread, else by `next`.
  bool ahead = true;
  /// Rows of each batch that are needed.
  RowsOfBatch taken;
  /// Gets the spans of preparing; may be null.
  Trace *trace = nullptr;
};

/// Training batches, epoch after epoch. One thread at a time.
class BatchStream {
public:
  /// Of `dataset`, which must outlive the stream; errors are those of
  /// `batchesPerEpoch`.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<BatchStream>>
  create(const Dataset &dataset, BatchStreamOptions options);
  ~BatchStream();
  BatchStream(const BatchStream &) = delete;
  BatchStream &operator=(const BatchStream &) = delete;

  /// The next batch, valid until the next call. An error, as of `gatherBatch`,
  /// is the last result; OutOfRange: there was the last batch before.
  absl::StatusOr<const Batch *> next();

private:
  struct Implementation;
  explicit BatchStream(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> implementation;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_BATCHES_H
