//===- MeasureComputer.cpp - Virtual devices as a machine file ------------===//
//
// Measures in several passes. A virtual machine may be in one of two states,
// for seconds or minutes: its cores are next to each other, or far apart, where
// everything that workers exchange takes two or three times as long. Steps are
// mostly run in the first one; the passes count that were in the faster state
// of those that were seen, and of these the best of each figure.
//
//===----------------------------------------------------------------------===//

#include "MeasureComputer.h"

#include "MeasureCollectives.h"
#include "MeasureCommand.h"

#include "exec/MeasureRates.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <iostream>

using namespace shardc::run;
using namespace shardc::rt;

static constexpr int passesOfComputer = 5;
/// The time spent on most figures in a pass.
static constexpr double secondsOfFigure = 0.12;
/// What workers exchange takes at most so many times as long in the same state.
static constexpr double sameState = 1.4;
static constexpr int64_t numVirtual = 8;

/// Of `spec` between eight virtual devices, measured for `wanted` seconds. If
/// `isShared`, they have one result, which is the same for all.
static absl::StatusOr<double> timeCollective(WorkerPool &pool,
                                             CollectiveSpec spec, int rounds,
                                             double wanted,
                                             bool isShared = false) {
  CollectiveTensor &tensor = spec.tensors[0];
  const int64_t in = numElements(tensor.inShape);
  const int64_t out = numElements(tensor.outShape);
  // Beside the elements lines of caches are filled up.
  MeasuredMemory memory(numVirtual * ((in + out) * sizeof(float) + 2 * 64) +
                        MeasuredMemory::apart);
  for (int64_t device = 0; device < numVirtual; ++device)
    tensor.in.push_back(memory.take(in * sizeof(float)));
  memory.take(MeasuredMemory::apart);
  for (int64_t device = 0; device < numVirtual; ++device)
    tensor.out.push_back(device > 0 && isShared
                             ? tensor.out[0]
                             : memory.take(out * sizeof(float)));
  auto prepared = createInProcessCollectives()->prepare(
      Mesh({{"x", numVirtual}}), std::move(spec));
  if (!prepared.ok())
    return prepared.status();
  CollectiveRun run(pool, **prepared);
  const double time = measureJob(
      pool, wanted, rounds, [&](int worker) { run.run(worker, [](int) {}); });
  if (absl::Status failure = run.takeFailure(); !failure.ok())
    return failure;
  return time;
}

/// The bytes that all devices together read and write, of which each sends
/// `sent`.
static uint64_t movedBytes(CollectiveKind kind, uint64_t sent) {
  constexpr uint64_t all = numVirtual, others = numVirtual - 1;
  switch (kind) {
  case CollectiveKind::AllReduce: // one result
    return sent * all / (2 * others) * (all + 1);
  case CollectiveKind::AllGather: // of parts, and one result
    return sent * all / others * 2;
  case CollectiveKind::ReduceScatter:
    return sent * all / others * (all + 1);
  case CollectiveKind::AllToAll:
    return sent * all / others * 2 * all;
  case CollectiveKind::CollectivePermute:
    return sent * 2 * all;
  }
  return 0;
}

/// A reduce-scatter of `rows` times `columns` elements on each device, which
/// divides them along `dim`.
static CollectiveSpec makeScatter(int64_t rows, int64_t columns, int dim) {
  CollectiveTensor tensor;
  tensor.dtype = DType::F32;
  tensor.inShape = tensor.outShape = {rows, columns};
  tensor.outShape[dim] /= numVirtual;
  tensor.dim = dim;
  return {CollectiveKind::ReduceScatter, Reduction::Sum, {0}, {}, {tensor}};
}

namespace {

/// Figures of one pass, or the best of several.
struct Pass {
  DeviceRates device;
  /// FLOP/s of GEMMs of few rows, by the bytes of the right factors that they
  /// read in turn.
  std::map<size_t, double> fewRows;
  TileSeconds tiles{};
  /// By reuse distance.
  std::map<size_t, double> memory, replacing;
  std::map<size_t, ExchangeSeconds> exchange;
  /// Seconds: workers meet to do next to nothing; the same sums in 8 runs of
  /// 512 elements, and in 512 of 8.
  double meeting = 0, longRuns = 0, shortRuns = 0;
  SmallLayers::Times steps;
  /// Seconds of collectives that no cache holds.
  double largeReduce = 0, largeGather = 0;
  /// By kind.
  std::map<CollectiveKind, TimesByBytes> collectives;

