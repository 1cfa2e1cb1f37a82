//===- CopyShardsTest.cpp - Any shards from any others --------------------===//

#include "TemporaryFolder.h"

#include "checkpoint/CopyShards.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <random>

using namespace shardc::rt;

namespace {

/// Cuts [0, size) into `parts` pieces, of which some may be empty.
std::vector<std::pair<int64_t, int64_t>> cut(int64_t size, int parts,
                                             std::mt19937 &random) {
  std::vector<int64_t> ends{0, size};
  for (int i = 1; i < parts; ++i)
    ends.push_back(std::uniform_int_distribution<int64_t>(0, size)(random));
  std::sort(ends.begin(), ends.end());
  std::vector<std::pair<int64_t, int64_t>> pieces;
  for (size_t i = 1; i < ends.size(); ++i)
    pieces.emplace_back(ends[i - 1], ends[i] - ends[i - 1]);
  return pieces;
}

/// The boxes of a grid over a tensor, as starts and sizes.
std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>
cutAll(const std::vector<int64_t> &shape, const std::vector<int> &parts,
       std::mt19937 &random) {
  std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> boxes(1);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    auto pieces = cut(shape[dim], parts[dim], random);
    auto before = std::move(boxes);
    boxes.clear();
    for (const auto &[start, size] : before)
      for (auto [first, count] : pieces) {
        boxes.emplace_back(start, size);
        boxes.back().first.push_back(first);
        boxes.back().second.push_back(count);
      }
  }
  return boxes;
}

struct Sharded {
  std::vector<int64_t> shape;
  std::vector<int> from, to; ///< Parts of each dimension.
};

class CopyShardsTest : public testing::TestWithParam<Sharded> {};

