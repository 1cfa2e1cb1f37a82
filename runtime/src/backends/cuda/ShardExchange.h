//===- ShardExchange.h - Arrays whose shards are elsewhere ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_SHARDEXCHANGE_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_SHARDEXCHANGE_H

#include "plan/PlanSpec.h"
#include "shardc-rt/HostArray.h"
#include "shardc-rt/Store.h"

#include "absl/status/status.h"

namespace shardc::rt::cuda {

/// Completes global arrays on the host between processes that hold devices of
/// the mesh, the same number each, in the order of their ranks. It goes through
/// the store and is meant for rare or small reads. Values that all processes
/// have, such as the loss without a pipeline, are not sent.
class ShardExchange {
public:
  /// `store` is null in a single process; both outlive the exchange.
  ShardExchange(const PlanSpec &plan, Store *store)
      : plan(plan), store(store),
        devicesPerProcess(plan.mesh.numDevices() /
                          (store ? store->ranks().size : 1)) {}

  /// `array` has the shards of those devices of this process that are of
  /// pipeline rank `rank`, which holds it; the others are filled in. All
  /// processes call it in the same order.
  [[nodiscard]] absl::Status complete(const std::string &name, int rank,
                                      const Sharding &sharding,
                                      HostArray &array,
                                      absl::Duration deadline) const;

private:
  /// The first device of the rank that holds each shard.
  std::vector<int64_t> holdersOn(int rank, const Sharding &sharding) const;
  bool isWholeEverywhere(int rank, const Sharding &sharding,
                         absl::Span<const int64_t> shape) const;

  const PlanSpec &plan;
  Store *store;
  const int64_t devicesPerProcess;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_SHARDEXCHANGE_H
