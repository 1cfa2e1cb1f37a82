//===- MeasureMachine.cpp - This computer as a machine file ---------------===//
//
// Measures the rates that the runtime attains here on all cores: library GEMMs,
// copies in memory, collectives between eight virtual devices. Prints a machine
// file for --machine (docs/Machines.md). Figures are the best of several runs.
//
//===----------------------------------------------------------------------===//

#include "base/UsableCpus.h"
#include "collectives/Collectives.h"
#include "exec/RunGemm.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace shardc::rt;

/// The time spent on each figure. Runs are short, so that on a busy computer
/// the best one was not interrupted.
static constexpr double seconds = 0.5;

[[noreturn]] static void fail(const absl::Status &status) {
  std::fprintf(stderr, "shardc-measure-machine: %s\n",
               status.ToString().c_str());
  std::exit(1);
}

/// Shortest time of one `job(worker)` on all workers, which ends with a
/// barrier; `rounds` of them are timed together.
template <typename Job>
static double measure(WorkerPool &pool, int rounds, Job job) {
  double best = 1e300;
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - begin).count() <
         seconds) {
    auto start = Clock::now();
    pool.run([&](int worker) {
      for (int round = 0; round < rounds; ++round) {
        job(worker);
        pool.barrier();
      }
    });
    std::chrono::duration<double> time = Clock::now() - start;
    best = std::min(best, time.count() / rounds);
  }
  return best;
}

/// FLOP/s of a GEMM of squares of 1024.
static double measureGemm(WorkerPool &pool, DType dtype) {
  constexpr int64_t size = 1024;
  GemmCommand command{};
  command.bias = -1;
  command.batch = 1;
  command.m = command.n = command.k = size;
  auto gemm = PreparedGemm::prepare(command, {dtype, dtype});
  // All zero: a number in either type.
  std::vector<float> a(size * size), b(size * size), c(size * size);
  std::vector<float> packed(gemm->packedBytes() / sizeof(float));
  GemmOperands operands{a.data(), b.data(), nullptr, c.data(), packed.data()};
  double seconds = measure(
      pool, 1, [&](int worker) { runGemm(*gemm, operands, pool, worker); });
  return 2.0 * size * size * size / seconds;
}

/// Bytes per second read and written by copies that no cache holds.
static double measureMemory(WorkerPool &pool) {
  constexpr size_t bytes = size_t(256) << 20, slice = size_t(16) << 20;
  std::vector<std::vector<char>> from, to;
  for (int worker = 0; worker < pool.size(); ++worker) {
    from.emplace_back(bytes, 1);
    to.emplace_back(bytes, 2);
  }
  std::vector<size_t> next(pool.size());
  double seconds = measure(pool, 1, [&](int worker) {
    size_t offset = next[worker];
    std::memcpy(&to[worker][offset], &from[worker][offset], slice);
    next[worker] = (offset + slice) % bytes;
  });
  return 2.0 * slice * pool.size() / seconds;
}

/// A collective of `elements` per device between eight devices: seconds, and
/// the bytes that all devices together send.
struct CollectiveTime {
  double seconds;
  double wireBytes;
};
static CollectiveTime measureCollective(WorkerPool &pool, CollectiveKind kind,
                                        int64_t elements, int rounds) {
  constexpr int64_t devices = 8;
  const Mesh mesh({{"x", devices}});
  CollectiveTensor tensor;
  tensor.dtype = DType::F32;
  bool isGather = kind == CollectiveKind::AllGather;
  tensor.inShape = {isGather ? elements / devices : elements};
  tensor.outShape = {elements};
  std::vector<std::vector<float>> in, out;
  for (int64_t device = 0; device < devices; ++device) {
    in.emplace_back(tensor.inShape[0], 1.0f);
    out.emplace_back(elements, 0.0f);
    tensor.in.push_back(in.back().data());
    tensor.out.push_back(out.back().data());
  }
  CollectiveSpec spec;
  spec.kind = kind;
  spec.axes = {0};
  spec.tensors = {tensor};
  double bytes = double(wireBytes(mesh, spec)) * devices;
  auto collective = createInProcessCollectives()->prepare(mesh, spec);
  if (!collective.ok())
    fail(collective.status());
  double seconds = measure(pool, rounds, [&](int worker) {
    for (int64_t task = worker; task < (*collective)->numTasks();
         task += pool.size())
      if (absl::Status status = (*collective)->runTask(task); !status.ok())
        fail(status);
  });
  return {seconds, bytes};
}

int main() {
  WorkerPool pool(findUsableCpus().count());
  double f32 = measureGemm(pool, DType::F32);
  double bf16 = measureGemm(pool, DType::BF16);
  double memory = measureMemory(pool);
  constexpr int64_t large = int64_t(4) << 20;
  CollectiveTime reduce =
      measureCollective(pool, CollectiveKind::AllReduce, large, 1);
  CollectiveTime gather =
      measureCollective(pool, CollectiveKind::AllGather, large, 1);
  // An all-reduce over eight devices counts as six steps.
  CollectiveTime small =
      measureCollective(pool, CollectiveKind::AllReduce, 8, 50);
  std::printf(
      R"({
  "name": "this computer",
  "source": "shardc-measure-machine on %d cores",
  "shared": true,
  "device": {
    "flops_per_second": {"f64": %.3g, "f32": %.3g, "bf16": %.3g},
    "memory_bytes": %.3g,
    "memory_bytes_per_second": %.3g
  },
  "default_link": {"bytes_per_second": %.3g, "latency_seconds": %.2g}
}
)",
      // There are no GEMMs of f64; a vector holds half as many.
      pool.size(), f32 / 2, f32, bf16,
      double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGE_SIZE)), memory,
      (reduce.wireBytes + gather.wireBytes) / (reduce.seconds + gather.seconds),
      small.seconds / 6);
  return 0;
}