/// Reads a tensor, written as some shards, as others: the bytes and checksums
/// are those of shards that are gathered element by element.
TEST_P(CopyShardsTest, ReadsAnyShardsFromAny) {
  const Sharded &given = GetParam();
  std::mt19937 random(7);
  const TensorType type{"w", DType::F32, given.shape};
  std::vector<uint32_t> values(numElements(given.shape));
  for (uint32_t &value : values)
    value = random();
  const std::string bytes(reinterpret_cast<const char *>(values.data()),
                          values.size() * 4);
  test::TemporaryFolder folder;
  constexpr uint64_t begin = 100;
  test::writeAll(folder / "x", std::string(begin, 'x') + bytes);
  auto file = ReadableFile::open(folder / "x");
  ASSERT_TRUE(file.ok()) << file.status();

  std::vector<ManifestShard> shards;
  for (auto &[start, size] : cutAll(given.shape, given.from, random))
    shards.push_back({0, start, size, 0});
  std::vector<const ManifestShard *> checked;
  for (const ManifestShard &shard : shards)
    checked.push_back(&shard);
  // With padding behind the last entries of each dimension.
  std::vector<std::vector<uint32_t>> buffers, expected;
  std::vector<ShardPlace> places;
  for (auto &[start, size] : cutAll(given.shape, given.to, random)) {
    std::vector<int64_t> local = size;
    for (int64_t &entries : local)
      entries += random() % 3;
    buffers.emplace_back(numElements(local), 0xabcdu);
    expected.push_back(buffers.back());
    places.push_back({{start, size, local}, nullptr});
    scatterShard(places.back().shard, type.dtype, type.shape, values.data(),
                 expected.back().data());
  }
  for (size_t i = 0; i < places.size(); ++i)
    places[i].data = reinterpret_cast<char *>(buffers[i].data());
  // Others hold the same, and one the whole.
  std::vector<std::vector<uint32_t>> replicas = buffers;
  std::vector<ShardPlace> all = places;
  for (size_t i = 0; i < places.size(); ++i)
    all.push_back(
        {places[i].shard, reinterpret_cast<char *>(replicas[i].data())});
  std::vector<uint32_t> whole(values.size());
  all.push_back(
      {{std::vector<int64_t>(given.shape.size()), given.shape, given.shape},
       reinterpret_cast<char *>(whole.data())});

  WorkerPool readers(3);
  auto read =
      copyShards(type, {*file, begin}, checked, places, readers, nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  const std::vector<uint32_t> sums = *read;
  EXPECT_EQ(buffers, expected);
  for (std::vector<uint32_t> &buffer : buffers)
    std::fill(buffer.begin(), buffer.end(), 0xabcdu);
  for (absl::Span<const ShardPlace> some : {absl::MakeConstSpan(all), {}}) {
    auto again =
        copyShards(type, {*file, begin}, checked, some, readers, nullptr);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, sums);
  }
  EXPECT_EQ(buffers, expected);
  EXPECT_EQ(replicas, expected);
  EXPECT_EQ(whole, values);
  ASSERT_EQ(sums.size(), shards.size());
  for (size_t i = 0; i < shards.size(); ++i) {
    std::vector<uint32_t> gathered(numElements(shards[i].shape));
    scatterShard({shards[i].start, shards[i].shape, shards[i].shape},
                 type.dtype, type.shape, values.data(), gathered.data());
    EXPECT_EQ(sums[i], checksumOf({reinterpret_cast<char *>(gathered.data()),
                                   gathered.size() * 4}));
    EXPECT_TRUE(holdAll(places, shards[i]));
    // Without one of the places some shard is missing elements of it.
  }
  int missing = 0, held = 0;
  for (size_t left = 0; left < places.size(); ++left) {
    std::vector<ShardPlace> others = places;
    others.erase(others.begin() + left);
    bool isHeld = true;
    for (const ManifestShard &shard : shards)
      isHeld &= holdAll(others, shard);
    (numElements(places[left].shard.valid) == 0 ? held : missing) += 1;
    EXPECT_EQ(isHeld, numElements(places[left].shard.valid) == 0);
  }
  EXPECT_GT(missing, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Shards, CopyShardsTest,
    testing::Values(Sharded{{}, {}, {}}, Sharded{{100000}, {3}, {5}},
                    Sharded{{700, 900}, {4, 1}, {4, 1}},
                    Sharded{{700, 900}, {1, 4}, {1, 4}},
                    Sharded{{700, 900}, {4, 1}, {1, 4}},
                    Sharded{{700, 900}, {2, 3}, {3, 2}},
                    Sharded{{33, 7, 5, 301}, {2, 2, 2, 3}, {3, 1, 2, 2}},
                    Sharded{{300001, 2}, {1, 2}, {2, 1}},
                    Sharded{{5, 200000}, {1, 3}, {1, 4}},
                    Sharded{{5, 200000}, {3, 1}, {1, 2}}));

/// Bytes that calls of the system have read in this process.
uint64_t bytesRead() {
  std::ifstream io("/proc/self/io");
  std::string name;
  uint64_t bytes = 0;
  io >> name >> bytes;
  return bytes;
}

class PartsTest : public testing::Test {
protected:
  /// Reads columns [first, last) of the rows [1, 3).
  absl::StatusOr<std::vector<uint32_t>> read(int64_t first, int64_t last) {
    Shard shard{{1, first}, {2, last - first}, {2, last - first}};
    buffer.assign(numElements(shard.local), 0);
    return copyShards(
        type, {*file, 8}, {},
        {ShardPlace{shard, reinterpret_cast<char *>(buffer.data())}}, readers,
        nullptr);
  }

  static constexpr int64_t columns = 1 << 20;
  const TensorType type{"w", DType::F32, {4, columns}};
  test::TemporaryFolder folder;
  std::string path = folder / "x";
  std::optional<ReadableFile> file;
  std::vector<uint32_t> buffer;
  WorkerPool readers{2};

  void SetUp() override {
    std::vector<uint32_t> values(numElements(type.shape));
    std::iota(values.begin(), values.end(), 0);
    test::writeAll(path,
                   std::string(8, 'x') +
                       std::string(reinterpret_cast<char *>(values.data()),
                                   values.size() * 4));
    auto opened = ReadableFile::open(path);
    ASSERT_TRUE(opened.ok()) << opened.status();
    file.emplace(*std::move(opened));
  }
};

TEST_F(PartsTest, NoOtherBytesAreRead) {
  for (auto [first, last] : {std::pair<int64_t, int64_t>(1000, 1010),
                             {0, columns / 2},
                             {columns / 2 + 1, columns},
                             {0, columns}}) {
    const uint64_t before = bytesRead();
    auto sums = read(first, last);
    const uint64_t bytes = bytesRead() - before;
    ASSERT_TRUE(sums.ok()) << sums.status();
    // Beside what reading the counter takes.
    EXPECT_GE(bytes, buffer.size() * 4);
    EXPECT_LE(bytes, buffer.size() * 4 + 4096) << first << " " << last;
    for (int64_t i = 0; i < int64_t(buffer.size()); ++i)
      ASSERT_EQ(buffer[i], (1 + i / (last - first)) * columns + first +
                               i % (last - first));
  }
}

TEST_F(PartsTest, AFileThatBecomesShorterIsAnError) {
  // In the second row of those that are read.
  std::filesystem::resize_file(path, 8 + 4 * (2 * columns + 100));
  EXPECT_TRUE(read(0, 100).ok());
  for (int64_t last : {101, 200000, int(columns)}) {
    absl::Status status = read(0, last).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_TRUE(absl::StartsWith(status.message(),
                                 absl::StrCat(path, ": cannot read ")))
        << status;
    EXPECT_TRUE(absl::EndsWith(status.message(), ": the file ends before"))
        << status;
  }
}

TEST(RunsWithin, AreThoseThatTouchTheRange) {
  const std::vector<int64_t> global{5, 3, 4};
  const Shard shard{{1, 0, 1}, {3, 3, 2}, {4, 3, 3}};
  std::vector<std::array<int64_t, 3>> all;
  forEachRun(shard, DType::F32, global,
             [&](int64_t from, int64_t to, int64_t bytes) {
               all.push_back({from, to, bytes});
             });
  ASSERT_EQ(all.size(), 9u);
  for (int64_t begin = 0; begin <= 240; begin += 4)
    for (int64_t end = begin; end <= 240; end += 4) {
      std::vector<std::array<int64_t, 3>> expected, found;
      for (auto [from, to, bytes] : all) {
        int64_t skipped = std::max<int64_t>(0, begin - from);
        int64_t rest = std::min(from + bytes, end) - from - skipped;
        if (rest > 0)
          expected.push_back({from + skipped, to + skipped, rest});
      }
      forEachRunWithin(shard, DType::F32, global, begin, end,
                       [&](int64_t from, int64_t to, int64_t bytes) {
                         found.push_back({from, to, bytes});
                       });
      EXPECT_EQ(found, expected) << begin << " " << end;
    }
}

} // namespace
