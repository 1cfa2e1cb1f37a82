//===- ShardExchange.cpp - Arrays whose shards are elsewhere --------------===//

#include "exec/ShardExchange.h"

#include "exec/Arrays.h"
#include "exec/Shards.h"

#include "absl/strings/str_cat.h"

#include <set>

using namespace shardc::rt;

std::vector<int64_t> ShardExchange::holdersOn(int rank,
                                              const Sharding &sharding) const {
  std::vector<int64_t> holders = holdersOf(plan.ranks()[rank].mesh, sharding);
  for (int64_t &holder : holders)
    holder = plan.deviceOf(rank, holder);
  return holders;
}

/// The same answer in every process.
bool ShardExchange::isWholeEverywhere(int rank, const Sharding &sharding,
                                      absl::Span<const int64_t> shape) const {
  size_t needed = holdersOn(rank, sharding).size();
  for (int process = 0; process < processes; ++process) {
    DeviceRange local =
        devicesOfProcess(plan.mesh.numDevices(), process, processes);
    std::set<std::vector<int64_t>> starts;
    for (int64_t device = local.first; device < local.last; ++device)
      if (plan.rankOf(device) == rank)
        starts.insert(shardOf(plan.mesh, sharding, shape, device).start);
    if (starts.size() < needed)
      return false;
  }
  return true;
}

absl::Status ShardExchange::complete(const std::string &name, int pipelineRank,
                                     const Sharding &sharding, DType dtype,
                                     absl::Span<const int64_t> shape,
                                     void *array) const {
  if (processes == 1 || isWholeEverywhere(pipelineRank, sharding, shape))
    return absl::OkStatus();
  const std::vector<int64_t> holders = holdersOn(pipelineRank, sharding);
  auto forEachOf = [&](int process, auto visit) {
    DeviceRange local =
        devicesOfProcess(plan.mesh.numDevices(), process, processes);
    size_t offset = 0;
    for (int64_t holder : holders) {
      if (!local.contains(holder))
        continue;
      Shard shard = shardOf(plan.mesh, sharding, shape, holder);
      visit(shard, offset);
      offset += numElements(shard.local) * byteSize(dtype);
    }
    return offset;
  };
  std::string mine(forEachOf(own, [](const Shard &, size_t) {}), '\0');
  forEachOf(own, [&](const Shard &shard, size_t offset) {
    scatterShard(shard, dtype, shape, array, mine.data() + offset);
  });
  absl::StatusOr<std::vector<std::string>> all =
      gatherAll(absl::StrCat("reading ", name), mine);
  if (!all.ok())
    return all.status();
  for (int process = 0; process < processes; ++process) {
    const std::string &bytes = (*all)[process];
    if (bytes.size() != forEachOf(process, [](const Shard &, size_t) {}))
      return absl::InternalError(absl::StrCat(
          "rank ", process, " sent ", bytes.size(), " bytes of ", name));
    forEachOf(process, [&](const Shard &shard, size_t offset) {
      gatherShard(shard, dtype, shape, bytes.data() + offset, array);
    });
  }
  return absl::OkStatus();
}
