//===- WireBytesTest.cpp - The formulas of the report ---------------------===//

#include "shardc/CostModel/WireBytes.h"

#include <gtest/gtest.h>

using namespace shardc;

TEST(WireBytes, Formulas) {
  EXPECT_EQ(getWireBytes(CollectiveKind::AllReduce, 4096, 4), 6144);
  EXPECT_EQ(getWireBytes(CollectiveKind::AllGather, 4096, 4), 3072);
  EXPECT_EQ(getWireBytes(CollectiveKind::ReduceScatter, 4096, 4), 3072);
  EXPECT_EQ(getWireBytes(CollectiveKind::AllToAll, 4096, 4), 3072);
  EXPECT_EQ(getWireBytes(CollectiveKind::CollectivePermute, 4096, 4), 4096);
}

TEST(WireBytes, RoundsUp) {
  // 2·2/3 of 4 bytes.
  EXPECT_EQ(getWireBytes(CollectiveKind::AllReduce, 4, 3), 6);
}

TEST(WireBytes, OneDeviceSendsNothing) {
  for (auto kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                    CollectiveKind::CollectivePermute})
    EXPECT_EQ(getWireBytes(kind, 4096, 1), 0);
}
