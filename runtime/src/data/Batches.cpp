//===- Batches.cpp - Batches in a deterministic order ---------------------===//

#include "data/Batches.h"

#include "data/Random.h"

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

Batch shardc::rt::gatherBatch(const Dataset &dataset,
                              const std::vector<int64_t> &order, int64_t begin,
                              int64_t size) {
  Batch batch;
  int64_t available = static_cast<int64_t>(order.size()) - begin;
  batch.validRows = std::min(size, available);
  for (const auto &[name, array] : dataset.arrays) {
    std::vector<int64_t> shape = array.shape;
    shape[0] = size;
    HostArray rows(array.dtype, shape);
    int64_t rowBytes = array.shape[0] ? array.data.size() / array.shape[0] : 0;
    for (int64_t i = 0; i < size && rowBytes > 0; ++i) {
      int64_t row = order[begin + std::min(i, batch.validRows - 1)];
      std::memcpy(rows.data.data() + i * rowBytes,
                  array.data.data() + row * rowBytes, rowBytes);
    }
    batch.arrays.emplace(name, std::move(rows));
  }
  return batch;
}

struct BatchStream::Implementation {
  const Dataset &dataset;
  const int64_t batchSize;
  const uint64_t seed;
  const bool shuffle;
  const int64_t skipped;
  Trace *const trace;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Batch> ready;
  bool ending = false;
  Batch current;
  std::thread thread;

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
      Batch batch = gatherBatch(dataset, order, begin, batchSize);
      if (trace)
        trace->add("data", "prepare a batch", start, Trace::Clock::now());
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return ending || ready.size() < batchesAhead; });
      if (ending)
        return;
      ready.push_back(std::move(batch));
      changed.notify_all();
    }
  }
}

absl::StatusOr<std::unique_ptr<BatchStream>>
BatchStream::create(const Dataset &dataset, int64_t batchSize, uint64_t seed,
                    bool shuffle, int64_t skipped, Trace *trace) {
  if (batchSize < 1 || dataset.rows < batchSize)
    return absl::InvalidArgumentError(
        absl::StrCat(dataset.name, " has ", dataset.rows,
                     " rows, fewer than the batch size ", batchSize));
  return std::unique_ptr<BatchStream>(
      new BatchStream(dataset, batchSize, seed, shuffle, skipped, trace));
}

BatchStream::BatchStream(const Dataset &dataset, int64_t batchSize,
                         uint64_t seed, bool shuffle, int64_t skipped,
                         Trace *trace)
    : implementation(new Implementation{dataset,
                                        batchSize,
                                        seed,
                                        shuffle,
                                        skipped,
                                        trace,
                                        {},
                                        {},
                                        {},
                                        false,
                                        {},
                                        {}}) {
  implementation->thread = std::thread([this] { implementation->prepare(); });
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

const Batch &BatchStream::next() {
  Implementation &self = *implementation;
  std::unique_lock<std::mutex> lock(self.mutex);
  self.changed.wait(lock, [&] { return !self.ready.empty(); });
  self.current = std::move(self.ready.front());
  self.ready.pop_front();
  self.changed.notify_all();
  return self.current;
}
