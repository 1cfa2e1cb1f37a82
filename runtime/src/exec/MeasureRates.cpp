//===- MeasureRates.cpp - What this computer attains ----------------------===//

#include "exec/MeasureRates.h"

#include "backends/cpu/MicroKernels.h"
#include "base/Memory.h"
#include "base/VectorClones.h"
#include "exec/RunGemm.h"

#include <cstring>
#include <new>
#include <vector>

using namespace shardc::rt;

MeasuredMemory::MeasuredMemory(size_t bytes) : left(bytes + 4096) {
  if (!memory.allocate(left))
    throw std::bad_alloc();
  memory.touch(left);
  next = memory.get();
}

char *MeasuredMemory::take(size_t bytes) {
  constexpr size_t line = 64;
  char *taken = next;
  next += (bytes + line - 1) / line * line;
  return taken;
}

static std::shared_ptr<const PreparedGemm>
prepareGemm(DType dtype, int64_t rows, int64_t columns, int64_t terms,
            bool transposeB) {
  GemmCommand command{};
  command.bias = -1;
  command.batch = 1;
  command.m = rows;
  command.n = columns;
  command.k = terms;
  command.transposeB = transposeB;
  return PreparedGemm::prepare(command, {dtype, dtype});
}

double shardc::rt::measureGemm(WorkerPool &pool, double seconds, DType dtype,
                               int64_t rows, int64_t columns, int64_t terms) {
  auto gemm = prepareGemm(dtype, rows, columns, terms, /*transposeB=*/false);
  // All zero: a number in either type.
  const int64_t a = rows * terms, b = terms * columns, c = rows * columns;
  const size_t bytes = (a + b + c) * sizeof(float) + gemm->packedBytes();
  MeasuredMemory memory(bytes + 4 * 64);
  GemmOperands operands{memory.takeFloats(a), memory.takeFloats(b), nullptr,
                        memory.takeFloats(c), memory.take(gemm->packedBytes())};
  double best = measureJob(pool, seconds, 1, [&](int worker) {
    runGemm(*gemm, operands, pool, worker);
  });
  return 2.0 * rows * columns * terms / best;
}

double shardc::rt::measureFactors(WorkerPool &pool, double seconds,
                                  int64_t rows, int64_t columns, int64_t terms,
                                  int64_t factors) {
  const std::shared_ptr<const PreparedGemm> gemms[] = {
      prepareGemm(DType::F32, rows, columns, terms, /*transposeB=*/false),
      prepareGemm(DType::F32, rows, columns, terms, /*transposeB=*/true)};
  const int64_t a = rows * terms, b = terms * columns, c = rows * columns;
  const size_t packed =
      std::max(gemms[0]->packedBytes(), gemms[1]->packedBytes());
  MeasuredMemory memory((a + factors * b + c) * sizeof(float) + packed +
                        4 * 64);
  float *left = memory.takeFloats(a), *right = memory.takeFloats(factors * b);
  const GemmOperands first{left, right, nullptr, memory.takeFloats(c),
                           memory.take(packed)};
  // The next turn of each worker, in a line of its own.
  struct alignas(64) Turn {
    int64_t number = 0;
  };
  std::vector<Turn> turns(pool.size());
  double best = measureJob(pool, seconds, int(2 * factors), [&](int worker) {
    const int64_t turn = turns[worker].number++;
    GemmOperands operands = first;
    operands.b = right + turn % factors * b;
    runGemm(*gemms[turn / factors % 2], operands, pool, worker);
  });
  return 2.0 * rows * columns * terms / best;
}

