//===- MicroBenchmarks.h - Helpers of the micro benchmarks ------*- C++ -*-===//

#ifndef SHARDC_RT_BENCHMARKS_MICROBENCHMARKS_H
#define SHARDC_RT_BENCHMARKS_MICROBENCHMARKS_H

#include "base/UsableCpus.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace shardc::rt::bench {

/// Devices of the all-reduces measured.
inline constexpr int numDevices = 8;

/// Bytes per device of the all-reduces measured.
inline constexpr int64_t allReduceBytes[] = {
    64,        1 << 10, 4 << 10, 16 << 10, 64 << 10,
    256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};

void registerLimits();
/// Of the runtime, and of threads that block for each other.
void registerAllReduces();
/// The executor's overhead per kernel.
void registerOverhead();
/// The update of parameters in the plan at `path`.
void registerUpdate(const std::string &path);

inline int numCores() { return findUsableCpus().count(); }

/// Adds a benchmark that is timed in real time.
template <typename Function>
benchmark::internal::Benchmark *add(const std::string &name,
                                    Function function) {
  return benchmark::RegisterBenchmark(name.c_str(), function)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

/// Reports the rate in `unit` per second, with `amount` in each iteration.
inline void setRate(benchmark::State &state, const char *unit, double amount) {
  state.counters[unit] =
      benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
}

/// Reports the seconds of each of `count` equal parts of an iteration.
inline void setSeconds(benchmark::State &state, double count) {
  state.counters["seconds"] =
      benchmark::Counter(count, benchmark::Counter::kIsIterationInvariantRate |
                                    benchmark::Counter::kInvert);
}

/// Floats that the threads touch first, one after the other, each its part as
/// the static schedule of OpenMP deals them out. Streams with different numbers
/// start at different offsets within a page: at equal offsets processors take a
/// load for one of the bytes stored just before.
class Stream {
public:
  explicit Stream(int64_t size, int number = 0)
      : start(number * 17 * 64 / sizeof(float)),
        floats(static_cast<float *>(std::aligned_alloc(
            4096, ((start + size) * 4 + 4095) / 4096 * 4096))) {
    float *data = get();
    int threads = numCores();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < size; ++i)
      data[i] = 1.0f;
  }
  float *get() const { return floats.get() + start; }

private:
  struct Free {
    void operator()(float *data) const { std::free(data); }
  };
  int64_t start;
  std::unique_ptr<float, Free> floats;
};

} // namespace shardc::rt::bench

#endif // SHARDC_RT_BENCHMARKS_MICROBENCHMARKS_H
