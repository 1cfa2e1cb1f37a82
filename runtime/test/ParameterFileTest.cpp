//===- ParameterFileTest.cpp - Parameters from and to archives ------------===//

#include "TemporaryFolder.h"
#include "TestPlan.h"

#include "data/Npz.h"
#include "data/NpzLayout.h"
#include "data/StoredElements.h"
#include "shardc-rt/Trainer.h"
#include "train/ParameterFile.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <unistd.h>
#include <zlib.h>

using namespace shardc::rt;

namespace {

std::string contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

std::string randomBytes(size_t count) {
  std::mt19937 random(7);
  std::string bytes(count, '\0');
  for (char &byte : bytes)
    byte = char(random());
  return bytes;
}

/// Pieces that several writers add in any order make the checksum of the whole.
TEST(ScatteredChecksumTest, JoinsPiecesInAnyOrder) {
  std::mt19937 random(11);
  for (size_t size : {1, 2, 64, 1000, 70001}) {
    std::string bytes = randomBytes(size);
    for (int writers : {1, 2, 3}) {
      std::vector<ScatteredChecksum> sums(writers, ScatteredChecksum(size));
      std::vector<std::pair<size_t, size_t>> pieces;
      for (size_t at = 0, count; at < size; at += count) {
        count = std::min<size_t>(size - at, 1 + random() % (size / 5 + 1));
        pieces.emplace_back(at, count);
      }
      std::shuffle(pieces.begin(), pieces.end(), random);
      for (auto [at, count] : pieces)
        sums[random() % writers].add(at, &bytes[at], count);
      uint32_t joined = 0;
      for (const ScatteredChecksum &sum : sums)
        joined ^= sum.sum();
      EXPECT_EQ(
          ScatteredChecksum::finish(joined, size),
          crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), size));
    }
  }
}

/// What parts of an archive are written by whom, and in which order, does not
/// show in it.
TEST(ParameterFileTest, WritersMakeOneFile) {
  test::TemporaryFolder folder;
  ArrayMap arrays;
  arrays.emplace("a", HostArray(DType::F32, {5, 7}));
  arrays.emplace("b", HostArray(DType::F64, {}));
  arrays.emplace("none", HostArray(DType::F32, {0, 3}));
  arrays.emplace("ü", HostArray(DType::I32, {1000}));
  for (auto &[name, array] : arrays) {
    std::string bytes = randomBytes(array.data.size());
    std::memcpy(array.data.data(), bytes.data(), bytes.size());
  }
  for (const char *name : {"x.npz", "x.safetensors"}) {
    std::string path = folder / name;
    ASSERT_TRUE(writeArrays(path, arrays).ok());
    std::vector<TensorType> types;
    for (const auto &[key, array] : arrays)
      types.push_back({key, array.dtype, array.shape});
    std::string other = folder / "other";
    auto file = WritableFile::make(other);
    ASSERT_TRUE(file.ok());
    std::vector<ParameterFile> writers;
    for (int writer = 0; writer < 2; ++writer)
      writers.push_back(*ParameterFile::create(path, types));
    for (size_t i = 0; i < types.size(); ++i) {
      const HostArray &array = arrays.at(writers[0].tensors()[i].name);
      const char *data = reinterpret_cast<const char *>(array.data.data());
      size_t half = array.data.size() / 2;
      ASSERT_TRUE(
          writers[1]
              .write(*file, i, half, {data + half, array.data.size() - half})
              .ok());
      ASSERT_TRUE(writers[0].write(*file, i, 0, {data, half}).ok());
    }
    ASSERT_TRUE(
        writers[0].finish(*file, {writers[0].sums(), writers[1].sums()}).ok());
    ASSERT_TRUE(file->close().ok());
    EXPECT_EQ(contentOf(path), contentOf(other)) << name;
    unlink(other.c_str());
  }
  // libzip, which reads it, checks every field.
  auto back = readNpz(folder / "x.npz");
  ASSERT_TRUE(back.ok()) << back.status();
  for (const auto &[name, array] : arrays) {
    EXPECT_EQ(back->at(name).data, array.data);
    EXPECT_EQ(back->at(name).shape, array.shape);
  }
}

/// Numbers beyond 4 GiB, in an archive whose data is a hole.
TEST(ParameterFileTest, ArchivesMayBeLarge) {
  NpzLayout layout;
  const int64_t rows = (int64_t(1) << 30) + 1;
  ASSERT_TRUE(layout.add("large", DType::F32, {rows}).ok());
  ASSERT_TRUE(layout.add("behind", DType::F32, {3}).ok());
  EXPECT_EQ(layout.dataBegin(1) - layout.dataBegin(0) - 4 * rows,
            30 + strlen("behind.npy") + layout.npyHeader(1).size());
  test::TemporaryFolder folder;
  std::string path = folder / "large.npz";
  auto file = WritableFile::make(path);
  ASSERT_TRUE(file.ok());
  for (const NpzLayout::Piece &piece : layout.pieces({1, 2}))
    ASSERT_TRUE(file->write(piece.begin, piece.bytes).ok());
  ASSERT_TRUE(file->close().ok());
  auto stored = findStoredArrays(path);
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_EQ(stored->arrays.size(), 2u);
  EXPECT_EQ(stored->arrays.at("large").header().shape(),
            std::vector<int64_t>{rows});
  EXPECT_EQ(stored->members.at("behind").begin + layout.npyHeader(1).size(),
            layout.dataBegin(1));
  HostArray last(DType::F32, {1});
  EXPECT_TRUE(stored->arrays.at("large").read(rows - 1, 1, last, 0).ok());
  std::set<std::string> all = {"large", "behind"};
  EXPECT_TRUE(readNpzEntries(path, all).ok());
}

/// The parts that devices hold are asked for, each once, and an error leaves a
/// tensor without a value.
TEST(WriteShardsTest, AsksForTheBytesOfShards) {
  auto plan = Plan::parse(shardc::rt::test::makePlan(2));
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto context = Context::create();
  auto executor = Executor::create(**context, *plan);
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  const TensorInfo *w = (*plan)->findTensor("w");
  HostArray array(w->dtype, w->shape);
  std::iota(array.values<float>().begin(), array.values<float>().end(), 1.0f);
  std::vector<int> asked(array.data.size());
  ASSERT_TRUE((*executor)
                  ->writeShards("w",
                                [&](int64_t offset, char *data, int64_t bytes) {
                                  std::memcpy(data, array.data.data() + offset,
                                              bytes);
                                  for (int64_t i = 0; i < bytes; ++i)
                                    ++asked[offset + i];
                                  return absl::OkStatus();
                                })
                  .ok());
  EXPECT_EQ(asked, std::vector<int>(array.data.size(), 1));
  EXPECT_EQ((*executor)->getTensor("w")->data, array.data);
  auto refuse = [](int64_t, char *, int64_t) {
    return absl::DataLossError("gone");
  };
  EXPECT_EQ((*executor)->writeShards("x", refuse).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*executor)->writeShards("w", refuse), absl::DataLossError("gone"));
  EXPECT_EQ((*executor)->getTensor("w").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

} // namespace
