//===- MeasureProcesses.cpp - Processes as a machine file -----------------===//

#include "MeasureProcesses.h"

#include "MeasureMachine.h"

#include "collectives/BetweenProcesses.h"
#include "exec/MeasureRates.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace shardc::run;
using namespace shardc::rt;

using Json = nlohmann::ordered_json;

/// The time spent on each rate.
static constexpr double secondsOfRate = 0.5;

namespace {

/// A group: so many processes, whose neighbours are so far apart.
struct Group {
  int64_t devices, apart;
  std::string name() const {
    return apart == 1 ? absl::StrCat("devices=", devices)
                      : absl::StrCat("devices=", devices, ",apart=", apart);
  }
};

/// Times collectives between all processes, one device in each.
class CollectiveTimer {
public:
  CollectiveTimer(WorkerPool &pool, Transport &transport)
      : pool(pool), transport(transport),
        collectives(createCollectivesBetweenProcesses(transport)) {}

  /// Of about `bytes` that each process sends; `sent` is how many they are.
  absl::StatusOr<double> measure(CollectiveKind kind, Group group,
                                 int64_t bytes, uint64_t &sent) {
    const int64_t all = transport.size();
    const Mesh mesh({{"outer", all / (group.devices * group.apart)},
                     {"group", group.devices},
                     {"inner", group.apart}});
    CollectiveSpec spec;
    spec.kind = kind;
    spec.axes = {1};
    spec.tensors = {makeTensor(kind, group.devices, bytes)};
    if (kind == CollectiveKind::CollectivePermute) {
      spec.targetAxes = {1};
      for (int64_t member = 0; member < group.devices; ++member)
        spec.sources.push_back(int((member + 1) % group.devices));
    }
    CollectiveTensor &tensor = spec.tensors[0];
    std::vector<float> in(numElements(tensor.inShape), 1.0f),
        out(numElements(tensor.outShape), 0.0f);
    tensor.in.assign(all, nullptr);
    tensor.out.assign(all, nullptr);
    tensor.in[transport.rank()] = in.data();
    tensor.out[transport.rank()] = out.data();
    sent = wireBytes(mesh, spec);
    auto prepared = collectives->prepare(mesh, std::move(spec));
    if (!prepared.ok())
      return prepared.status();
    return run(**prepared, bytes);
  }

private:
  /// Elements of f32 of which about `bytes` are sent.
  static CollectiveTensor makeTensor(CollectiveKind kind, int64_t members,
                                     int64_t bytes) {
    // An all-reduce sends both ways.
    double share = double(members - 1) / double(members) *
                   (kind == CollectiveKind::AllReduce ? 2 : 1);
    if (kind == CollectiveKind::CollectivePermute)
      share = 1;
    int64_t part = std::max<int64_t>(
        1, std::llround(double(bytes) /
                        (share * sizeof(float) * double(members))));
    CollectiveTensor tensor;
    tensor.dtype = DType::F32;
    tensor.inShape = tensor.outShape = {members, part};
    if (kind == CollectiveKind::AllGather)
      tensor.inShape[0] = 1;
    if (kind == CollectiveKind::ReduceScatter)
      tensor.outShape[0] = 1;
    if (kind == CollectiveKind::AllToAll) {
      tensor.splitDim = 0;
      tensor.dim = 1;
      tensor.outShape = {1, members * part};
    }
    return tensor;
  }

  /// The best of several batches of as many runs in every process.
  absl::StatusOr<double> run(PreparedCollective &collective, int64_t bytes) {
    const int rounds = int(std::clamp<int64_t>((4 << 20) / bytes, 2, 64));
    absl::Status failure;
    std::mutex mutex;
    auto runPart = [&](PreparedCollective *part, int worker) {
      for (int64_t task = worker; part && task < part->numTasks();
           task += pool.size())
        if (absl::Status status = part->runTask(task); !status.ok()) {
          std::lock_guard<std::mutex> lock(mutex);
          failure.Update(status);
        }
      pool.barrier();
    };
    double best = 1e300;
    for (int batch = 0; batch < 6; ++batch)
      best = std::min(best,
                      measureJob(pool, /*seconds=*/0, rounds, [&](int worker) {
                        runPart(collective.start(), worker);
                        for (PreparedCollective *part = &collective; part;
                             part = part->next())
                          runPart(part, worker);
                      }));
    if (!failure.ok())
      return failure;
    return best;
  }

