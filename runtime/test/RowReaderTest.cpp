//===- RowReaderTest.cpp - Arrays that stay in their files ----------------===//

#include "TemporaryFolder.h"
#include "TestPlan.h"
#include "shardc-rt/Trainer.h"

#include "data/Batches.h"
#include "data/RowReader.h"
#include "data/ZipMembers.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <unistd.h>
#include <zlib.h>

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

/// Rows 0, 1, 2, ... of `width` equal numbers.
template <typename T>
HostArray numbered(DType dtype, int64_t rows, int64_t width) {
  HostArray array(dtype, {rows, width});
  for (int64_t i = 0; i < rows * width; ++i)
    array.values<T>()[i] = T(i / width);
  return array;
}

/// Bytes that this process has read from files so far.
uint64_t bytesReadSoFar() {
  std::ifstream file("/proc/self/io");
  std::string key;
  uint64_t bytes = 0;
  file >> key >> bytes;
  EXPECT_EQ(key, "rchar:");
  return bytes;
}

/// `value` as `width` bytes, little-endian.
std::string little(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i)
    bytes += char(value >> (8 * i));
  return bytes;
}

/// A zip archive with one stored member and a comment, as of one that is larger
/// than 4 GiB: with all numbers where those that are too large have to be.
std::string wideArchive(const std::string &name, const std::string &content) {
  uint32_t sum =
      crc32(0, reinterpret_cast<const Bytef *>(content.data()), content.size());
  std::string none = little(0xffffffff, 4), size = little(content.size(), 8);
  // Of another field, then of zip64.
  std::string other = little(0x5455, 2) + little(1, 2) + "t";
  std::string archive = "before" + little(0x04034b50, 4) + little(45, 2) +
                        little(0, 8) + little(sum, 4) + none + none +
                        little(name.size(), 2) + little(20, 2) + name +
                        little(1, 2) + little(16, 2) + size + size + content;
  uint64_t directory = archive.size();
  archive += little(0x02014b50, 4) + little(45, 2) + little(45, 2) +
             little(0, 8) + little(sum, 4) + none + none +
             little(name.size(), 2) + little(other.size() + 28, 2) +
             little(0, 10) + none + name + other + little(1, 2) +
             little(24, 2) + size + size + little(6, 8);
  uint64_t end = archive.size();
  archive += little(0x06064b50, 4) + little(44, 8) + little(45, 4) +
             little(0, 8) + little(1, 8) + little(1, 8) +
             little(end - directory, 8) + little(directory, 8);
  archive +=
      little(0x07064b50, 4) + little(0, 4) + little(end, 8) + little(1, 4);
  return archive + little(0x06054b50, 4) + little(0, 4) + little(0xffff, 2) +
         little(0xffff, 2) + none + none + little(7, 2) + "comment";
}

TEST(ZipMembersTest, FindsWhereStoredMembersLie) {
  TemporaryFolder folder;
  std::string path = folder / "a.npz";
  ArrayMap arrays;
  arrays.emplace("x", numbered<float>(DType::F32, 5, 3));
  arrays.emplace("y", numbered<int64_t>(DType::I64, 5, 1));
  ASSERT_TRUE(writeArrays(path, arrays).ok());
  auto file = ReadableFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  auto members = findStoredMembers(*file);
  ASSERT_TRUE(members.ok()) << members.status();
  ASSERT_EQ(members->size(), 2u);
  std::string bytes = readAll(path);
  for (const auto &[name, array] : arrays) {
    const StoredMember &member = members->at(name + ".npy");
    EXPECT_EQ(bytes.substr(member.begin, member.bytes),
              *formatNpy(array.view()));
    EXPECT_EQ(member.checksum,
              crc32(0, reinterpret_cast<const Bytef *>(&bytes[member.begin]),
                    member.bytes));
  }
}

TEST(ZipMembersTest, ReadsNumbersThatNeed64Bits) {
  TemporaryFolder folder;
  writeAll(folder / "a.zip", wideArchive("x", "content"));
  auto file = ReadableFile::open(folder / "a.zip");
  auto members = findStoredMembers(*file);
  ASSERT_TRUE(members.ok()) << members.status();
  ASSERT_EQ(members->size(), 1u);
  std::string found(members->at("x").bytes, ' ');
  ASSERT_TRUE(file->read(members->at("x").begin, &found[0], found.size()).ok());
  EXPECT_EQ(found, "content");
}

/// Whatever an archive holds, no place outside of it is found.
TEST(ZipMembersTest, DamageIsHarmless) {
  TemporaryFolder folder;
  std::string path = folder / "a.zip", whole = wideArchive("x", "content");
  auto check = [&](const std::string &bytes) {
    writeAll(path, bytes);
    auto file = ReadableFile::open(path);
    ASSERT_TRUE(file.ok());
    auto members = findStoredMembers(*file);
    ASSERT_TRUE(members.ok()) << members.status();
    for (const auto &[name, member] : *members)
      EXPECT_LE(member.begin + member.bytes, bytes.size());
  };
  for (size_t at = 0; at < whole.size(); ++at) {
    check(whole.substr(0, at));
    for (int change : {1, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] ^= char(change);
      check(damaged);
    }
  }
}

