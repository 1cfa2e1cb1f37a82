//===- ShardExchange.h - Arrays whose shards are elsewhere ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_SHARDEXCHANGE_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_SHARDEXCHANGE_H

#include "base/Mesh.h"
#include "shardc-rt/HostArray.h"
#include "shardc-rt/Store.h"

#include "absl/status/status.h"

namespace shardc::rt::cuda {

/// Completes global arrays on the host between processes that hold devices of
/// the mesh, the same number each, in the order of their ranks. It goes through
/// the store and is meant for rare reads. Replicated values, such as the loss,
/// are not sent.
class ShardExchange {
public:
  /// `store` is null in a single process; it outlives the exchange.
  ShardExchange(const Mesh &mesh, Store *store)
      : mesh(mesh), store(store),
        devicesPerRank(mesh.numDevices() / (store ? store->ranks().size : 1)) {}

  /// `array` has the shards of this process's devices; the others are filled
  /// in. All processes call it in the same order.
  [[nodiscard]] absl::Status complete(const std::string &name,
                                      const Sharding &sharding,
                                      HostArray &array,
                                      absl::Duration deadline) const;

private:
  bool isWholeEverywhere(const Sharding &sharding,
                         absl::Span<const int64_t> shape) const;

  const Mesh &mesh;
  Store *store;
  const int64_t devicesPerRank;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_SHARDEXCHANGE_H