  double exchangeSeconds() const { return exchange.begin()->second.others; }
  void update(const Pass &other);
};

} // namespace

void Pass::update(const Pass &other) {
  auto lower = [](double &value, double than) {
    value = std::min(value, than);
  };
  device.update(other.device);
  lower(tiles.few, other.tiles.few);
  lower(tiles.many, other.tiles.many);
  lower(tiles.partial, other.tiles.partial);
  for (const auto &[bytes, than] : other.exchange) {
    lower(exchange[bytes].own, than.own);
    lower(exchange[bytes].others, than.others);
  }
  auto raise = [](auto &rates, const auto &than) {
    for (const auto &[bytes, rate] : than)
      rates[bytes] = std::max(rates[bytes], rate);
  };
  raise(fewRows, other.fewRows);
  raise(memory, other.memory);
  raise(replacing, other.replacing);
  lower(meeting, other.meeting);
  lower(steps.onAll, other.steps.onAll);
  lower(steps.onOne, other.steps.onOne);
  lower(longRuns, other.longRuns);
  lower(shortRuns, other.shortRuns);
  lower(largeReduce, other.largeReduce);
  lower(largeGather, other.largeGather);
  for (const auto &[kind, times] : other.collectives)
    for (auto [bytes, time] : times)
      lower(collectives[kind][bytes], time);
}

/// GEMMs of few rows, none of whose workers is idle.
static constexpr int64_t fewRows = 32, fewRowsTerms = 1024;
static int64_t fewRowsColumns(WorkerPool &pool) { return 512 * pool.size(); }
/// The bytes of their right factor.
static size_t factorBytes(WorkerPool &pool) {
  return fewRowsTerms * fewRowsColumns(pool) * sizeof(float);
}

static absl::StatusOr<Pass> measurePass(WorkerPool &pool, SmallLayers *layers) {
  Pass pass;
  absl::Status failure;
  auto measure = [&](CollectiveSpec spec, int rounds,
                     double wanted = secondsOfFigure, bool isShared = false) {
    auto time = timeCollective(pool, std::move(spec), rounds, wanted, isShared);
    failure.Update(time.status());
    return time.value_or(0);
  };
  // An element of each device.
  pass.meeting =
      measure(makeCollective(CollectiveKind::AllReduce, 0, numVirtual, 1), 50);
  if (layers) {
    absl::StatusOr<SmallLayers::Times> steps = layers->measure(secondsOfFigure);
    failure.Update(steps.status());
    pass.steps = steps.value_or(SmallLayers::Times());
  }
  pass.longRuns = measure(makeScatter(64, 64, 0), 20);
  pass.shortRuns = measure(makeScatter(64, 64, 1), 20);
  for (auto [kind, name] : collectiveKinds)
    for (int64_t bytes = 1 << 10; bytes <= 4 << 20; bytes *= 16) {
      CollectiveSpec spec = makeCollective(kind, 0, numVirtual, bytes);
      const uint64_t sent = wireBytes(Mesh({{"x", numVirtual}}), spec);
      pass.collectives[kind][sent] = measure(
          std::move(spec), int(std::clamp<int64_t>((1 << 18) / bytes, 1, 50)),
          secondsOfFigure / 6,
          kind == CollectiveKind::AllReduce ||
              kind == CollectiveKind::AllGather);
    }
  // 16 MiB on each device.
  pass.largeReduce = measure(
      makeCollective(CollectiveKind::AllReduce, 0, numVirtual, 28 << 20), 1);
  pass.largeGather = measure(
      makeCollective(CollectiveKind::AllGather, 0, numVirtual, 14 << 20), 1);
  if (!failure.ok())
    return failure;
  pass.device.measure(pool, secondsOfFigure, {DType::BF16});
  // From what the caches of all hold to what none does, as below.
  for (int64_t factors : {1, 2, 4, 6, 8, 16})
    pass.fewRows[factors * factorBytes(pool)] =
        measureFactors(pool, secondsOfFigure, fewRows, fewRowsColumns(pool),
                       fewRowsTerms, factors);
  pass.tiles = measureTiles(pool, secondsOfFigure);
  // From what the cache of a core holds to what it does not.
  for (size_t bytes = 128 << 10; bytes <= size_t(8) << 20; bytes *= 4)
    pass.exchange[bytes] = measureExchange(pool, secondsOfFigure / 2, bytes);
  // From the caches of the cores to what none holds; the rate falls within a
  // factor of two, somewhere.
  for (size_t kibibytes : {256, 1024, 4096, 8192, 16384, 24576, 32768, 65536}) {
    const size_t bytes = kibibytes << 10;
    pass.memory[bytes] = measureMemoryOf(pool, secondsOfFigure / 2, bytes);
    pass.replacing[bytes] = measureReplacing(pool, secondsOfFigure / 2, bytes);
  }
  return pass;
}