  WorkerPool &pool;
  Transport &transport;
  std::unique_ptr<Collectives> collectives;
};

} // namespace

/// All groups of at least two that divide `all` processes: neighbours, and
/// those of which each member is in another run of neighbours.
static std::vector<Group> listGroups(int64_t all) {
  std::vector<Group> groups;
  for (int64_t devices = 2; devices <= all; ++devices)
    if (all % devices == 0) {
      groups.push_back({devices, 1});
      if (devices < all)
        groups.push_back({devices, all / devices});
    }
  return groups;
}

absl::StatusOr<Json> shardc::run::measureProcesses(Context &workers,
                                                   Processes &processes) {
  WorkerPool &pool = workers.workers();
  CollectiveTimer timer(pool, processes.transport());
  static constexpr std::pair<CollectiveKind, const char *> kinds[] = {
      {CollectiveKind::AllReduce, "all_reduce"},
      {CollectiveKind::AllGather, "all_gather"},
      {CollectiveKind::ReduceScatter, "reduce_scatter"},
      {CollectiveKind::AllToAll, "all_to_all"},
      {CollectiveKind::CollectivePermute, "collective_permute"}};
  const int64_t all = processes.size();
  Json collectives;
  for (auto [kind, name] : kinds)
    for (Group group : listGroups(all)) {
      std::vector<std::pair<uint64_t, double>> times;
      for (int64_t bytes = 1 << 10; bytes <= 16 << 20; bytes *= 8) {
        uint64_t sent = 0;
        absl::StatusOr<double> time = timer.measure(kind, group, bytes, sent);
        if (!time.ok())
          return time.status();
        times.emplace_back(sent, *time);
      }
      // Less is no slower than more: it was disturbed.
      for (size_t i = times.size() - 1; i-- > 0;)
        times[i].second = std::min(times[i].second, times[i + 1].second);
      for (auto [sent, time] : times)
        collectives[name][group.name()][std::to_string(sent)] = rounded(time);
    }
  // The same in all processes at about the same time.
  const double f32 = measureGemm(pool, secondsOfRate, DType::F32);
  const double bf16 = measureGemm(pool, secondsOfRate, DType::BF16);
  const double memory = measureMemory(pool, secondsOfRate);
  // A link between all, as of an all-reduce: its steps, and the most bytes.
  const Json &reduce = collectives["all_reduce"][Group{all, 1}.name()];
  const double steps = 2 * std::ceil(std::log2(double(all)));
  Json json;
  json["name"] = absl::StrCat(all, " processes");
  json["source"] =
      absl::StrCat("shardc-run --measure-machine in ", all, " processes, ",
                   processes.localSize(), " on ", processes.host(), ", of ",
                   pool.size(), pool.size() == 1 ? " thread" : " threads");
  json["device"]["flops_per_second"] = {{"f64", rounded(f32 / 2)},
                                        {"f32", rounded(f32)},
                                        {"bf16", rounded(bf16)}};
  json["device"]["memory_bytes"] =
      rounded(double(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE) /
              processes.localSize());
  json["device"]["memory_bytes_per_second"] = rounded(memory);
  const std::string most = std::prev(reduce.end()).key();
  json["default_link"] = {
      {"bytes_per_second",
       rounded(std::stod(most) / reduce[most].get<double>())},
      {"latency_seconds", rounded(reduce.front().get<double>() / steps)}};
  json["collectives"] = std::move(collectives);
  return json;
}
