//===- ShardExchange.cpp - Arrays whose shards are elsewhere --------------===//

#include "backends/cuda/ShardExchange.h"

#include "exec/Arrays.h"
#include "exec/Shards.h"

#include "absl/strings/str_cat.h"

#include <set>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

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
  for (int64_t first = 0; first < plan.mesh.numDevices();
       first += devicesPerProcess) {
    std::set<std::vector<int64_t>> starts;
    for (int64_t device = first; device < first + devicesPerProcess; ++device)
      if (plan.rankOf(device) == rank)
        starts.insert(shardOf(plan.mesh, sharding, shape, device).start);
    if (starts.size() < needed)
      return false;
  }
  return true;
}

absl::Status ShardExchange::complete(const std::string &name, int pipelineRank,
                                     const Sharding &sharding, HostArray &array,
                                     absl::Duration deadline) const {
  if (!store || isWholeEverywhere(pipelineRank, sharding, array.shape))
    return absl::OkStatus();
  const std::vector<int64_t> holders = holdersOn(pipelineRank, sharding);
  auto forEachOf = [&](int rank, auto visit) {
    size_t offset = 0;
    for (int64_t holder : holders) {
      if (holder / devicesPerProcess != rank)
        continue;
      Shard shard = shardOf(plan.mesh, sharding, array.shape, holder);
      visit(shard, offset);
      offset += numElements(shard.local) * byteSize(array.dtype);
    }
    return offset;
  };
  int own = store->ranks().rank;
  std::string mine(forEachOf(own, [](const Shard &, size_t) {}), '\0');
  forEachOf(own, [&](const Shard &shard, size_t offset) {
    scatterShard(shard, array.dtype, array.shape, array.data.data(),
                 mine.data() + offset);
  });
  absl::StatusOr<std::vector<std::string>> all =
      store->gatherAll(absl::StrCat("reading ", name), mine, deadline);
  if (!all.ok())
    return all.status();
  for (int rank = 0; rank < store->ranks().size; ++rank) {
    const std::string &bytes = (*all)[rank];
    if (bytes.size() != forEachOf(rank, [](const Shard &, size_t) {}))
      return absl::InternalError(absl::StrCat(
          "rank ", rank, " sent ", bytes.size(), " bytes of ", name));
    forEachOf(rank, [&](const Shard &shard, size_t offset) {
      gatherShard(shard, array.dtype, array.shape, bytes.data() + offset,
                  array.data.data());
    });
  }
  return absl::OkStatus();
}
