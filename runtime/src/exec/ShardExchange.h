//===- ShardExchange.h - Arrays whose shards are elsewhere ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_SHARDEXCHANGE_H
#define SHARDC_RT_SRC_EXEC_SHARDEXCHANGE_H

#include "plan/PlanSpec.h"
#include "shardc-rt/HostArray.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <functional>
#include <string>
#include <vector>

namespace shardc::rt {

/// Completes global arrays on the host between processes that hold devices of
/// the mesh, those of `devicesOfProcess` each. It is meant for rare or small
/// reads. Values that all processes have, such as the loss without a pipeline,
/// are not sent.
class ShardExchange {
public:
  /// Returns the bytes that the processes pass, by process. All of them call it
  /// in the same order, with the same `what`, which is a predicate of theirs:
  /// "reading w".
  using GatherAll = std::function<absl::StatusOr<std::vector<std::string>>(
      const std::string &what, const std::string &mine)>;

  /// Of process `process` of `processes`. The plan outlives the exchange.
  ShardExchange(const PlanSpec &plan, int process, int processes,
                GatherAll gatherAll)
      : plan(plan), own(process), processes(processes),
        gatherAll(std::move(gatherAll)) {}

  /// `array` has the shards of those devices of this process that are of
  /// pipeline rank `rank`, which holds it; the others are filled in. All
  /// processes call it in the same order.
  [[nodiscard]] absl::Status complete(const std::string &name, int rank,
                                      const Sharding &sharding,
                                      HostArray &array) const {
    return complete(name, rank, sharding, array.dtype, array.shape,
                    array.data.data());
  }
  [[nodiscard]] absl::Status complete(const std::string &name, int rank,
                                      const Sharding &sharding, DType dtype,
                                      absl::Span<const int64_t> shape,
                                      void *array) const;

private:
  /// The first device of the rank that holds each shard.
  std::vector<int64_t> holdersOn(int rank, const Sharding &sharding) const;
  bool isWholeEverywhere(int rank, const Sharding &sharding,
                         absl::Span<const int64_t> shape) const;

  const PlanSpec &plan;
  const int own, processes;
  const GatherAll gatherAll;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_SHARDEXCHANGE_H
