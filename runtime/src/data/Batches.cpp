//===- Batches.cpp - Batches in a deterministic order ---------------------===//

#include "data/Batches.h"

#include "data/Random.h"
#include "data/RowReader.h"

#include "absl/strings/str_cat.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <numeric>
#include <thread>

using namespace shardc::rt;

/// Batches that are prepared ahead of the one in use.
static constexpr size_t batchesAhead = 4;

std::vector<int64_t> shardc::rt::shuffledRows(int64_t rows, uint64_t seed,
                                              int64_t epoch) {
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = rows - 1; i > 0; --i) {
    // Streams from 2^32 on, apart from those of the data sets.
    auto block = randomBlock(seed, (uint64_t(1) << 32) + epoch, i);
    uint64_t bits = (static_cast<uint64_t>(block[0]) << 32) | block[1];
    std::swap(order[i], order[bits % static_cast<uint64_t>(i + 1)]);
  }
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

/// Calls visit(row of the batch, row of the data, count) for rows of `range`
/// that follow each other in both.
template <typename Visit>
static absl::Status forEachRun(const BatchOrder &order, RowRange range,
                               Visit visit) {
  const int64_t last = std::min(range.last, order.size);
  for (int64_t i = range.first, end; i < last; i = end) {
    end = i + 1;
    while (end < last && order.at(end) == order.at(end - 1) + 1)
      ++end;
    if (absl::Status status = visit(i, order.at(i), end - i); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<Batch> shardc::rt::gatherBatch(const Dataset &dataset,
                                              const std::vector<int64_t> &order,
                                              int64_t begin, int64_t size,
                                              const RowsOfBatch &taken) {
  Batch batch;
  int64_t available = static_cast<int64_t>(order.size()) - begin;
  batch.validRows = std::min(size, available);
  const BatchOrder rows{order, begin, size, batch.validRows};
  const std::vector<RowRange> all = {{0, size}};
  auto gather = [&](const std::string &name, DType dtype,
                    std::vector<int64_t> shape, auto copy) {
    shape[0] = size;
    HostArray &array =
        batch.arrays.emplace(name, HostArray(dtype, std::move(shape)))
            .first->second;
    auto found = taken.find(name);
    for (RowRange range : found == taken.end() ? all : found->second)
      if (absl::Status status =
              forEachRun(rows, range,
                         [&](int64_t to, int64_t from, int64_t count) {
                           return copy(array, to, from, count);
                         });
          !status.ok())
        return status;
    return absl::OkStatus();
  };
  absl::Status status;
  for (const auto &[name, array] : dataset.arrays) {
    if (dataset.whole.count(name) > 0) {
      batch.arrays.emplace(name, array);
      continue;
    }
    int64_t rowBytes = array.shape[0] ? array.data.size() / array.shape[0] : 0;
    const std::byte *data = array.data.data();
    status.Update(
        gather(name, array.dtype, array.shape,
               [&](HostArray &out, int64_t to, int64_t from, int64_t count) {
                 if (rowBytes > 0)
                   std::memcpy(out.data.data() + to * rowBytes,
                               data + from * rowBytes, count * rowBytes);
                 return absl::OkStatus();
               }));
  }
  for (const auto &[name, reader] : dataset.inFile)
    if (status.ok())
      status = gather(name, reader->dtype(), reader->shape(),
                      [&reader = reader](HostArray &out, int64_t to,
                                         int64_t from, int64_t count) {
                        return reader->read(from, count, out, to);
                      });
  return status.ok() ? absl::StatusOr<Batch>(std::move(batch)) : status;
}

struct BatchStream::Implementation {
  const Dataset &dataset;
  const int64_t batchSize;
  const uint64_t seed;
  const bool shuffle;
  const int64_t skipped;
  const RowsOfBatch taken;
  Trace *const trace;

  std::mutex mutex;
  std::condition_variable changed;
  /// An error is the last one.
  std::deque<absl::StatusOr<Batch>> ready;
  bool ending = false;
  Batch current;
  std::thread thread;

  Implementation(const Dataset &dataset, int64_t batchSize, uint64_t seed,
                 bool shuffle, int64_t skipped, RowsOfBatch taken, Trace *trace)
      : dataset(dataset), batchSize(batchSize), seed(seed), shuffle(shuffle),
        skipped(skipped), taken(std::move(taken)), trace(trace) {}
  void prepare();
};

void BatchStream::Implementation::prepare() {
  int64_t perEpoch = dataset.rows / batchSize;
  int64_t first = skipped % perEpoch * batchSize;
  for (int64_t epoch = skipped / perEpoch;; ++epoch, first = 0) {
    std::vector<int64_t> order =
        orderOfRows(dataset.rows, seed, shuffle, epoch);
    for (int64_t begin = first; begin + batchSize <= dataset.rows;
         begin += batchSize) {
      const auto start = Trace::Clock::now();
      absl::StatusOr<Batch> batch =
          gatherBatch(dataset, order, begin, batchSize, taken);
      if (trace)
        trace->add("data", "prepare a batch", start, Trace::Clock::now());
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return ending || ready.size() < batchesAhead; });
      if (ending)
        return;
      ready.push_back(std::move(batch));
      changed.notify_all();
      if (!ready.back().ok())
        return;
    }
  }
}

absl::StatusOr<std::unique_ptr<BatchStream>>
BatchStream::create(const Dataset &dataset, int64_t batchSize, uint64_t seed,
                    bool shuffle, int64_t skipped, RowsOfBatch taken,
                    Trace *trace) {
  if (batchSize < 1 || dataset.rows < batchSize)
    return absl::InvalidArgumentError(
        absl::StrCat(dataset.name, " has ", dataset.rows,
                     " rows, fewer than the batch size ", batchSize));
  return std::unique_ptr<BatchStream>(new BatchStream(
      std::make_unique<Implementation>(dataset, batchSize, seed, shuffle,
                                       skipped, std::move(taken), trace)));
}

BatchStream::BatchStream(std::unique_ptr<Implementation> own)
    : implementation(std::move(own)) {
  implementation->thread =
      std::thread([self = implementation.get()] { self->prepare(); });
}

BatchStream::~BatchStream() {
  {
    std::lock_guard<std::mutex> lock(implementation->mutex);
    implementation->ending = true;
  }
  implementation->changed.notify_all();
  implementation->thread.join();
}

int64_t BatchStream::batchesPerEpoch() const {
  return implementation->dataset.rows / implementation->batchSize;
}

absl::StatusOr<const Batch *> BatchStream::next() {
  Implementation &self = *implementation;
  std::unique_lock<std::mutex> lock(self.mutex);
  self.changed.wait(lock, [&] { return !self.ready.empty(); });
  absl::StatusOr<Batch> &front = self.ready.front();
  if (!front.ok())
    return front.status();
  self.current = *std::move(front);
  self.ready.pop_front();
  self.changed.notify_all();
  return &self.current;
}
