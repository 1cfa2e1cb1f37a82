//===- MeasureRates.cpp - What this computer attains ----------------------===//

#include "exec/MeasureRates.h"

#include "exec/RunGemm.h"

#include <cstring>
#include <vector>

using namespace shardc::rt;

double shardc::rt::measureGemm(WorkerPool &pool, double seconds, DType dtype) {
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
  double best = measureJob(pool, seconds, 1, [&](int worker) {
    runGemm(*gemm, operands, pool, worker);
  });
  return 2.0 * size * size * size / best;
}

/// Copies of `slice` bytes on each worker, from and to places that follow one
/// another in `bytes` bytes.
static double measureCopies(WorkerPool &pool, double seconds, size_t bytes,
                            size_t slice, int rounds) {
  std::vector<std::vector<char>> from, to;
  for (int worker = 0; worker < pool.size(); ++worker) {
    from.emplace_back(bytes, 1);
    to.emplace_back(bytes, 2);
  }
  std::vector<size_t> next(pool.size());
  double best = measureJob(pool, seconds, rounds, [&](int worker) {
    size_t offset = next[worker];
    std::memcpy(&to[worker][offset], &from[worker][offset], slice);
    next[worker] = (offset + slice) % bytes;
  });
  return 2.0 * slice * pool.size() / best;
}

double shardc::rt::measureMemory(WorkerPool &pool, double seconds) {
  return measureCopies(pool, seconds, size_t(256) << 20, size_t(16) << 20, 1);
}

double shardc::rt::measureCache(WorkerPool &pool, double seconds) {
  return measureCopies(pool, seconds, size_t(64) << 10, size_t(64) << 10, 100);
}