/// Copies of `slice` bytes on each worker, from and to places that follow one
/// another in `bytes` bytes.
template <typename Copy>
static double measureCopies(WorkerPool &pool, double seconds, size_t bytes,
                            size_t slice, int rounds, Copy copy) {
  constexpr size_t apart = MeasuredMemory::apart, page = 2 * apart;
  const size_t whole = (bytes + page - 1) / page * page;
  struct Places {
    char *from, *to;
    size_t next = 0;
  };
  MeasuredMemory memory(pool.size() * (2 * whole + page));
  std::vector<Places> places(pool.size());
  for (Places &own : places) {
    own.from = memory.take(whole + apart);
    own.to = memory.take(whole + apart);
  }
  double best = measureJob(pool, seconds, rounds, [&](int worker) {
    Places &own = places[worker];
    copy(own.to + own.next, own.from + own.next, slice);
    own.next = (own.next + slice) % bytes;
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
    float *a, *b, *c;
  };
  const int64_t a = rows * terms, b = vectors * lanes * terms;
  const int64_t c = rows * columns;
  MeasuredMemory memory(pool.size() * ((a + b + c) * sizeof(float) + 4096));
  std::vector<Factors> factors;
  for (int worker = 0; worker < pool.size(); ++worker)
    factors.push_back(
        {memory.takeFloats(a), memory.takeFloats(b), memory.takeFloats(c)});
  constexpr int repeats = 1000;
  double best = measureJob(pool, seconds, 1, [&](int worker) {
    Factors &own = factors[worker];
    MicroFactors of{own.a, own.b, terms, 1, vectors * lanes};
    MicroTile tile{};
    tile.c = own.c;
    tile.cRow = columns;
    tile.cColumn = 1;
    tile.columns = columns;
    for (int i = 0; i < repeats; ++i)
      kernel(terms, of, tile);
  });
  return best / repeats;
}

static constexpr int64_t fewTerms = 8, manyTerms = 128;

TileSeconds shardc::rt::measureTiles(WorkerPool &pool, double seconds) {
  const MicroKernels &kernels = MicroKernels::best();
  auto measure = [&](int64_t columns, int64_t terms) {
    return measureTile(pool, seconds / 3, kernels, columns, terms);
  };
  return {measure(kernels.maxColumns(), fewTerms),
          measure(kernels.maxColumns(), manyTerms),
          measure(std::max<int64_t>(kernels.lanes / 2, 1), fewTerms)};
}

VectorRates shardc::rt::getVectorRates(const TileSeconds &tiles) {
  const MicroKernels &kernels = MicroKernels::best();
  VectorRates rates;
  rates.lanes = kernels.lanes;
  double perTerm = (tiles.many - tiles.few) / (manyTerms - fewTerms);
  // Other work on the computer held up one of them.
  if (perTerm <= 0)
    return rates;
  rates.terms = std::max(0.0, tiles.few / perTerm - fewTerms);
  rates.partialTerms = std::max(
      0.0, tiles.partial * double(kernels.maxVectors) / perTerm - fewTerms);
  return rates;
}

/// As an elementwise kernel does; a memcpy of few bytes may be slower.
SHARDC_VECTOR_CLONES
static void addOne(char *to, const char *from, size_t bytes) {
  auto *__restrict sums = reinterpret_cast<float *>(to);
  auto *__restrict values = reinterpret_cast<const float *>(from);
  for (size_t i = 0; i < bytes / sizeof(float); ++i)
    sums[i] = values[i] + 1;
}

double shardc::rt::measureMemory(WorkerPool &pool, double seconds) {
  return measureCopies(pool, seconds, size_t(256) << 20, size_t(16) << 20, 1,
                       std::memcpy);
}

namespace {

/// Memory in a whole number of slices of at most 1 MiB.
struct Slices {
  explicit Slices(size_t bytes)
      : count((std::max<size_t>(bytes, 64) + (size_t(1) << 20) - 1) >> 20),
        each(std::max<size_t>(bytes, 64) / count / sizeof(float) *
             sizeof(float)) {}
  /// Slices that are timed together.
  int rounds() const {
    return std::clamp<int>((size_t(4) << 20) / each, 1, 100);
  }

  size_t count, each;
};

} // namespace

double shardc::rt::measureMemoryOf(WorkerPool &pool, double seconds,
                                   size_t bytes) {
  const Slices slices(bytes / 2 / pool.size());
  return measureCopies(pool, seconds, slices.count * slices.each, slices.each,
                       slices.rounds(), addOne);
}

SHARDC_VECTOR_CLONES
static void incrementAll(float *values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] += 1;
}

double shardc::rt::measureReplacing(WorkerPool &pool, double seconds,
                                    size_t bytes) {
  const Slices slices(bytes / pool.size());
  const size_t own = slices.count * slices.each;
  MeasuredMemory memory(pool.size() * (own + 64));
  struct Place {
    char *values;
    size_t next = 0;
  };
  std::vector<Place> places(pool.size());
  for (Place &place : places)
    place.values = memory.take(own);
  double best = measureJob(pool, seconds, slices.rounds(), [&](int worker) {
    Place &place = places[worker];
    incrementAll(reinterpret_cast<float *>(place.values + place.next),
                 slices.each / sizeof(float));
    place.next = (place.next + slices.each) % own;
  });
  return 2.0 * slices.each * pool.size() / best;
}

double shardc::rt::measureCache(WorkerPool &pool, double seconds) {
  return measureCopies(pool, seconds, size_t(64) << 10, size_t(64) << 10, 100,
                       addOne);
}

SHARDC_VECTOR_CLONES
static void addAll(float *__restrict sums, size_t numSums, const float *values,
                   size_t count) {
  for (size_t at = 0; at < count; at += numSums)
    for (size_t i = 0; i < numSums; ++i)
      sums[i] += values[at + i];
}

ExchangeSeconds shardc::rt::measureExchange(WorkerPool &pool, double seconds,
                                            size_t bytes) {
  constexpr size_t numSums = 256;
  const size_t count = std::max<size_t>(
      bytes / pool.size() / sizeof(float) / numSums * numSums, numSums);
  // All workers at the same distances.
  MeasuredMemory memory(pool.size() * ((count + numSums) * sizeof(float) +
                                       2 * MeasuredMemory::apart));
  std::vector<float *> written, sums;
  for (int worker = 0; worker < pool.size(); ++worker) {
    written.push_back(memory.takeFloats(count));
    memory.take(MeasuredMemory::apart);
    sums.push_back(memory.takeFloats(numSums));
    memory.take(MeasuredMemory::apart);
  }
  auto measure = [&](int from) {
    return measureJob(pool, seconds / 2, 20, [&](int worker) {
      incrementAll(written[worker], count);
      pool.barrier();
      addAll(sums[worker], numSums, written[(worker + from) % pool.size()],
             count);
    });
  };
  double own = measure(0);
  return {own, measure(1)};
}