TEST(RowReaderTest, ReadsOnlyTheRowsAskedFor) {
  TemporaryFolder folder;
  const int64_t rows = 1000, width = 1000;
  ArrayMap arrays;
  arrays.emplace("x", numbered<float>(DType::F32, rows, width));
  ASSERT_TRUE(writeArrays(folder / "a.npz", arrays).ok());
  uint64_t before = bytesReadSoFar();
  auto readers = findStoredArrays(folder / "a.npz");
  ASSERT_TRUE(readers.ok()) << readers.status();
  const RowReader reader(readers->arrays.at("x"));
  EXPECT_EQ(reader.shape(), (std::vector<int64_t>{rows, width}));
  HostArray out(DType::F32, {4, width});
  ASSERT_TRUE(reader.read(20, 2, out, 0).ok());
  ASSERT_TRUE(reader.read(rows - 1, 1, out, 3).ok());
  // The directory, headers and three rows, of a million numbers.
  EXPECT_LT(bytesReadSoFar() - before, 3 * 4 * width + 150000u);
  std::vector<float> firsts;
  for (int row = 0; row < 4; ++row)
    firsts.push_back(out.values<float>()[row * width + 7]);
  EXPECT_EQ(firsts, (std::vector<float>{20, 21, 0, 999}));
}

/// Batches of a data set in a file are those of one in memory, in any order;
/// rows that are not taken are zeros and are not read.
TEST(RowReaderTest, BatchesAreThoseOfADataSetInMemory) {
  TemporaryFolder folder;
  // As of the plan: x f32[8,3] and y i32[8], in other types.
  ArrayMap arrays;
  arrays.emplace("x", numbered<double>(DType::F64, 50, 3));
  arrays.emplace("y", numbered<int64_t>(DType::I64, 50, 1));
  arrays.at("y").shape = {50};
  arrays.emplace("z", numbered<float>(DType::F32, 7, 1));
  ASSERT_TRUE(writeArrays(folder / "a.npz", arrays).ok());
  for (const auto &[name, array] : arrays)
    writeAll(folder / (name + ".npy"), *formatNpy(array.view()));
  const TensorInfo x{"x", Role::Input, DType::F32, {8, 3}};
  const TensorInfo y{"y", Role::Label, DType::I32, {8}};
  for (const std::string &spec :
       {folder / "a.npz", folder / "x.npy" + "," + folder / "y.npy"}) {
    Dataset memory, file;
    for (auto [set, byRows] : {std::pair(&memory, false), {&file, true}}) {
      DatasetOptions options;
      options.byRows = byRows;
      auto loaded = loadDataset(spec, options);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      *set = *std::move(loaded);
      set->rows = 50;
      set->arrays.erase("z");
      set->inFile.erase("z");
    }
    EXPECT_EQ(memory.inFile.size(), 0u);
    EXPECT_EQ(file.arrays.size(), 0u);
    // As fitToPlan does.
    for (auto &[name, reader] : file.inFile)
      reader = std::make_shared<const RowReader>(reader->fitted(
          RowFit(name == "x" ? x : y, "array"), reader->shape()));
    for (auto &[name, array] : memory.arrays) {
      RowFit fit(name == "x" ? x : y, "array");
      HostArray converted(fit.dtype(), array.shape);
      bool isRounded = false;
      ASSERT_TRUE(fit.convert(array, 0, 50, 0, converted, 0, isRounded).ok());
      EXPECT_FALSE(isRounded);
      array = std::move(converted);
    }
    const RowsOfBatch taken = {{"x", {{0, 2}, {5, 8}}}, {"y", {}}};
    for (bool shuffle : {false, true})
      for (const RowsOfBatch &rows : {RowsOfBatch(), taken}) {
        BatchStreamOptions options;
        options.batchSize = 8;
        options.seed = 3;
        options.shuffle = shuffle;
        options.begin = 1;
        options.taken = rows;
        options.ahead = shuffle;
        auto expected = BatchStream::create(memory, options);
        auto actual = BatchStream::create(file, options);
        for (int step = 0; step < 8; ++step) {
          auto a = (*expected)->next(), b = (*actual)->next();
          ASSERT_TRUE(a.ok() && b.ok()) << b.status();
          for (const char *name : {"x", "y"})
            EXPECT_EQ((*a)->arrays.at(name).data, (*b)->arrays.at(name).data);
          auto values = (*b)->arrays.at("x").values<float>();
          for (int i = 2 * 3; i < 5 * 3 && !rows.empty(); ++i)
            EXPECT_EQ(values[i], 0);
        }
      }
    // Rows past the end repeat the last one.
    std::vector<int64_t> order = {4, 9, 10, 11};
    auto batch = gatherBatch(file, order, 2, 4);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(batch->validRows, 2);
    auto labels = batch->arrays.at("y").values<int32_t>();
    EXPECT_EQ(std::vector<int32_t>(labels.begin(), labels.end()),
              (std::vector<int32_t>{10, 11, 11, 11}));
  }
}

