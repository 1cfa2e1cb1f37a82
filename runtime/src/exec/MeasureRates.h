//===- MeasureRates.h - What this computer attains --------------*- C++ -*-===//
//
// Rates that the runtime attains on the workers of a pool: of its GEMMs and
// their vectors, of copies, and of elementwise loops over memory. Each is the
// best of several short runs, so that on a busy computer the best one was not
// interrupted. Where there is no memory they throw std::bad_alloc.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_MEASURERATES_H
#define SHARDC_RT_SRC_EXEC_MEASURERATES_H

#include "base/Memory.h"
#include "exec/WorkerPool.h"
#include "shardc-rt/DType.h"

#include <algorithm>
#include <chrono>

namespace shardc::rt {

/// The shortest time of one `job(worker)` on all workers, which ends with a
/// barrier, among those of `seconds` seconds; `rounds` of them are timed
/// together.
template <typename Job>
double measureJob(WorkerPool &pool, double seconds, int rounds, Job job) {
  using Clock = std::chrono::steady_clock;
  double best = 1e300;
  const auto begin = Clock::now();
  do {
    auto start = Clock::now();
    pool.run([&](int worker) {
      for (int round = 0; round < rounds; ++round) {
        job(worker);
        pool.barrier();
      }
    });
    std::chrono::duration<double> time = Clock::now() - start;
    best = std::min(best, time.count() / rounds);
  } while (std::chrono::duration<double>(Clock::now() - begin).count() <
           seconds);
  return best;
}

/// Memory in large pages, as the arena of a plan is: factors whose rows are a
/// page apart take longer in small ones. What is taken from it is aligned to
/// lines of caches, and there is room for as much as was asked for.
class MeasuredMemory {
public:
  /// CPUs compare the last twelve bits of addresses first, and a load waits for
  /// a store before it that has the same: reads and writes that go on together
  /// are half of that apart.
  static constexpr size_t apart = 2048;

  explicit MeasuredMemory(size_t bytes);
  char *take(size_t bytes);
  float *takeFloats(int64_t count) {
    return reinterpret_cast<float *>(take(count * sizeof(float)));
  }

private:
  Memory memory;
  size_t left;
  char *next;
};

/// FLOP/s of a GEMM of `rows` rows by `columns` columns, each the sum of
/// `terms` products.
double measureGemm(WorkerPool &pool, double seconds, DType dtype,
                   int64_t rows = 1024, int64_t columns = 1024,
                   int64_t terms = 1024);

/// FLOP/s of such GEMMs of f32 whose right factors are `factors` matrices in
/// turn, as they lie, then transposed.
double measureFactors(WorkerPool &pool, double seconds, int64_t rows,
                      int64_t columns, int64_t terms, int64_t factors);

/// Seconds in which each worker computes a tile of a GEMM, in its cache.
struct TileSeconds {
  /// Of `few` and `many` terms, and of half a vector of columns with `few`.
  double few, many, partial;
};
TileSeconds measureTiles(WorkerPool &pool, double seconds);

/// What GEMMs in the caches of the workers take for each vector of a result.
struct VectorRates {
  int64_t lanes = 1; ///< Of f32.
  /// As long as so many multiply-adds of a whole vector, and of a half one.
  double terms = 0, partialTerms = 0;
};
VectorRates getVectorRates(const TileSeconds &tiles);

/// Bytes per second read and written by copies that no cache holds.
double measureMemory(WorkerPool &pool, double seconds);

/// The same by copies among `bytes` on all workers together, one after the
/// other.
double measureMemoryOf(WorkerPool &pool, double seconds, size_t bytes);

/// The same by loops that replace what they read.
double measureReplacing(WorkerPool &pool, double seconds, size_t bytes);

/// The same by copies of 64 KiB on each worker, which stay in its cache.
double measureCache(WorkerPool &pool, double seconds);

/// Seconds in which all workers together write `bytes` and read as much: what
/// they have written themselves, and what the next one has.
struct ExchangeSeconds {
  double own, others;
};
ExchangeSeconds measureExchange(WorkerPool &pool, double seconds, size_t bytes);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_MEASURERATES_H
