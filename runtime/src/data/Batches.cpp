//===- Batches.cpp - Batches in a deterministic order ---------------------===//

#include "data/Batches.h"

#include "base/ArrayBytes.h"
#include "base/Parts.h"
#include "data/Random.h"
#include "data/RowReader.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <numeric>
#include <thread>

using namespace shardc::rt;

/// Batches that a thread prepares ahead of the one in use.
static constexpr size_t batchesAhead = 4;

std::vector<int64_t> shardc::rt::shuffledRows(int64_t rows, uint64_t seed,
                                              int64_t epoch) {
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  // Streams from 2^32 on, apart from those of the data sets.
  std::vector<uint64_t> bits(rows);
  randomBits(seed, (uint64_t(1) << 32) + epoch, absl::MakeSpan(bits));
  for (int64_t i = rows - 1; i > 0; --i)
    std::swap(order[i], order[bits[i] % static_cast<uint64_t>(i + 1)]);
  return order;
}

std::vector<int64_t> shardc::rt::orderOfRows(int64_t rows, uint64_t seed,
                                             bool shuffle, int64_t epoch) {
  if (shuffle)
    return shuffledRows(rows, seed, epoch);
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

NamedArrays Batch::views() const {
  NamedArrays views;
  for (const auto &[name, array] : arrays)
    views.emplace(name, array.view());
  return views;
}

RowsOfBatch shardc::rt::rowsOf(const Executor &executor) {
  RowsOfBatch rows;
  for (const TensorInfo &tensor : executor.plan().tensors())
    if (tensor.role == Role::Input || tensor.role == Role::Label)
      rows.emplace(tensor.name, executor.rowsOf(tensor.name));
  return rows;
}

namespace {
/// The rows of one batch in the data.
struct BatchOrder {
  const std::vector<int64_t> &order;
  int64_t begin, size, validRows;

  /// That of row `i` of the batch.
  int64_t at(int64_t i) const {
    return order[begin + std::min(i, validRows - 1)];
  }
};
} // namespace

/// Copies rows by blocks of `block` bytes, of which the last one overlaps the
/// one before; rows have as many bytes or more.
template <int64_t block>
static void copyRows(const std::byte *from, const BatchOrder &order,
                     RowRange range, int64_t rowBytes, std::byte *to) {
  for (int64_t i = range.first; i < range.last; ++i) {
    const std::byte *source = from + order.at(i) * rowBytes;
    std::byte *target = to + i * rowBytes;
    int64_t done = 0;
    for (; done + block <= rowBytes; done += block)
      std::memcpy(target + done, source + done, block);
    if (done < rowBytes)
      std::memcpy(target + rowBytes - block, source + rowBytes - block, block);
  }
}

/// The bytes of a row of an array of rows.
static int64_t bytesOfRow(DType dtype, absl::Span<const int64_t> shape) {
  return numElements(shape.subspan(1)) * byteSize(dtype);
}

/// Copies the rows in `range` of a batch from an array in memory. Most rows
/// have few bytes, which a call would not be worth.
static void copyRows(const HostArray &array, const BatchOrder &order,
                     RowRange range, HostArray &batch) {
  const int64_t rowBytes = bytesOfRow(array.dtype, array.shape);
  const std::byte *from = array.data.data();
  std::byte *to = batch.data.data();
  if (rowBytes > 1024)
    for (int64_t i = range.first; i < range.last; ++i)
      std::memcpy(to + i * rowBytes, from + order.at(i) * rowBytes, rowBytes);
  else if (rowBytes >= 32)
    copyRows<32>(from, order, range, rowBytes, to);
  else if (rowBytes >= 8)
    copyRows<8>(from, order, range, rowBytes, to);
  else if (rowBytes >= 4)
    copyRows<4>(from, order, range, rowBytes, to);
  else
    copyRows<1>(from, order, range, rowBytes, to);
}

/// Reads the rows in `range` of a batch, those that follow each other in the
/// data as well at once.
static absl::Status readRows(const RowReader &from, const BatchOrder &order,
                             RowRange range, HostArray &to) {
  for (int64_t i = range.first, end; i < range.last; i = end) {
    end = i + 1;
    while (end < range.last && order.at(end) == order.at(end - 1) + 1)
      ++end;
    if (absl::Status status = from.read(order.at(i), end - i, to, i);
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

/// Runs `gather` on parts of `range`, in threads if many bytes are in it.
/// Returns the error of the first part that has one.
static absl::Status
gatherParts(RowRange range, int64_t rowBytes,
            absl::FunctionRef<absl::Status(RowRange)> gather) {
  constexpr int64_t leastBytes = 4 << 20;
  const int64_t count = std::max<int64_t>(range.last - range.first, 0);
  const int threads = count * rowBytes < 2 * leastBytes ? 1 : copyThreads();
  std::vector<absl::Status> statuses(threads);
  forEachPart(
      count, leastBytes / std::max<int64_t>(rowBytes, 1), threads,
      [&](int64_t part, int64_t begin, int64_t end) {
        statuses[part] = gather({range.first + begin, range.first + end});
      });
  for (absl::Status &status : statuses)
    if (!status.ok())
      return std::move(status);
  return absl::OkStatus();
}

absl::Status shardc::rt::gatherBatch(const Dataset &dataset,
                                     const std::vector<int64_t> &order,
                                     int64_t begin, int64_t size,
                                     const RowsOfBatch &taken, Batch &batch) {
  int64_t available = static_cast<int64_t>(order.size()) - begin;
  batch.validRows = std::min(size, available);
  const BatchOrder rows{order, begin, size, batch.validRows};
  const std::vector<RowRange> all = {{0, size}};
  auto rangesOf = [&](const std::string &name) {
    auto found = taken.find(name);
    std::vector<RowRange> ranges = found == taken.end() ? all : found->second;
    for (RowRange &range : ranges)
      range.last = std::min(range.last, size);
    return ranges;
  };
  auto arrayOf = [&](const std::string &name, DType dtype,
                     std::vector<int64_t> shape) -> HostArray & {
    shape[0] = size;
    HostArray &array = batch.arrays[name];
    if (array.dtype != dtype || array.shape != shape)
      array = HostArray(dtype, std::move(shape));
    return array;
  };
  for (const auto &[name, array] : dataset.arrays) {
    if (dataset.whole.count(name) > 0) {
      batch.arrays.try_emplace(name, array);
      continue;
    }
    HostArray &to = arrayOf(name, array.dtype, array.shape);
    for (RowRange range : rangesOf(name))
      if (absl::Status status =
              gatherParts(range, bytesOfRow(array.dtype, array.shape),
                          [&](RowRange part) {
                            copyRows(array, rows, part, to);
                            return absl::OkStatus();
                          });
          !status.ok())
        return status;
  }
  for (const auto &[name, reader] : dataset.inFile) {
    HostArray &to = arrayOf(name, reader->dtype(), reader->shape());
    for (RowRange range : rangesOf(name))
      if (absl::Status status =
              gatherParts(range, bytesOfRow(reader->dtype(), reader->shape()),
                          [&, &reader = *reader](RowRange part) {
                            return readRows(reader, rows, part, to);
                          });
          !status.ok())
        return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<Batch> shardc::rt::gatherBatch(const Dataset &dataset,
                                              const std::vector<int64_t> &order,
                                              int64_t begin, int64_t size,
                                              const RowsOfBatch &taken) {
  Batch batch;
  absl::Status status = gatherBatch(dataset, order, begin, size, taken, batch);
  return status.ok() ? absl::StatusOr<Batch>(std::move(batch)) : status;
}

absl::Status shardc::rt::checkRows(const Dataset &dataset) {
  auto check = [&](const std::string &name,
                   const std::vector<int64_t> &shape) -> absl::Status {
    if (dataset.whole.count(name) ||
        (!shape.empty() && shape[0] == dataset.rows))
      return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(dataset.name, ": array \"", name, "\" has the shape [",
                     absl::StrJoin(shape, ","), "], expected ", dataset.rows,
                     " rows: fitToPlan makes data fit a plan"));
  };
  absl::Status status = checkBytes(dataset.arrays);
  for (const auto &[name, array] : dataset.arrays)
    if (status.ok())
      status = check(name, array.shape);
  for (const auto &[name, reader] : dataset.inFile)
    if (status.ok())
      status = check(name, reader->shape());
  return status;
}

absl::StatusOr<int64_t> shardc::rt::batchesPerEpoch(const Dataset &dataset,
                                                    int64_t batchSize) {
  if (batchSize < 1 || dataset.rows < batchSize)
    return absl::InvalidArgumentError(
        absl::StrCat(dataset.name, " has ", dataset.rows,
                     " rows, fewer than the batch size ", batchSize));
  if (absl::Status status = checkRows(dataset); !status.ok())
    return status;
  return dataset.rows / batchSize;
}

struct BatchStream::Implementation {
  const Dataset &dataset;
  const BatchStreamOptions options;
  int64_t given; ///< The number of the next batch that `next` gives.

  /// Of the batch that is prepared next.
  int64_t number;
  std::vector<int64_t> order; ///< Of the epoch.

  std::mutex mutex;
  std::condition_variable changed;
  /// An error is the last one.
  std::deque<absl::StatusOr<Batch>> ready;
  /// Those that were given, whose memory is used again.
  std::vector<Batch> used;
  bool ending = false;
  Batch current;
  std::thread thread;

  Implementation(const Dataset &dataset, BatchStreamOptions own)
      : dataset(dataset), options(std::move(own)), given(options.begin),
        number(options.begin) {}
  absl::Status prepare(Batch &batch);
  void prepareAhead();
};

/// Makes `batch` the next one.
absl::Status BatchStream::Implementation::prepare(Batch &batch) {
  const int64_t perEpoch = dataset.rows / options.batchSize;
  const auto start = Trace::Clock::now();
  if (order.empty() || number % perEpoch == 0)
    order = orderOfRows(dataset.rows, options.seed, options.shuffle,
                        number / perEpoch);
  absl::Status status =
      gatherBatch(dataset, order, number % perEpoch * options.batchSize,
                  options.batchSize, options.taken, batch);
  if (status.ok())
    ++number;
  if (options.trace)
    options.trace->add("data", "prepare a batch", start, Trace::Clock::now());
  return status;
}

void BatchStream::Implementation::prepareAhead() {
  while (number < options.end) {
    Batch batch;
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return ending || ready.size() < batchesAhead; });
      if (ending)
        return;
      if (!used.empty()) {
        batch = std::move(used.back());
        used.pop_back();
      }
    }
    absl::Status status = prepare(batch);
    std::lock_guard<std::mutex> lock(mutex);
    if (status.ok())
      ready.push_back(std::move(batch));
    else
      ready.push_back(status);
    changed.notify_all();
    if (!status.ok())
      return;
  }
}

absl::StatusOr<std::unique_ptr<BatchStream>>
BatchStream::create(const Dataset &dataset, BatchStreamOptions options) {
  if (absl::Status status =
          batchesPerEpoch(dataset, options.batchSize).status();
      !status.ok())
    return status;
  return std::unique_ptr<BatchStream>(new BatchStream(
      std::make_unique<Implementation>(dataset, std::move(options))));
}

BatchStream::BatchStream(std::unique_ptr<Implementation> own)
    : implementation(std::move(own)) {
  if (implementation->options.ahead)
    implementation->thread =
        std::thread([self = implementation.get()] { self->prepareAhead(); });
}

BatchStream::~BatchStream() {
  if (!implementation->thread.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(implementation->mutex);
    implementation->ending = true;
  }
  implementation->changed.notify_all();
  implementation->thread.join();
}

absl::StatusOr<const Batch *> BatchStream::next() {
  Implementation &self = *implementation;
  if (self.given >= self.options.end)
    return absl::OutOfRangeError("there are no more batches");
  if (!self.options.ahead) {
    if (absl::Status status = self.prepare(self.current); !status.ok())
      return status;
    ++self.given;
    return &self.current;
  }
  std::unique_lock<std::mutex> lock(self.mutex);
  self.changed.wait(lock, [&] { return !self.ready.empty(); });
  absl::StatusOr<Batch> &front = self.ready.front();
  if (!front.ok())
    return front.status();
  if (self.given > self.options.begin)
    self.used.push_back(std::move(self.current));
  self.current = *std::move(front);
  self.ready.pop_front();
  ++self.given;
  self.changed.notify_all();
  return &self.current;
}
