//===- JoinNeighboursTest.cpp - One region instead of several tensors -----===//

#include "collectives/Collectives.h"

#include <gtest/gtest.h>

using namespace shardc::rt;

namespace {

constexpr uint64_t alignment = 64;

/// An all-reduce over two devices whose arenas are `a` and `b`: tensors with
/// sizes and places in elements.
struct Arenas {
  std::vector<float> a = std::vector<float>(256), b = a;

  CollectiveSpec
  spec(const std::vector<std::pair<int64_t, int64_t>> &sizesAndPlaces,
       int64_t resultShift = 0) {
    CollectiveSpec spec{CollectiveKind::AllReduce, Reduction::Sum, {0}, {}, {}};
    for (auto [size, place] : sizesAndPlaces)
      spec.tensors.push_back(
          {DType::F32,
           {size},
           {size},
           0,
           -1,
           {&a[place], &b[place]},
           {&a[place + resultShift], &b[place + resultShift]}});
    return spec;
  }
};

TEST(JoinNeighboursTest, JoinsWhatLiesOneBehindTheOther) {
  Arenas arenas;
  CollectiveSpec spec = arenas.spec({{10, 0}, {16, 16}, {3, 32}, {5, 64}});
  joinNeighbours(spec, alignment);
  // From 35 to 64 there is more than padding.
  ASSERT_EQ(spec.tensors.size(), 2u);
  EXPECT_EQ(spec.tensors[0].inShape, std::vector<int64_t>{35});
  EXPECT_EQ(spec.tensors[0].outShape, std::vector<int64_t>{35});
  EXPECT_EQ(spec.tensors[0].in[1], &arenas.b[0]);
  EXPECT_EQ(spec.tensors[1].inShape, std::vector<int64_t>{5});
}

TEST(JoinNeighboursTest, SumsTheSameBits) {
  Arenas joined;
  for (int i = 0; i < 256; ++i) {
    joined.a[i] = 0.1f * float(i);
    joined.b[i] = 1e4f / float(i + 1);
  }
  Arenas apart = joined;
  auto run = [](CollectiveSpec spec) {
    auto prepared = createInProcessCollectives()->prepare(Mesh({{"d", 2}}),
                                                          std::move(spec));
    ASSERT_TRUE(prepared.ok());
    for (int64_t task = 0; task < (*prepared)->numTasks(); ++task)
      ASSERT_TRUE((*prepared)->runTask(task).ok());
  };
  CollectiveSpec spec = joined.spec({{10, 0}, {16, 16}}, 128);
  joinNeighbours(spec, alignment);
  EXPECT_EQ(spec.tensors.size(), 1u);
  run(std::move(spec));
  run(apart.spec({{10, 0}, {16, 16}}, 128));
  for (int i = 0; i < 256; ++i)
    if (i < 128 + 10 || i >= 128 + 16) {
      EXPECT_EQ(joined.a[i], apart.a[i]) << i;
      EXPECT_EQ(joined.b[i], apart.b[i]) << i;
    }
}

TEST(JoinNeighboursTest, LeavesOthersApart) {
  auto countJoined = [](CollectiveSpec spec) {
    joinNeighbours(spec, alignment);
    return spec.tensors.size();
  };
  Arenas arenas;
  // In another order, and overlapping.
  EXPECT_EQ(countJoined(arenas.spec({{16, 16}, {16, 0}})), 2u);
  EXPECT_EQ(countJoined(arenas.spec({{16, 0}, {16, 8}})), 2u);
  // Other element types.
  CollectiveSpec types = arenas.spec({{16, 0}, {16, 16}});
  types.tensors[1].dtype = DType::I32;
  EXPECT_EQ(countJoined(types), 2u);
  // Results elsewhere, or elsewhere on one device.
  CollectiveSpec results = arenas.spec({{16, 0}, {16, 16}}, 64);
  results.tensors[1].out = {&arenas.a[128], &arenas.b[128]};
  EXPECT_EQ(countJoined(results), 2u);
  CollectiveSpec device = arenas.spec({{16, 0}, {16, 16}});
  device.tensors[1].in[1] = &arenas.b[32];
  EXPECT_EQ(countJoined(device), 2u);
  // Another kind: its result is not one region of its operand's.
  CollectiveSpec gather = arenas.spec({{16, 0}, {16, 16}}, 64);
  gather.kind = CollectiveKind::AllGather;
  EXPECT_EQ(countJoined(gather), 2u);
}

} // namespace
