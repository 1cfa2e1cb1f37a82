//===- MeasureMachine.cpp - This computer as a machine file ---------------===//
//
// Measures the rates that the runtime attains here on all cores: library GEMMs,
// copies in memory, collectives between eight virtual devices. Prints a machine
// file for --machine (docs/Machines.md). Figures are the best of several runs.
//
//===----------------------------------------------------------------------===//

#include "base/UsableCpus.h"
#include "collectives/Collectives.h"
#include "exec/MeasureRates.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace shardc::rt;

/// The time spent on each figure.
static constexpr double seconds = 0.5;

[[noreturn]] static void fail(const absl::Status &status) {
  std::fprintf(stderr, "shardc-measure-machine: %s\n",
               status.ToString().c_str());
  std::exit(1);
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
  double best = measureJob(pool, seconds, rounds, [&](int worker) {
    for (int64_t task = worker; task < (*collective)->numTasks();
         task += pool.size())
      if (absl::Status status = (*collective)->runTask(task); !status.ok())
        fail(status);
  });
  return {best, bytes};
}

int main() {
  WorkerPool pool(findUsableCpus().count());
  double f32 = measureGemm(pool, seconds, DType::F32);
  double bf16 = measureGemm(pool, seconds, DType::BF16);
  double memory = measureMemory(pool, seconds);
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
