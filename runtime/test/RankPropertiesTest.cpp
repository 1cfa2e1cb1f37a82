//===- RankPropertiesTest.cpp - Differences are named ---------------------===//

#include "comm/RankProperties.h"
#include "comm/Socket.h"

#include "absl/strings/str_cat.h"

#include <gtest/gtest.h>

using namespace shardc::rt;

static std::string compare(const std::vector<std::vector<RankProperty>> &all) {
  std::vector<std::string> texts;
  for (const std::vector<RankProperty> &properties : all)
    texts.push_back(formatProperties(properties));
  return std::string(toStatus(findDifferences(texts)).message());
}

TEST(RankPropertiesTest, EqualOnesAreFine) {
  EXPECT_EQ(compare({{{"seed", "seed 3"}}}), "");
  EXPECT_EQ(compare({{{"seed", "seed 3"}, {"mesh", "mesh data=2"}},
                     {{"mesh", "mesh data=2"}, {"seed", "seed 3"}}}),
            "");
}

TEST(RankPropertiesTest, EachDifferenceIsNamedOnce) {
  std::string host = hostName();
  EXPECT_EQ(
      compare({{{"seed", "seed 3"}, {"mesh", "mesh data=2"}},
               {{"seed", "seed 3"}, {"mesh", "mesh data=2"}},
               {{"seed", "seed 4"}, {"mesh", "mesh data=4"}},
               {{"seed", "seed 5"}, {"mesh", "mesh data=2"}}}),
      absl::StrCat("rank 2 on ", host,
                   " has mesh data=4, and rank 0 has mesh data=2; rank 2 on ",
                   host,
                   " has seed 4, and rank 0 has seed 3: all processes must "
                   "have the same"));
}

TEST(RankPropertiesTest, AbsentOnesDiffer) {
  std::string host = hostName();
  EXPECT_EQ(compare({{}, {{"--resume", "--resume=latest"}}}),
            absl::StrCat("rank 1 on ", host,
                         " has --resume=latest, and rank 0 has no --resume: "
                         "all processes must have the same"));
  EXPECT_EQ(compare({{{"--resume", "--resume=latest"}}, {}}),
            absl::StrCat("rank 1 on ", host,
                         " has no --resume, and rank 0 has --resume=latest: "
                         "all processes must have the same"));
  // Bytes that are no UTF-8.
  EXPECT_EQ(compare({{{"a", "\xff"}}, {{"a", "\xff"}}}), "");
}
