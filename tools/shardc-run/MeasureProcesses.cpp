//===- MeasureProcesses.cpp - Processes as a machine file -----------------===//

#include "MeasureProcesses.h"

#include "MeasureCollectives.h"

#include "collectives/BetweenProcesses.h"
#include "exec/MeasureRates.h"
#include "exec/RunGemm.h"
#include "shardc-rt/HostArray.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <cmath>

using namespace shardc::run;
using namespace shardc::rt;

/// The time spent on each rate in a pass.
static constexpr double secondsOfRate = 0.2;
static constexpr int passesOfProcesses = 3;

namespace {

/// A collective between all processes, one device in each.
class TimedCollective {
public:
  /// Of about `bytes` that each process sends.
  static absl::StatusOr<std::unique_ptr<TimedCollective>>
  prepare(Transport &transport, Collectives &collectives, CollectiveKind kind,
          Group group, int64_t bytes) {
    const Mesh mesh = meshOf(group, transport.size());
    CollectiveSpec spec =
        makeCollective(kind, axisOfGroup, group.devices, bytes);
    auto timed = std::make_unique<TimedCollective>();
    CollectiveTensor &tensor = spec.tensors[0];
    timed->in.assign(numElements(tensor.inShape), 1.0f);
    timed->out.assign(numElements(tensor.outShape), 0.0f);
    tensor.in.assign(transport.size(), nullptr);
    tensor.out.assign(transport.size(), nullptr);
    tensor.in[transport.rank()] = timed->in.data();
    tensor.out[transport.rank()] = timed->out.data();
    timed->sent = wireBytes(mesh, spec);
    timed->rounds = int(std::clamp<int64_t>((4 << 20) / bytes, 2, 64));
    auto prepared = collectives.prepare(mesh, std::move(spec));
    if (!prepared.ok())
      return prepared.status();
    timed->prepared = *std::move(prepared);
    return timed;
  }

  /// The best of two batches of as many runs in every process, each with
  /// `meanwhile(worker)` between its start and the rest.
  template <typename Job>
  absl::StatusOr<double> measure(WorkerPool &pool, Job meanwhile) {
    CollectiveRun run(pool, *prepared);
    double best = 1e300;
    for (int batch = 0; batch < 2; ++batch)
      best = std::min(
          best, measureJob(pool, /*seconds=*/0, rounds,
                           [&](int worker) { run.run(worker, meanwhile); }));
    if (absl::Status failure = run.takeFailure(); !failure.ok())
      return failure;
    return best;
  }

  uint64_t sent = 0;

private:
  std::vector<float> in, out;
  int rounds = 1;
  std::unique_ptr<PreparedCollective> prepared;
};

/// A GEMM beside which messages move.
class GemmBeside {
public:
  GemmBeside(WorkerPool &pool, Transport &transport)
      : pool(pool), transport(transport) {
    GemmCommand command{};
    command.bias = -1;
    command.batch = 1;
    command.m = command.n = command.k = size;
    gemm = PreparedGemm::prepare(command, {DType::F32, DType::F32});
    packed.resize(gemm->packedBytes() / sizeof(float));
  }

  /// The share of `worker`, so often. As in a program, worker 0 moves messages
  /// behind each tile.
  void run(int worker, int times) {
    GemmOperands operands{a.data(), b.data(), nullptr, c.data(), packed.data()};
    for (int time = 0; time < times; ++time) {
      runGemm(*gemm, operands, pool, worker, [&] {
        if (worker == 0)
          transport.progress();
      });
      pool.barrier();
    }
  }

private:
  static constexpr int64_t size = 256;
  WorkerPool &pool;
  Transport &transport;
  std::unique_ptr<PreparedGemm> gemm;
  std::vector<float> a = std::vector<float>(size * size), b = a, c = a;
  std::vector<float> packed;
};

} // namespace

