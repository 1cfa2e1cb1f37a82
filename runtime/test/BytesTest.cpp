//===- BytesTest.cpp - Checksums and copies of any bytes ------------------===//

#include "base/CopyToMemory.h"
#include "base/Crc32.h"
#include "base/Parts.h"

#include <gtest/gtest.h>
#include <random>
#include <zlib.h>

using namespace shardc::rt;

static std::string randomBytes(size_t count) {
  std::mt19937 random(7);
  std::string bytes(count, '\0');
  for (char &byte : bytes)
    byte = static_cast<char>(random());
  return bytes;
}

TEST(Crc32Test, IsThatOfZlib) {
  const std::string bytes = randomBytes(3000);
  for (size_t begin : {0, 1, 15, 16})
    for (size_t count = 0; begin + count <= bytes.size();
         count += count < 1200 ? 1 : 61)
      for (uint32_t before : {0u, 1u, 0xffffffffu, 0x9e3779b9u})
        ASSERT_EQ(
            extendCrc32(before, {bytes.data() + begin, count}),
            crc32_z(before,
                    reinterpret_cast<const unsigned char *>(bytes.data()) +
                        begin,
                    count))
            << count << " bytes from " << begin << " on";
}

TEST(Crc32Test, GoesOn) {
  const std::string bytes = randomBytes(5000);
  for (size_t first : {0, 1, 100, 1024, 4999, 5000}) {
    absl::string_view view = bytes;
    EXPECT_EQ(
        extendCrc32(extendCrc32(0, view.substr(0, first)), view.substr(first)),
        extendCrc32(0, bytes));
  }
  EXPECT_EQ(extendCrc32(0, "123456789"), 0xcbf43926);
  EXPECT_EQ(extendCrc32(0, {}), 0u);
}

TEST(CopyToMemoryTest, CopiesThatAndNoMore) {
  const std::string bytes = randomBytes(1000);
  for (size_t from : {0, 1, 20})
    for (size_t to = 0; to < 70; ++to)
      for (size_t count : {0, 1, 63, 64, 100, 255, 256, 257, 320, 600, 900}) {
        std::string copy(1000, 'x'), expected = copy;
        copyToMemory(&copy[to], &bytes[from], count);
        endCopiesToMemory();
        expected.replace(to, count, bytes, from, count);
        ASSERT_EQ(copy, expected)
            << count << " bytes from " << from << " to " << to;
      }
}

TEST(ForEachPartTest, HasPartsOneBehindTheOther) {
  for (int64_t count : {0, 1, 7, 8, 9, 1000})
    for (int64_t least : {0, 1, 3, 500, 5000})
      for (int threads : {1, 2, 5}) {
        std::vector<int> runs(count);
        std::vector<int64_t> ends(threads, -1);
        forEachPart(count, least, threads,
                    [&](int64_t part, int64_t begin, int64_t end) {
                      ends[part] = end;
                      for (int64_t i = begin; i < end; ++i)
                        ++runs[i];
                      if (part > 0) {
                        EXPECT_GE(end - begin, least);
                      }
                    });
        EXPECT_EQ(runs, std::vector<int>(count, 1));
        const int64_t parts = std::clamp<int64_t>(
            count / std::max<int64_t>(least, 1), 1, threads);
        EXPECT_TRUE(std::is_sorted(ends.begin(), ends.begin() + parts));
        EXPECT_EQ(ends[parts - 1], count);
        EXPECT_EQ(std::count(ends.begin(), ends.end(), -1), threads - parts);
      }
}