/// Of the rows that do not fit it is the first one of the batch, though threads
/// share the rows of large ones.
TEST(RowReaderTest, NamesTheFirstRowThatDoesNotFit) {
  constexpr int64_t rows = 300, width = 10000;
  TemporaryFolder folder;
  std::string path = folder / "x.npy";
  HostArray x = numbered<float>(DType::F32, rows, width);
  for (int64_t row : {20, 60, 250})
    reinterpret_cast<float *>(x.data.data())[row * width + 5] =
        std::numeric_limits<float>::infinity();
  writeAll(path, *formatNpy(x.view()));
  DatasetOptions options;
  options.byRows = true;
  auto dataset = loadDataset(path, options);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  TensorInfo input{"x", Role::Input, DType::F32, {rows, width}};
  auto &reader = dataset->inFile.at("x");
  reader = std::make_shared<const RowReader>(
      reader->fitted(RowFit(input, "array \"x\""), {rows, width}));
  std::vector<int64_t> order(rows);
  for (int64_t i = 0; i < rows; ++i)
    order[i] = rows - 1 - i;
  EXPECT_EQ(gatherBatch(*dataset, order, 0, rows).status(),
            absl::InvalidArgumentError(
                "array \"x\": row 250 holds inf, expected finite numbers"));
  EXPECT_EQ(gatherBatch(*dataset, order, 60, rows - 60).status(),
            absl::InvalidArgumentError(
                "array \"x\": row 60 holds inf, expected finite numbers"));
}

/// The error of a row ends the stream, and so does a file that has changed.
TEST(RowReaderTest, NamesTheRowThatDoesNotFit) {
  TemporaryFolder folder;
  std::string path = folder / "y.npy";
  HostArray labels = numbered<int64_t>(DType::I64, 20, 1);
  labels.shape = {20};
  writeAll(path, *formatNpy(labels.view()));
  DatasetOptions options;
  options.byRows = true;
  auto dataset = loadDataset(path, options);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  dataset->rows = 20;
  TensorInfo label{"y", Role::Label, DType::I32, {4}, /*labelClasses=*/10};
  auto &reader = dataset->inFile.at("y");
  reader = std::make_shared<const RowReader>(
      reader->fitted(RowFit(label, "array \"y\""), {20}));
  BatchStreamOptions order;
  order.batchSize = 4;
  order.shuffle = false;
  auto stream = BatchStream::create(*dataset, order);
  for (int step = 0; step < 2; ++step)
    EXPECT_TRUE((*stream)->next().ok());
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ((*stream)->next().status(),
              absl::InvalidArgumentError(
                  "array \"y\": row 10 has label 10, expected 0 to 9"));
  ASSERT_EQ(truncate(path.c_str(), 200), 0);
  HostArray out(DType::I32, {1});
  absl::Status cut = reader->read(9, 1, out, 0);
  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(cut.message().find("the file ends before"), std::string::npos);
}

/// What cannot be read in ranges is read whole, and a plan that takes it gets a
/// warning; other arrays are none of its concern.
TEST(RowReaderTest, ReadsOthersWholeAndSaysSo) {
  TemporaryFolder folder;
  auto plan = Plan::parse(shardc::rt::test::makePlan(1));
  ASSERT_TRUE(plan.ok()) << plan.status();
  DatasetOptions options;
  options.byRows = true;
  const TensorInfo *x = nullptr;
  for (const TensorInfo &tensor : (*plan)->tensors())
    if (tensor.role == Role::Input)
      x = &tensor;
  ASSERT_NE(x, nullptr);
  std::vector<int64_t> shape = x->shape;
  shape[0] = 40;
  shape.push_back(1); // One dimension has no order.
  HostArray array(DType::F32, shape);
  std::string bytes = *formatNpy(array.view());
  bytes.replace(bytes.find("False"), 5, "True ");
  writeAll(folder / (x->name + ".npy"), bytes);
  writeAll(folder / "other.npy", bytes);
  auto dataset = loadDataset(
      folder / (x->name + ".npy") + "," + folder / "other.npy", options);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_TRUE(dataset->inFile.empty());
  ASSERT_TRUE(fitToPlan(**plan, *dataset).ok());
  ASSERT_EQ(dataset->warnings.size(), 1u);
  EXPECT_NE(dataset->warnings[0].find("since it is in Fortran order"),
            std::string::npos);
}

} // namespace
