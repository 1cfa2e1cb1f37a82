//===- MeshTest.cpp - Meshes, shards, initial values ----------------------===//

#include "base/Mesh.h"
#include "exec/Shards.h"
#include "init/Initialize.h"
#include "shardc-rt/HostArray.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace shardc::rt;

namespace {

TEST(MeshTest, NumbersDevicesRowMajor) {
  Mesh mesh({{"a", 2}, {"b", 3}, {"c", 2}});
  EXPECT_EQ(mesh.numDevices(), 12);
  EXPECT_EQ(mesh.coordinate(7, 0), 1);
  EXPECT_EQ(mesh.coordinate(7, 1), 0);
  EXPECT_EQ(mesh.coordinate(7, 2), 1);
  EXPECT_EQ(mesh.index(7, {2, 0}), 3);
  EXPECT_EQ(mesh.toString(), "a=2,b=3,c=2");
  EXPECT_EQ(Mesh(std::vector<Mesh::Axis>{}).numDevices(), 1);
}

TEST(MeshTest, GroupsCoverTheDevicesOnce) {
  Mesh mesh({{"a", 2}, {"b", 3}, {"c", 2}});
  for (const std::vector<int> &axes :
       {std::vector<int>{}, {0}, {1}, {2, 0}, {1, 2}, {2, 1, 0}}) {
    std::vector<int> seen(12);
    for (const std::vector<int64_t> &group : mesh.groups(axes)) {
      ASSERT_EQ(int64_t(group.size()), mesh.numShards(axes));
      for (size_t i = 0; i < group.size(); ++i) {
        ++seen[group[i]];
        EXPECT_EQ(mesh.index(group[i], axes), int64_t(i));
      }
    }
    EXPECT_EQ(seen, std::vector<int>(12, 1));
  }
}

TEST(ShardTest, IsCeilAndTrailingOnesMayBeEmpty) {
  Mesh mesh({{"d", 4}});
  Sharding rows{{{0}}};
  int64_t valid30[] = {8, 8, 8, 6}, valid5[] = {2, 2, 1, 0};
  for (int64_t device = 0; device < 4; ++device) {
    EXPECT_EQ(shardOf(mesh, rows, {30}, device).valid[0], valid30[device]);
    EXPECT_EQ(shardOf(mesh, rows, {5}, device).valid[0], valid5[device]);
    EXPECT_EQ(shardOf(mesh, rows, {0}, device).valid[0], 0);
  }
  EXPECT_EQ(localShape(mesh, rows, {30})[0], 8);
}

TEST(ShardTest, MayBeLongerThanCeil) {
  Mesh mesh({{"d", 4}});
  Sharding rows{{{0}, {}}, {12}};
  int64_t start[] = {0, 12, 24, 30}, valid[] = {12, 12, 6, 0};
  for (int64_t device = 0; device < 4; ++device) {
    Shard shard = shardOf(mesh, rows, {30, 5}, device);
    EXPECT_EQ(shard.start, (std::vector<int64_t>{start[device], 0}));
    EXPECT_EQ(shard.valid, (std::vector<int64_t>{valid[device], 5}));
    EXPECT_EQ(shard.local, (std::vector<int64_t>{12, 5}));
  }
}

TEST(ShardTest, ScatterAndGatherAreInverse) {
  Mesh mesh({{"a", 2}, {"b", 3}});
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{7, 5, 4}, {1, 1, 1}, {6, 6, 6}, {2, 0, 3}})
    for (const Sharding &sharding :
         {Sharding{{{0}, {}, {1}}}, Sharding{{{}, {1, 0}, {}}},
          Sharding{{{}, {}, {}}}, Sharding{{{1}, {0}, {}}},
          Sharding{{{}, {}, {0, 1}}}}) {
      HostArray whole(DType::F32, shape), back(DType::F32, shape);
      for (size_t i = 0; i < whole.values<float>().size(); ++i)
        whole.values<float>()[i] = float(i + 1);
      for (int64_t device = 0; device < 6; ++device) {
        Shard shard = shardOf(mesh, sharding, shape, device);
        HostArray local(DType::F32, shard.local);
        scatterShard(shard, DType::F32, shape, whole.data.data(),
                     local.data.data());
        gatherShard(shard, DType::F32, shape, local.data.data(),
                    back.data.data());
      }
      EXPECT_EQ(back.data, whole.data);
    }
}

