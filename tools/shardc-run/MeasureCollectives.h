//===- MeasureCollectives.h - Times of collectives --------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_MEASURECOLLECTIVES_H
#define SHARDC_TOOLS_SHARDC_RUN_MEASURECOLLECTIVES_H

#include "MeasureDevice.h"

#include "collectives/Collectives.h"
#include "exec/WorkerPool.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace shardc::run {

/// A kind of collective and its name in machine files.
struct NamedKind {
  rt::CollectiveKind kind;
  const char *name;
};
/// All but messages of pipelines.
inline constexpr NamedKind collectiveKinds[] = {
    {rt::CollectiveKind::AllReduce, "all_reduce"},
    {rt::CollectiveKind::AllGather, "all_gather"},
    {rt::CollectiveKind::ReduceScatter, "reduce_scatter"},
    {rt::CollectiveKind::AllToAll, "all_to_all"},
    {rt::CollectiveKind::CollectivePermute, "collective_permute"}};

/// A collective of f32 in groups of `members` devices along axis `axis` of a
/// mesh, of which each device sends about `bytes` (rt::wireBytes). Without
/// places in memory.
rt::CollectiveSpec makeCollective(rt::CollectiveKind kind, int axis,
                                  int64_t members, int64_t bytes);

/// Seconds by the bytes that a device sends.
using TimesByBytes = std::map<uint64_t, double>;

/// `times`, of which none is longer than that of more bytes: it was disturbed.
TimesByBytes withoutDisturbances(TimesByBytes times);

/// A group: so many devices, whose neighbours are so far apart.
struct Group {
  int64_t devices, apart;
  /// In machine files.
  std::string name() const;
};

/// All groups of at least two that divide `all` devices: neighbours, and those
/// of which each member is in another run of neighbours.
std::vector<Group> listGroups(int64_t all);

/// A mesh of `all` devices in which `group` is along axis `axisOfGroup`.
rt::Mesh meshOf(Group group, int64_t all);
inline constexpr int axisOfGroup = 1;

/// By kind and group.
using TimesByGroup = std::map<std::string, std::map<std::string, TimesByBytes>>;

/// Writes `times`, without disturbances, and the link between the devices of
/// `all`: the rate of its largest all-reduce, and the latency of a step of the
/// smallest.
void writeCollectives(const TimesByGroup &times, Group all, Json &json);

/// Runs a collective as a program does, with barriers between its parts. Behind
/// the first error nothing runs.
class CollectiveRun {
public:
  CollectiveRun(rt::WorkerPool &pool, rt::PreparedCollective &collective)
      : pool(pool), collective(collective) {}

  /// The share of `worker`. Between the start and the rest, if there is a
  /// start, it calls `meanwhile(worker)`.
  template <typename Job>
  void run(int worker, Job meanwhile) {
    if (rt::PreparedCollective *start = collective.start()) {
      runPart(*start, worker);
      pool.barrier();
      meanwhile(worker);
    }
    for (rt::PreparedCollective *part = &collective; part;
         part = part->next()) {
      runPart(*part, worker);
      if (part->next())
        pool.barrier();
    }
  }

  absl::Status takeFailure();

private:
  void runPart(rt::PreparedCollective &part, int worker);

  rt::WorkerPool &pool;
  rt::PreparedCollective &collective;
  std::atomic<bool> hasFailed = false;
  std::mutex mutex;
  absl::Status failure;
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_MEASURECOLLECTIVES_H
