//===- Limits.cpp - The limits of this computer ---------------------------===//
//
// Limits that results are compared with: multiply-adds in registers, streams
// through memory, the transfer of a cache line between two cores.
//
//===----------------------------------------------------------------------===//

#include "MicroBenchmarks.h"
#include "MultiplyAdds.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <immintrin.h>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

using namespace shardc::rt::bench;

/// FLOP/s of all cores.
static void measurePeak(benchmark::State &state, const MultiplyAdds &adds) {
  int threads = numCores();
  for (auto _ : state) {
#pragma omp parallel num_threads(threads)
    {
      float result = adds.run();
      benchmark::DoNotOptimize(result);
    }
  }
  setRate(state, "flops", adds.flops * threads);
}

static void measureTriad(benchmark::State &state) {
  int64_t size = state.range(0) / (3 * sizeof(float));
  Stream a(size), b(size, 1), c(size, 2);
  int threads = numCores();
  for (auto _ : state) {
    float *to = a.get();
    const float *left = b.get(), *right = c.get();
#pragma omp parallel for simd num_threads(threads) schedule(static)
    for (int64_t i = 0; i < size; ++i)
      to[i] = left[i] + 0.5f * right[i];
    benchmark::ClobberMemory();
  }
  setRate(state, "bytes", 3.0 * sizeof(float) * size);
}

/// Streams as Adam's update moves them: four are read, three of them written.
static void measureUpdate(benchmark::State &state) {
  int64_t size = state.range(0) / (4 * sizeof(float));
  Stream p(size), m(size, 1), v(size, 2), g(size, 3);
  int threads = numCores();
  for (auto _ : state) {
    float *first = p.get(), *second = m.get(), *third = v.get();
    const float *gradient = g.get();
#pragma omp parallel for simd num_threads(threads) schedule(static)
    for (int64_t i = 0; i < size; ++i) {
      second[i] += gradient[i];
      third[i] -= gradient[i];
      first[i] += second[i] + third[i];
    }
    benchmark::ClobberMemory();
  }
  setRate(state, "bytes", 7.0 * sizeof(float) * size);
}

/// A thread copies its part over and over: barriers are not part of the limit.
static void measureCopy(benchmark::State &state) {
  int64_t size = state.range(0) / (2 * sizeof(float));
  int64_t rounds = std::max<int64_t>(1, (int64_t(64) << 20) / state.range(0));
  Stream from(size), to(size, 1);
  int threads = numCores();
  for (auto _ : state) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int thread = 0; thread < threads; ++thread) {
      int64_t begin = size * thread / threads;
      int64_t end = size * (thread + 1) / threads;
      for (int64_t round = 0; round < rounds; ++round) {
        std::memcpy(to.get() + begin, from.get() + begin,
                    (end - begin) * sizeof(float));
        benchmark::ClobberMemory();
      }
    }
  }
  setRate(state, "bytes", 2.0 * sizeof(float) * size * rounds);
}

/// The same for the sum of eight streams.
static void measureSum(benchmark::State &state) {
  int64_t size = state.range(0) / (9 * sizeof(float));
  int64_t rounds = std::max<int64_t>(1, (int64_t(64) << 20) / state.range(0));
  std::vector<Stream> streams;
  for (int number = 0; number < 9; ++number)
    streams.emplace_back(size, number);
  int threads = numCores();
  for (auto _ : state) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int thread = 0; thread < threads; ++thread) {
      int64_t begin = size * thread / threads;
      int64_t end = size * (thread + 1) / threads;
      const float *in[8];
      for (int number = 0; number < 8; ++number)
        in[number] = streams[number].get();
      float *sum = streams[8].get();
      for (int64_t round = 0; round < rounds; ++round) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i)
          sum[i] = in[0][i] + in[1][i] + in[2][i] + in[3][i] + in[4][i] +
                   in[5][i] + in[6][i] + in[7][i];
        benchmark::ClobberMemory();
      }
    }
  }
  setRate(state, "bytes", 9.0 * sizeof(float) * size * rounds);
}

static void pinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // If that is not allowed, the figure is that of two threads on any cores.
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/// Two threads on cores of their own answer each other through one cache line.
static void measureLatency(benchmark::State &state) {
  constexpr int turns = 10000;
  if (numCores() < 2) {
    state.SkipWithError("needs two cores");
    return;
  }
  alignas(64) std::atomic<int> ball{0};
  auto play = [&](int core) {
    pinTo(core);
    for (int turn = core; turn < 2 * turns; turn += 2) {
      while (ball.load(std::memory_order_acquire) != turn)
        _mm_pause();
      ball.store(turn + 1, std::memory_order_release);
    }
  };
  for (auto _ : state) {
    ball = 0;
    std::thread left(play, 0), right(play, 1);
    left.join();
    right.join();
  }
  setSeconds(state, 2 * turns);
}

void shardc::rt::bench::registerLimits() {
  for (const MultiplyAdds &adds : multiplyAdds())
    add(std::string("limit/flops_") + adds.features,
        [adds](benchmark::State &state) { measurePeak(state, adds); });
  // Far above every cache, and the size of a bucket of 16 MiB with its Adam
  // states.
  add("limit/triad", measureTriad)->Arg(int64_t(384) << 20);
  add("limit/triad", measureTriad)->Arg(int64_t(64) << 20);
  add("limit/update", measureUpdate)->Arg(int64_t(64) << 20);
  add("limit/core_to_core", measureLatency);
  // The bytes that all-reduces over eight devices read and write.
  for (int64_t bytes : allReduceBytes) {
    add("limit/copy", measureCopy)->Arg(2 * numDevices * bytes);
    add("limit/sum", measureSum)->Arg((numDevices + 1) * bytes);
  }
}
