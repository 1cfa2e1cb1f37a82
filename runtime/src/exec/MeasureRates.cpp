//===- MeasureRates.cpp - What this computer attains ----------------------===//

#include "exec/MeasureRates.h"

#include "backends/cpu/MicroKernels.h"
#include "exec/RunGemm.h"

#include <cstring>
#include <vector>

using namespace shardc::rt;

double shardc::rt::measureGemm(WorkerPool &pool, double seconds, DType dtype,
                               int64_t rows, int64_t columns) {
  constexpr int64_t terms = 1024;
  GemmCommand command{};
  command.bias = -1;
  command.batch = 1;
  command.m = rows;
  command.n = columns;
  command.k = terms;
  auto gemm = PreparedGemm::prepare(command, {dtype, dtype});
  // All zero: a number in either type.
  std::vector<float> a(rows * terms), b(terms * columns), c(rows * columns);
  std::vector<float> packed(gemm->packedBytes() / sizeof(float));
  GemmOperands operands{a.data(), b.data(), nullptr, c.data(), packed.data()};
  double best = measureJob(pool, seconds, 1, [&](int worker) {
    runGemm(*gemm, operands, pool, worker);
  });
  return 2.0 * rows * columns * terms / best;
}

/// Copies of `slice` bytes on each worker, from and to places that follow one
/// another in `bytes` bytes.
template <typename Copy>
static double measureCopies(WorkerPool &pool, double seconds, size_t bytes,
                            size_t slice, int rounds, Copy copy) {
  std::vector<std::vector<char>> from, to;
  for (int worker = 0; worker < pool.size(); ++worker) {
    from.emplace_back(bytes, 1);
    to.emplace_back(bytes, 2);
  }
  std::vector<size_t> next(pool.size());
  double best = measureJob(pool, seconds, rounds, [&](int worker) {
    size_t offset = next[worker];
    copy(&to[worker][offset], &from[worker][offset], slice);
    next[worker] = (offset + slice) % bytes;
  });
  return 2.0 * slice * pool.size() / best;
}

/// Seconds in which each worker computes a tile of a GEMM, in its cache.
static double measureTile(WorkerPool &pool, double seconds,
                          const MicroKernels &kernels, int64_t columns,
                          int64_t terms) {
  const int64_t rows = kernels.maxRows, lanes = kernels.lanes;
  const int64_t vectors = (columns + lanes - 1) / lanes;
  MicroKernel kernel =
      kernels.kernel(MicroKernels::Use::Packed, rows, vectors * lanes,
                     /*rowsAreAdjacent=*/false);
  struct Factors {
    std::vector<float> a, b, c;
  };
  std::vector<Factors> factors;
  for (int worker = 0; worker < pool.size(); ++worker)
    factors.push_back({std::vector<float>(rows * terms),
                       std::vector<float>(vectors * lanes * terms),
                       std::vector<float>(rows * columns)});
  constexpr int repeats = 1000;
  double best = measureJob(pool, seconds, 1, [&](int worker) {
    Factors &own = factors[worker];
    MicroFactors of{own.a.data(), own.b.data(), terms, 1, vectors * lanes};
    MicroTile tile{};
    tile.c = own.c.data();
    tile.cRow = columns;
    tile.cColumn = 1;
    tile.columns = columns;
    for (int i = 0; i < repeats; ++i)
      kernel(terms, of, tile);
  });
  return best / repeats;
}

VectorRates shardc::rt::measureVectors(WorkerPool &pool, double seconds) {
  const MicroKernels &kernels = MicroKernels::best();
  VectorRates rates;
  rates.lanes = kernels.lanes;
  constexpr int64_t few = 8, many = 128;
  auto measure = [&](int64_t columns, int64_t terms) {
    return measureTile(pool, seconds / 3, kernels, columns, terms);
  };
  double atFew = measure(kernels.maxColumns(), few);
  double perTerm = (measure(kernels.maxColumns(), many) - atFew) / (many - few);
  double partial = measure(std::max<int64_t>(rates.lanes / 2, 1), few);
  // Other work on the computer held up one of them.
  if (perTerm <= 0)
    return rates;
  rates.terms = std::max(0.0, atFew / perTerm - few);
  rates.partialTerms =
      std::max(0.0, partial * double(kernels.maxVectors) / perTerm - few);
  return rates;
}

/// As an elementwise kernel does; a memcpy of few bytes may be slower.
static void addOne(char *to, const char *from, size_t bytes) {
  auto *sums = reinterpret_cast<float *>(to);
  auto *values = reinterpret_cast<const float *>(from);
  for (size_t i = 0; i < bytes / sizeof(float); ++i)
    sums[i] = values[i] + 1;
}

double shardc::rt::measureMemory(WorkerPool &pool, double seconds) {
  return measureCopies(pool, seconds, size_t(256) << 20, size_t(16) << 20, 1,
                       std::memcpy);
}

double shardc::rt::measureMemoryOf(WorkerPool &pool, double seconds,
                                   size_t bytes) {
  // A whole number of slices of at most 1 MiB.
  const size_t own = std::max<size_t>(bytes / 2 / pool.size(), 64);
  const size_t slices = (own + (size_t(1) << 20) - 1) >> 20;
  const size_t slice = own / slices / sizeof(float) * sizeof(float);
  int rounds = std::clamp<int>((size_t(4) << 20) / slice, 1, 100);
  return measureCopies(pool, seconds, slices * slice, slice, rounds, addOne);
}

double shardc::rt::measureCache(WorkerPool &pool, double seconds) {
  return measureCopies(pool, seconds, size_t(64) << 10, size_t(64) << 10, 100,
                       addOne);
}

double shardc::rt::measureExchange(WorkerPool &pool, double seconds) {
  constexpr size_t count = (size_t(64) << 10) / sizeof(float);
  constexpr size_t line = 64 / sizeof(float), rowLines = 8;
  std::vector<std::vector<float>> written(pool.size(),
                                          std::vector<float>(count));
  std::vector<std::vector<float>> read = written;
  auto measure = [&](int from) {
    return measureJob(pool, seconds / 2, 20, [&](int worker) {
      for (float &value : written[worker])
        value += 1;
      pool.barrier();
      const std::vector<float> &other =
          written[(worker + from) % written.size()];
      // Line by line down the columns, as GEMMs read rows that they add up.
      for (size_t column = 0; column < rowLines; ++column) {
        float *sums = &read[worker][column * line];
        for (size_t at = column * line; at < count; at += rowLines * line)
          for (size_t i = 0; i < line; ++i)
            sums[i] += other[at + i];
      }
    });
  };
  double own = measure(0), others = measure(1);
  double bytes = double(count * sizeof(float)) * pool.size();
  return others > own ? bytes / (others - own) : 0;
}
