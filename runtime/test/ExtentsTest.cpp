//===- ExtentsTest.cpp - Parts of a file that one process writes ----------===//

#include "checkpoint/Extents.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace shardc::rt;

TEST(ExtentsTest, PacksNothing) {
  Extents extents;
  extents.add(7, 0);
  EXPECT_EQ(extents.pack(5), 5u);
  EXPECT_TRUE(extents.all().empty());
}

TEST(ExtentsTest, JoinsWhatTouches) {
  Extents extents;
  for (uint64_t begin : {30, 10, 20, 50})
    extents.add(begin, 10);
  EXPECT_EQ(extents.pack(100), 140u);
  ASSERT_EQ(extents.all().size(), 2u);
  EXPECT_EQ(extents.all()[0].begin, 10u);
  EXPECT_EQ(extents.all()[0].bytes, 30u);
  EXPECT_EQ(extents.all()[1].begin, 50u);
  EXPECT_EQ(extents.all()[1].place, 130u);
}

TEST(ExtentsTest, KnowsShortOnes) {
  Extents rows, columns;
  rows.add(0, 1 << 20);
  for (uint64_t begin : {100, 200, 300})
    columns.add(begin, 10);
  EXPECT_FALSE(rows.areShort());
  for (Extents *extents : {&rows, &columns})
    extents->pack(0);
  EXPECT_FALSE(rows.areShort());
  EXPECT_TRUE(columns.areShort());
}

/// Every byte of random parts has a place of its own, in the order of the file,
/// wherever a search begins.
TEST(ExtentsTest, GivesEachByteAPlace) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<uint64_t> added;
    std::vector<std::pair<uint64_t, uint64_t>> parts;
    for (uint64_t at = random() % 5; at < 200;) {
      uint64_t bytes = 1 + random() % 9;
      parts.emplace_back(at, bytes);
      for (uint64_t i = 0; i < bytes; ++i)
        added.push_back(at + i);
      at += bytes + random() % 3;
    }
    std::shuffle(parts.begin(), parts.end(), random);
    Extents extents;
    for (auto [begin, bytes] : parts)
      extents.add(begin, bytes);
    EXPECT_EQ(extents.pack(0), added.size());
    size_t ascending = 0;
    for (size_t i = 0; i < added.size(); ++i) {
      size_t any = random() % (extents.all().size() + 2);
      EXPECT_EQ(extents.placeOf(added[i], ascending), i);
      EXPECT_EQ(extents.placeOf(added[i], any), i);
    }
  }
}