absl::StatusOr<Json> shardc::run::measureComputer(Context &context) {
  WorkerPool &pool = context.workers();
  absl::StatusOr<SmallLayers> layers = SmallLayers::create(context);
  if (!layers.ok()) {
    if (!absl::IsNotFound(layers.status()))
      return layers.status();
    std::cerr << layers.status().message()
              << "remark: so command_seconds is that of workers which do no "
                 "more than meet\n";
  }
  std::vector<Pass> passes;
  for (int number = 0; number < passesOfComputer; ++number) {
    absl::StatusOr<Pass> pass =
        measurePass(pool, layers.ok() ? &*layers : nullptr);
    if (!pass.ok())
      return pass.status();
    passes.push_back(*std::move(pass));
  }
  std::sort(passes.begin(), passes.end(), [](const Pass &a, const Pass &b) {
    return a.exchangeSeconds() < b.exchangeSeconds();
  });
  Pass best = passes.front();
  for (const Pass &pass : passes)
    if (pass.exchangeSeconds() <= sameState * passes.front().exchangeSeconds())
      best.update(pass);

  Json json;
  json["name"] = "this computer";
  json["source"] =
      absl::StrCat("shardc-run --measure-machine on ", pool.size(), " threads");
  json["shared"] = true;
  best.device.write(json, physicalBytes());
  // An all-reduce over eight devices counts as six steps.
  json["default_link"] = {
      {"bytes_per_second", rounded(double((28 + 14) << 20) * numVirtual /
                                   (best.largeReduce + best.largeGather))},
      {"latency_seconds", rounded(best.meeting / 6)}};
  Json &computer = json["computer"];
  computer["workers"] = pool.size();
  const VectorRates vectors = getVectorRates(best.tiles);
  computer["vector_lanes"] = vectors.lanes;
  computer["vector_terms"] = rounded(vectors.terms);
  computer["partial_vector_terms"] = rounded(vectors.partialTerms);
  computer["command_seconds"] = rounded(
      layers.ok() ? std::max(best.meeting, layers->ofCommand(best.steps))
                  : best.meeting);
  // Each result of a run is the sum of eight.
  computer["piece_seconds"] =
      rounded(std::max(0.0, best.shortRuns - best.longRuns) / (8 * (512 - 8)));
  // Next to nothing where no worker has what it wrote in its cache any more.
  if (pool.size() > 1)
    for (const auto &[bytes, time] : best.exchange)
      computer["exchange_bytes_per_second"][std::to_string(bytes)] =
          rounded(double(bytes) / std::max(time.others - time.own, 1e-9));
  // What a GEMM of few rows takes beyond its arithmetic, for each byte of its
  // right factor; next to nothing if it has the rate of a large one.
  const double flops = 2.0 * double(fewRows) * double(fewRowsTerms) *
                       double(fewRowsColumns(pool));
  for (const auto &[bytes, rate] : best.fewRows)
    computer["factor_bytes_per_second"][std::to_string(bytes)] =
        rounded(double(factorBytes(pool)) /
                std::max(flops * (1 / rate - 1 / best.device.f32()), 1e-9));
  for (const auto &[bytes, rate] : best.memory)
    computer["memory_bytes_per_second"][std::to_string(bytes)] = rounded(rate);
  computer["memory_bytes_per_second"]["536870912"] =
      rounded(best.device.memory());
  for (const auto &[bytes, rate] : best.replacing)
    computer["replace_bytes_per_second"][std::to_string(bytes)] = rounded(rate);
  for (auto [kind, name] : collectiveKinds) {
    Json times;
    for (auto [sent, time] : withoutDisturbances(best.collectives.at(kind)))
      times[std::to_string(movedBytes(kind, sent))] = rounded(time);
    computer["collectives"][name] = std::move(times);
  }
  return json;
}
