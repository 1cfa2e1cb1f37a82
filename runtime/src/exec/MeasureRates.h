//===- MeasureRates.h - What this computer attains --------------*- C++ -*-===//
//
// Rates that the runtime attains on the workers of a pool: of its GEMMs and
// their vectors, of copies, and of elementwise loops over memory. Each is the
// best of several short runs, so that on a busy computer the best one was not
// interrupted.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_MEASURERATES_H
#define SHARDC_RT_SRC_EXEC_MEASURERATES_H

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

/// FLOP/s of a GEMM of `rows` rows of 1024 terms by `columns` columns.
double measureGemm(WorkerPool &pool, double seconds, DType dtype,
                   int64_t rows = 1024, int64_t columns = 1024);

/// What GEMMs in the caches of the workers take for each vector of a result.
struct VectorRates {
  int64_t lanes = 1; ///< Of f32.
  /// As long as so many multiply-adds of a whole vector, and of a half one.
  double terms = 0, partialTerms = 0;
};
VectorRates measureVectors(WorkerPool &pool, double seconds);

/// Bytes per second read and written by copies that no cache holds.
double measureMemory(WorkerPool &pool, double seconds);

/// The same by copies among `bytes` on all workers together, one after the
/// other.
double measureMemoryOf(WorkerPool &pool, double seconds, size_t bytes);

/// The same by copies of 64 KiB on each worker, which stay in its cache.
double measureCache(WorkerPool &pool, double seconds);

/// Bytes per second by which a read of what the next worker has just written,
/// 64 KiB of each, takes longer than one of the worker's own, on all workers
/// together; 0 if it does not.
double measureExchange(WorkerPool &pool, double seconds);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_MEASURERATES_H