namespace {
/// A collective and GEMMs that take about as long, alone and beside each other,
/// each at its best.
struct Beside {
  int times = 0; ///< GEMMs, as many in all processes.
  double collective = HUGE_VAL, gemms = HUGE_VAL, both = HUGE_VAL;

  /// The part of the collective's time that is hidden, from 0 to 1.
  double overlap() const {
    return std::clamp((collective + gemms - both) / std::min(collective, gemms),
                      0.0, 1.0);
  }
  absl::Status measure(WorkerPool &pool, Processes &processes,
                       TimedCollective &timed);
};
} // namespace

absl::Status Beside::measure(WorkerPool &pool, Processes &processes,
                             TimedCollective &timed) {
  GemmBeside gemm(pool, processes.transport());
  absl::StatusOr<double> alone = timed.measure(pool, [](int) {});
  if (!alone.ok())
    return alone.status();
  if (times == 0) {
    const double once =
        measureJob(pool, 0.05, 1, [&](int worker) { gemm.run(worker, 1); });
    times = std::max(1, int(std::lround(*alone / once)));
    absl::StatusOr<std::vector<std::string>> all =
        processes.transport().gatherAll(std::to_string(times));
    if (!all.ok())
      return all.status();
    if (!absl::SimpleAtoi(all->front(), &times))
      return absl::InternalError("rank 0 passed no number of runs");
  }
  auto run = [&](int worker) { gemm.run(worker, times); };
  gemms = std::min(gemms, measureJob(pool, 0.05, 1, run));
  absl::StatusOr<double> beside = timed.measure(pool, run);
  if (!beside.ok())
    return beside.status();
  collective = std::min(collective, *alone);
  both = std::min(both, *beside);
  return absl::OkStatus();
}

static absl::StatusOr<Json> measureAll(WorkerPool &pool, Processes &processes) {
  Transport &transport = processes.transport();
  auto createdCollectives = createCollectivesBetweenProcesses(transport);
  const int64_t all = processes.size();
  TimesByGroup times;
  Beside beside;
  DeviceRates device;
  for (int pass = 0; pass < passesOfProcesses; ++pass) {
    for (auto [kind, name] : collectiveKinds)
      for (Group group : listGroups(all))
        for (int64_t bytes = 1 << 10; bytes <= 16 << 20; bytes *= 8) {
          auto collective = TimedCollective::prepare(
              transport, *createdCollectives, kind, group, bytes);
          if (!collective.ok())
            return collective.status();
          absl::StatusOr<double> time =
              (*collective)->measure(pool, [](int) {});
          if (!time.ok())
            return time.status();
          double &best = times[name][group.name()]
                             .try_emplace((*collective)->sent, *time)
                             .first->second;
          best = std::min(best, *time);
        }
    auto large =
        TimedCollective::prepare(transport, *createdCollectives,
                                 CollectiveKind::AllReduce, {all, 1}, 4 << 20);
    if (!large.ok())
      return large.status();
    if (absl::Status status = beside.measure(pool, processes, **large);
        !status.ok())
      return status;
    // The same in all processes at about the same time.
    device.measure(pool, secondsOfRate, {DType::F32, DType::BF16});
  }
  Json json;
  json["name"] = absl::StrCat(all, " processes");
  json["source"] =
      absl::StrCat("shardc-run --measure-machine in ", all, " processes, ",
                   processes.localSize(), " on ", processes.host(), ", of ",
                   pool.size(), pool.size() == 1 ? " thread" : " threads");
  device.write(json, physicalBytes() / processes.localSize());
  json["overlap"] = rounded(beside.overlap());
  writeCollectives(times, {all, 1}, json);
  return json;
}

absl::StatusOr<Json> shardc::run::measureProcesses(WorkerPool &pool,
                                                   Processes &processes) {
  absl::StatusOr<Json> json = measureAll(pool, processes);
  // The others wait for messages of this one.
  if (!json.ok())
    processes.store().fail(json.status());
  return json;
}
