//===- HostLayoutTest.cpp - Inputs of runs on the host --------------------===//

#include "backends/cuda/HostLayout.h"
#include "exec/Shards.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace shardc::rt;
using shardc::rt::cuda::HostLayout;

/// A batch of `plan` for which `threads` threads copied "x".
static std::vector<char> scatter(const PlanSpec &plan, int threads,
                                 const std::vector<float> &x) {
  HostLayout host(plan, {0, 1, 2}, threads);
  std::vector<char> batch(host.bytes(), 'u');
  const std::vector<int64_t> &shape = plan.tensors[0].shape;
  host.scatter(0, {{"x", {DType::F32, shape, x.data()}}}, batch.data());
  return batch;
}

TEST(HostLayoutTest, ThreadsCopyTheSame) {
  std::vector<float> x(1001 * 2050);
  std::iota(x.begin(), x.end(), 0);
  // Rows, columns and copies of all, over three devices.
  for (const Sharding &sharding :
       {Sharding{{{0}, {}}}, Sharding{{{}, {0}}}, Sharding{{{}, {}}}}) {
    PlanSpec plan;
    plan.mesh = Mesh({{"data", 3}});
    plan.alignment = 64;
    TensorSpec &tensor = plan.tensors.emplace_back();
    tensor.name = "x";
    tensor.role = Role::Input;
    tensor.dtype = DType::F32;
    tensor.shape = {1001, 2050};
    tensor.sharding = sharding;
    Shard first = shardOf(plan.mesh, sharding, tensor.shape, 0);
    tensor.bytes = 4 * first.local[0] * first.local[1];
    std::vector<char> batch = scatter(plan, 1, x);
    for (int threads : {2, 5, 8})
      EXPECT_TRUE(scatter(plan, threads, x) == batch) << threads;
    HostLayout host(plan, {0, 1, 2}, 1);
    for (int64_t device = 0; device < 3; ++device) {
      Shard shard = shardOf(plan.mesh, sharding, tensor.shape, device);
      std::vector<char> expected(tensor.bytes, 'u');
      scatterShard(shard, DType::F32, tensor.shape, x.data(), expected.data());
      ASSERT_TRUE(host.offsetOf(0, device).has_value());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                             batch.begin() + *host.offsetOf(0, device)))
          << device;
    }
  }
}