std::vector<double> draw(InitializerSpec spec, int64_t count, uint64_t seed = 1,
                         absl::string_view name = "w") {
  std::vector<double> values(count);
  int64_t zero = 0;
  EXPECT_TRUE(initializeShard(spec, seed, name, DType::F64, {count}, {zero},
                              {count}, {count}, values.data())
                  .ok());
  return values;
}

std::pair<double, double> moments(const std::vector<double> &values) {
  double mean = 0, square = 0;
  for (double value : values) {
    mean += value;
    square += value * value;
  }
  mean /= values.size();
  return {mean, std::sqrt(square / values.size() - mean * mean)};
}

using Kind = InitializerSpec::Kind;

TEST(InitializeTest, HasTheMomentsOfItsDistribution) {
  constexpr int64_t count = 200000;
  auto [normalMean, normalDeviation] =
      moments(draw({Kind::Normal, 1, 3}, count));
  EXPECT_NEAR(normalMean, 1, 0.03);
  EXPECT_NEAR(normalDeviation, 3, 0.02);
  auto truncated = draw({Kind::TruncatedNormal, 0, 1}, count);
  auto [mean, deviation] = moments(truncated);
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(deviation, 0.87962566, 0.005);
  for (double value : truncated)
    ASSERT_LE(std::fabs(value), 2.0);
  auto uniform = draw({Kind::Uniform, -1, 3}, count);
  EXPECT_NEAR(moments(uniform).first, 1, 0.02);
  for (double value : uniform) {
    ASSERT_GE(value, -1);
    ASSERT_LT(value, 3);
  }
  EXPECT_EQ(draw({Kind::Constant, 2.5, 0}, 3),
            (std::vector<double>{2.5, 2.5, 2.5}));
}

TEST(InitializeTest, DependsOnSeedNameAndIndexAlone) {
  InitializerSpec spec{Kind::Normal, 0, 1};
  EXPECT_EQ(draw(spec, 100), draw(spec, 100));
  EXPECT_NE(draw(spec, 100), draw(spec, 100, 2));
  EXPECT_NE(draw(spec, 100), draw(spec, 100, 1, "v"));

  Mesh mesh({{"a", 2}, {"b", 3}});
  std::vector<int64_t> shape = {7, 5};
  HostArray whole(DType::F32, shape);
  ASSERT_TRUE(initializeShard(spec, 1, "w", DType::F32, shape, {0, 0}, shape,
                              shape, whole.data.data())
                  .ok());
  for (const Sharding &sharding :
       {Sharding{{{0}, {1}}}, Sharding{{{1, 0}, {}}}}) {
    HostArray back(DType::F32, shape);
    for (int64_t device = 0; device < 6; ++device) {
      Shard shard = shardOf(mesh, sharding, shape, device);
      HostArray local(DType::F32, shard.local);
      ASSERT_TRUE(initializeShard(spec, 1, "w", DType::F32, shape, shard.start,
                                  shard.valid, shard.local, local.data.data())
                      .ok());
      gatherShard(shard, DType::F32, shape, local.data.data(),
                  back.data.data());
    }
    EXPECT_EQ(back.data, whole.data);
  }
}

TEST(InitializeTest, RefusesRandomIntegers) {
  int32_t value;
  EXPECT_EQ(initializeShard({Kind::Normal, 0, 1}, 0, "n", DType::I32, {}, {},
                            {}, {}, &value)
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(initializeShard({Kind::Constant, 7, 0}, 0, "n", DType::I32, {},
                              {}, {}, {}, &value)
                  .ok());
  EXPECT_EQ(value, 7);
}

} // namespace
