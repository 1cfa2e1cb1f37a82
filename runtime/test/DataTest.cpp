//===- DataTest.cpp - Arrays from files, data sets, batches ---------------===//

#include "TemporaryFolder.h"
#include "TestPlan.h"

#include "base/Convert.h"
#include "data/Batches.h"
#include "data/Csv.h"
#include "data/Npz.h"
#include "data/Random.h"
#include "shardc-rt/Trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

HostArray iota(DType dtype, std::vector<int64_t> shape) {
  HostArray array(dtype, std::move(shape));
  for (size_t i = 0; i < array.data.size(); ++i)
    array.data[i] = std::byte(i * 7 + 1);
  return array;
}

/// The bytes of numbers of type T, or in the other order.
template <typename T>
std::string bytesOf(std::vector<T> values, bool isBigEndian = false) {
  std::string bytes;
  for (T value : values) {
    std::string element(reinterpret_cast<const char *>(&value), sizeof(T));
    if (isBigEndian)
      std::reverse(element.begin(), element.end());
    bytes += element;
  }
  return bytes;
}

/// The bytes that numpy.save writes; by default for numpy.arange(6,
/// dtype="<f4").reshape(2, 3).
std::string
numpyFile(const std::string &descr = "<f4", const std::string &order = "False",
          const std::string &shape = "(2, 3)",
          const std::string &data = bytesOf<float>({0, 1, 2, 3, 4, 5})) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order +
                       ", 'shape': " + shape + ", }";
  header.append(117 - header.size(), ' ');
  header += '\n';
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8);
  bytes += char(header.size());
  bytes += '\0';
  return bytes + header + data;
}

TEST(NpyTest, ReadsWhatNumPyWrites) {
  auto array = parseNpy(numpyFile(), "a.npy");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->array.dtype, DType::F32);
  EXPECT_EQ(array->array.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(array->array.values<float>()[5], 5.0f);
  EXPECT_EQ(array->storage, "");
}

TEST(NpyTest, RoundTrips) {
  for (DType dtype :
       {DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool})
    for (const std::vector<int64_t> &shape : {std::vector<int64_t>{},
                                              {0},
                                              {1},
                                              {5},
                                              {2, 3},
                                              {2, 0, 3},
                                              {1, 1, 7}}) {
      HostArray array = iota(dtype, shape);
      auto bytes = formatNpy(array.view());
      ASSERT_TRUE(bytes.ok());
      auto back = parseNpy(*bytes, "a");
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(back->array.shape, shape);
      EXPECT_EQ(back->array.data, array.data);
    }
  EXPECT_FALSE(formatNpy(iota(DType::BF16, {2}).view()).ok());
}

TEST(NpyTest, RefusesWhatItCannotRead) {
  EXPECT_TRUE(parseNpy(numpyFile("<f4", "False", "(6,)"), "a").ok());
  for (const std::string &bytes :
       {numpyFile("<f2"), numpyFile("<U1"), numpyFile("|O"), numpyFile("<c8"),
        numpyFile("<f1"), numpyFile("<i3"), numpyFile(""), numpyFile("f"),
        numpyFile("<f4", "Maybe"), numpyFile("<f4", "False", "(2, -3)"),
        numpyFile("<f4", "False", "(2, 4)"), numpyFile("<f4", "False", "6"),
        numpyFile("<f4", "False", "(99999999999, 99999999999)"),
        numpyFile("<f4", "False", "(x,)"), std::string("PK"), std::string()}) {
    absl::Status status = parseNpy(bytes, "a.npy").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message().substr(0, 6), "a.npy:");
  }
}

/// The array read as `dtype` from `data` of type `descr`, with its storage.
template <typename T>
std::pair<std::vector<T>, std::string>
readAs(DType dtype, const std::string &descr, const std::string &data,
       int count) {
  auto array = parseNpy(
      numpyFile(descr, "False", "(" + std::to_string(count) + ",)", data), "a");
  EXPECT_TRUE(array.ok()) << array.status();
  if (!array.ok())
    return {};
  EXPECT_EQ(array->array.dtype, dtype);
  auto values = array->array.values<T>();
  return {{values.begin(), values.end()}, array->storage};
}

TEST(NpyTest, ReadsOtherTypesWithoutChangingValues) {
  using Integers = std::vector<int32_t>;
  EXPECT_EQ(
      readAs<int32_t>(DType::I32, "|u1", bytesOf<uint8_t>({0, 200, 255}), 3),
      std::pair(Integers({0, 200, 255}), std::string("u8")));
  EXPECT_EQ(
      readAs<int32_t>(DType::I32, "|i1", bytesOf<int8_t>({-128, -1, 5}), 3),
      std::pair(Integers({-128, -1, 5}), std::string("i8")));
  EXPECT_EQ(readAs<int32_t>(DType::I32, "<i2", bytesOf<int16_t>({-300, 7}), 2),
            std::pair(Integers({-300, 7}), std::string("i16")));
  EXPECT_EQ(readAs<int32_t>(DType::I32, ">u2",
                            bytesOf<uint16_t>({65535, 1}, true), 2),
            std::pair(Integers({65535, 1}), std::string("big-endian u16")));
  EXPECT_EQ(
      readAs<int32_t>(DType::I32, ">i4", bytesOf<int32_t>({-2, 9}, true), 2),
      std::pair(Integers({-2, 9}), std::string("big-endian i32")));
  EXPECT_EQ(readAs<int64_t>(DType::I64, "<u4", bytesOf<uint32_t>({~0u}), 1),
            std::pair(std::vector<int64_t>({0xffffffff}), std::string("u32")));
  EXPECT_EQ(readAs<int64_t>(DType::I64, "<u8", bytesOf<uint64_t>({5}), 1),
            std::pair(std::vector<int64_t>({5}), std::string("u64")));
  EXPECT_FALSE(parseNpy(numpyFile("<u8", "False", "(1,)",
                                  bytesOf<uint64_t>({uint64_t(1) << 63})),
                        "a")
                   .ok());
  EXPECT_EQ(
      readAs<double>(DType::F64, ">f8", bytesOf<double>({1e300}, true), 1),
      std::pair(std::vector<double>({1e300}), std::string("big-endian f64")));
  // 1, -2, 65504 (the greatest), 2^-24 (the least), 2^-14, infinity.
  auto [halves, storage] = readAs<float>(
      DType::F32, "<f2",
      bytesOf<uint16_t>({0x3c00, 0xc000, 0x7bff, 1, 0x0400, 0xfc00}), 6);
  EXPECT_EQ(halves,
            (std::vector<float>{1, -2, 65504, 0x1p-24f, 0x1p-14f, -INFINITY}));
  EXPECT_EQ(storage, "f16");
}

TEST(NpyTest, ReadsFortranOrder) {
  // [i][j][k] is 100·i + 10·j + k.
  std::vector<float> fortran, wanted;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i)
        fortran.push_back(100 * i + 10 * j + k);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k)
        wanted.push_back(100 * i + 10 * j + k);
  auto array = parseNpy(
      numpyFile("<f4", "True", "(2, 3, 4)", bytesOf<float>(fortran)), "a");
  ASSERT_TRUE(array.ok()) << array.status();
  auto values = array->array.values<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), wanted);
  EXPECT_EQ(array->storage, "f32 in Fortran order");
}

TEST(NpyTest, TruncationIsAnErrorAndNoFlipCrashes) {
  std::string bytes = numpyFile();
  for (size_t length = 0; length < bytes.size(); ++length)
    ASSERT_FALSE(parseNpy(bytes.substr(0, length), "a").ok());
  std::mt19937 random(4);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = bytes;
    damaged[random() % 128] = char(random());
    (void)parseNpy(damaged, "a").ok();
  }
}

TEST(NpzTest, RoundTripsAndIsDeterministic) {
  TemporaryFolder folder;
  std::string path = folder / "a.npz", again = folder / "b.npz";
  ArrayMap arrays;
  arrays["x"] = iota(DType::F32, {3, 4});
  arrays["y"] = iota(DType::I64, {3});
  ASSERT_TRUE(writeArrays(path, arrays).ok());
  ASSERT_TRUE(writeArrays(again, arrays).ok());
  EXPECT_EQ(readAll(path), readAll(again));
  auto back = readNpz(path);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)["x"].data, arrays["x"].data);
  EXPECT_EQ((*back)["y"].shape, arrays["y"].shape);
}

TEST(NpzTest, DamageIsAnErrorOrHarmless) {
  TemporaryFolder folder;
  std::string path = folder / "damaged.npz";
  ArrayMap arrays;
  arrays["x"] = iota(DType::F32, {30, 4});
  ASSERT_TRUE(writeArrays(path, arrays).ok());
  std::string bytes = readAll(path);
  for (size_t length = 0; length < bytes.size(); length += 13) {
    writeAll(path, bytes.substr(0, length));
    ASSERT_FALSE(readNpz(path).ok()) << length;
  }
  std::mt19937 random(5);
  for (int trial = 0; trial < 500; ++trial) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= 1 << random() % 8;
    writeAll(path, damaged);
    auto read = readNpz(path);
    // The archive's checksums protect the data.
    if (read.ok() && read->count("x")) {
      ASSERT_EQ((*read)["x"].data, arrays["x"].data);
    }
  }
  EXPECT_EQ(readNpz(folder / "missing.npz").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(writeArrays(folder / "missing/x.npz", arrays).ok());
  EXPECT_EQ(writeArrays(folder / "x.foo", arrays),
            absl::InvalidArgumentError(
                folder / "x.foo" + ": expected a file .npz or .safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x.foo"));
}

TEST(BatchesTest, ShufflesDeterministically) {
  std::vector<int64_t> a = shuffledRows(1000, 7, 0);
  EXPECT_EQ(a, shuffledRows(1000, 7, 0));
  EXPECT_NE(a, shuffledRows(1000, 7, 1));
  EXPECT_NE(a, shuffledRows(1000, 8, 0));
  std::sort(a.begin(), a.end());
  for (int64_t i = 0; i < 1000; ++i)
    ASSERT_EQ(a[i], i);
  EXPECT_TRUE(shuffledRows(0, 1, 0).empty());
}

/// As by Random123, whichever way they are computed here.
TEST(BatchesTest, RandomBitsAreThoseOfPhilox) {
  const uint64_t seed = 0x123456789abcdef0, stream = (uint64_t(1) << 32) + 5;
  for (size_t count : {0, 1, 3, 4, 5, 64, 1003}) {
    std::vector<uint64_t> bits(count);
    randomBits(seed, stream, absl::MakeSpan(bits));
    for (size_t i = 0; i < count; ++i) {
      auto block = randomBlock(seed, stream, i);
      ASSERT_EQ(bits[i], (uint64_t(block[0]) << 32) | block[1]) << i;
    }
  }
  // The known answer of Random123 for a counter and a key of zeros.
  uint64_t first;
  randomBits(0, 0, absl::MakeSpan(&first, 1));
  EXPECT_EQ(first, 0x6627e8d5e169c58d);
}

Dataset numbered(int64_t rows) {
  Dataset dataset;
  dataset.name = "test.npz";
  dataset.rows = rows;
  HostArray x(DType::F32, {rows});
  std::iota(x.values<float>().begin(), x.values<float>().end(), 0.0f);
  dataset.arrays.emplace("x", std::move(x));
  return dataset;
}

/// Prepared ahead, and when asked.
class BatchStreamTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Ahead, BatchStreamTest, testing::Bool());

/// Of batches of `size` rows, shuffled by seed 1.
BatchStreamOptions batchesOf(int64_t size, bool ahead) {
  BatchStreamOptions options;
  options.ahead = ahead;
  options.batchSize = size;
  options.seed = 1;
  return options;
}

TEST_P(BatchStreamTest, EpochsCoverTheRowsAndDropTheRest) {
  Dataset dataset = numbered(10);
  EXPECT_EQ(*batchesPerEpoch(dataset, 3), 3);
  auto stream = BatchStream::create(dataset, batchesOf(3, GetParam()));
  ASSERT_TRUE(stream.ok()) << stream.status();
  // More batches than are prepared ahead, so that memory is used again.
  for (int epoch = 0; epoch < 5; ++epoch) {
    std::vector<float> seen;
    for (int batch = 0; batch < 3; ++batch) {
      absl::StatusOr<const Batch *> next = (*stream)->next();
      ASSERT_TRUE(next.ok()) << next.status();
      auto values = (*next)->arrays.at("x").values<float>();
      seen.insert(seen.end(), values.begin(), values.end());
    }
    std::vector<int64_t> order = shuffledRows(10, 1, epoch);
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), order.begin()));
  }
  BatchStreamOptions options = batchesOf(4, GetParam());
  options.shuffle = false;
  auto inOrder = BatchStream::create(dataset, options);
  ASSERT_TRUE(inOrder.ok()) << inOrder.status();
  EXPECT_EQ((*(*inOrder)->next())->arrays.at("x").values<float>()[3], 3.0f);
}

/// From the middle of an epoch, to that of another one.
TEST_P(BatchStreamTest, BeginsAndEndsAtAnyBatch) {
  Dataset dataset = numbered(10);
  auto all = BatchStream::create(dataset, batchesOf(3, GetParam()));
  BatchStreamOptions options = batchesOf(3, GetParam());
  options.begin = 2;
  options.end = 7;
  auto some = BatchStream::create(dataset, options);
  ASSERT_TRUE(all.ok() && some.ok());
  for (int batch = 0; batch < 7; ++batch) {
    auto expected = (*all)->next();
    ASSERT_TRUE(expected.ok());
    if (batch < 2)
      continue;
    auto actual = (*some)->next();
    ASSERT_TRUE(actual.ok()) << actual.status();
    EXPECT_EQ((*actual)->arrays.at("x").data, (*expected)->arrays.at("x").data);
  }
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ((*some)->next().status().code(), absl::StatusCode::kOutOfRange);
  options.begin = options.end;
  auto none = BatchStream::create(dataset, options);
  EXPECT_EQ((*none)->next().status().code(), absl::StatusCode::kOutOfRange);
}

/// Rows of a few and of many bytes, of sizes that are no multiple of a word.
TEST(BatchesTest, CopiesRowsOfAnySize) {
  for (int64_t bytes : {0, 1, 3, 4, 7, 31, 33, 40, 63, 256, 257, 1000}) {
    Dataset dataset;
    dataset.rows = 5;
    HostArray x(DType::Bool, {5, bytes});
    for (size_t i = 0; i < x.data.size(); ++i)
      x.data[i] = std::byte(i * 7 + 1);
    dataset.arrays.emplace("x", x);
    const std::vector<int64_t> order = {3, 0, 4, 4};
    Batch batch = *gatherBatch(dataset, order, 0, 4);
    const std::vector<std::byte> &data = batch.arrays.at("x").data;
    ASSERT_EQ(data.size(), 4 * bytes);
    for (int64_t row = 0; row < 4; ++row)
      EXPECT_TRUE(std::equal(data.begin() + row * bytes,
                             data.begin() + (row + 1) * bytes,
                             x.data.begin() + order[row] * bytes))
          << bytes << " bytes, row " << row;
  }
}

/// Those of more than 8 MiB are gathered in several threads.
TEST(BatchesTest, CopiesLargeBatches) {
  constexpr int64_t rows = 301, width = 9001;
  Dataset dataset;
  dataset.rows = rows;
  HostArray x(DType::F32, {rows, width});
  auto values =
      absl::MakeSpan(reinterpret_cast<float *>(x.data.data()), rows * width);
  std::iota(values.begin(), values.end(), 0.0f);
  dataset.arrays.emplace("x", x);
  const std::vector<int64_t> order = shuffledRows(rows, /*seed=*/1, 0);
  const RowsOfBatch taken = {{"x", {{10, 299}}}};
  Batch batch = *gatherBatch(dataset, order, 0, rows, taken);
  auto gathered = batch.arrays.at("x").values<float>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i : {int64_t(0), int64_t(1), width - 1})
      ASSERT_EQ(gathered[row * width + i],
                row < 10 || row >= 299 ? 0 : values[order[row] * width + i])
          << row << ", " << i;
}

TEST_P(BatchStreamTest, TooFewRowsForABatchAreAnError) {
  Dataset dataset = numbered(10);
  EXPECT_TRUE(BatchStream::create(dataset, batchesOf(10, GetParam())).ok());
  EXPECT_EQ(BatchStream::create(dataset, batchesOf(11, GetParam())).status(),
            absl::InvalidArgumentError(
                "test.npz has 10 rows, fewer than the batch size 11"));
  EXPECT_EQ(BatchStream::create(Dataset(), batchesOf(11, GetParam()))
                .status()
                .message(),
            "the data has 0 rows, fewer than the batch size 11");
  EXPECT_EQ(
      BatchStream::create(dataset, batchesOf(0, GetParam())).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(BatchesTest, PadsTheLastBatchWithItsLastRow) {
  Dataset dataset = numbered(5);
  std::vector<int64_t> order = {0, 1, 2, 3, 4};
  Batch batch = *gatherBatch(dataset, order, 3, 4);
  EXPECT_EQ(batch.validRows, 2);
  auto values = batch.arrays.at("x").values<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{3, 4, 4, 4}));
}

TEST(DatasetTest, Quadratic) {
  DatasetOptions options;
  auto dataset = loadDataset("synthetic:quadratic", options);
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ(dataset->rows, 10000);
  auto x = dataset->arrays.at("x").values<float>();
  auto y = dataset->arrays.at("y").values<float>();
  double mean = 0, square = 0, noise = 0;
  for (float value : x) {
    mean += value;
    square += double(value) * value;
  }
  for (int64_t row = 0; row < 10000; ++row) {
    double sum = 0;
    for (int i = 0; i < 10; ++i)
      sum += double(x[row * 10 + i]) * x[row * 10 + i];
    noise += (y[row] - sum) * (y[row] - sum);
  }
  EXPECT_NEAR(mean / 1e5, 0, 0.02);
  EXPECT_NEAR(square / 1e5, 1, 0.02);
  EXPECT_NEAR(noise / 1e4, 0.01, 0.001);
  EXPECT_EQ(loadDataset("synthetic:cubic", options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(DatasetTest, DigitsAreLookedForWhereTheHostSays) {
  DatasetOptions options;
  EXPECT_EQ(
      loadDataset("digits", options).status(),
      absl::NotFoundError("the data set digits is not installed: the host "
                          "names no folder for data sets (dataDirs)"));
  options.dataDirs = {"/none", "/nowhere"};
  EXPECT_EQ(loadDataset("digits:test", options).status(),
            absl::NotFoundError("the data set digits is not installed: no "
                                "digits.npz in /none, /nowhere"));
}

TEST(ConvertTest, ValuesOutOfRangeAreErrors) {
  HostArray wide(DType::F64, {3});
  wide.values<double>()[1] = 3.4e38;
  EXPECT_TRUE(convert(wide, DType::F32).ok());
  wide.values<double>()[2] = -1e300;
  EXPECT_EQ(convert(wide, DType::F32).status(),
            absl::InvalidArgumentError(
                "element 2 is -1e+300, which f32 cannot hold"));
  HostArray single(DType::F32, {1});
  single.values<float>()[0] = std::numeric_limits<float>::max();
  EXPECT_EQ(convert(single, DType::BF16).status(),
            absl::InvalidArgumentError(
                "element 0 is 3.40282e+38, which bf16 cannot hold"));
  // Infinities and NaN stay.
  wide.values<double>()[2] = -std::numeric_limits<double>::infinity();
  wide.values<double>()[1] = std::numeric_limits<double>::quiet_NaN();
  auto converted = convert(wide, DType::F32);
  ASSERT_TRUE(converted.ok());
  EXPECT_EQ(converted->values<float>()[2],
            -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(converted->values<float>()[1]));
}

/// The error of fitting `dataset` to the test plan, or the notes. The plan's x
/// may be of another type and shape.
std::string fit(Dataset &dataset, int64_t labelClasses = 0,
                fb::DType dtype = fb::DType::F32) {
  auto plan = Plan::parse(test::makePlan(1, [&](fb::PlanT &p) {
    p.tensors[2]->label_classes = labelClasses;
    p.tensors[2]->dtype = dtype;
  }));
  EXPECT_TRUE(plan.ok()) << plan.status();
  absl::Status status = fitToPlan(**plan, dataset);
  if (!status.ok())
    return std::string(status.message());
  std::string notes;
  for (const std::string &note : dataset.notes)
    notes += note + "\n";
  return notes;
}

std::string fit(Dataset &&dataset, int64_t labelClasses = 0,
                fb::DType dtype = fb::DType::F32) {
  return fit(dataset, labelClasses, dtype);
}

TEST(DatasetTest, FitsOrSaysWhyNot) {
  EXPECT_EQ(fit(numbered(20)), "");

  Dataset missing;
  missing.name = "test.npz";
  EXPECT_EQ(fit(missing),
            "test.npz: array \"x\" is missing; the model's input is f32[12], "
            "the data has no arrays");
  Dataset shape = numbered(20);
  shape.arrays["x"] = iota(DType::F32, {20, 2});
  EXPECT_EQ(fit(shape), "test.npz, array \"x\" is f32[20,2], but the model's "
                        "input is f32[12] (the rows of a batch first)");
  Dataset infinite = numbered(20);
  infinite.arrays["x"].values<float>()[17] =
      std::numeric_limits<float>::infinity();
  EXPECT_EQ(fit(infinite), "test.npz, array \"x\": row 17 holds inf, expected "
                           "finite numbers");
}

TEST(DatasetTest, WhatFitsStaysInItsMemory) {
  Dataset dataset = numbered(20);
  const std::byte *before = dataset.arrays.at("x").data.data();
  EXPECT_EQ(fit(dataset), "");
  EXPECT_EQ(dataset.arrays.at("x").data.data(), before);
}

TEST(DatasetTest, InputsWithoutRowsOfTheBatchAreWhole) {
  auto plan =
      Plan::parse(test::makePlan(1, [&](fb::PlanT &p) { p.batch_size = 4; }));
  ASSERT_TRUE(plan.ok()) << plan.status();
  Dataset dataset = numbered(12);
  ASSERT_TRUE(fitToPlan(**plan, dataset).ok());
  EXPECT_EQ(dataset.whole.count("x"), 1u);
  Batch batch = *gatherBatch(dataset, {5, 3, 1}, 0, 2);
  EXPECT_EQ(batch.arrays.at("x").values<float>(),
            dataset.arrays.at("x").values<float>());
  Dataset other = numbered(20);
  EXPECT_EQ(fitToPlan(**plan, other).message(),
            "test.npz, array \"x\" is f32[20], but the model's input is "
            "f32[12]");
}

TEST(DatasetTest, IgnoresOtherArraysAndSaysSo) {
  Dataset other = numbered(20);
  other.arrays["extra"] = iota(DType::F32, {3});
  other.unreadable["names"] = absl::InvalidArgumentError("text");
  EXPECT_EQ(fit(other), "ignored, since the model has no such input: extra "
                        "(f32[3]), names (not readable)\n");
  EXPECT_EQ(other.rows, 20);
  EXPECT_EQ(other.arrays.size(), 1u);
  Dataset needed;
  needed.unreadable["x"] = absl::InvalidArgumentError("x is text");
  EXPECT_EQ(fit(needed), "x is text");
}

TEST(DatasetTest, ConvertsWhereNoValueChanges) {
  Dataset integers = numbered(20);
  integers.arrays["x"] = HostArray(DType::I64, {20});
  integers.arrays["x"].values<int64_t>()[3] = 1 << 24;
  integers.arrays["x"].values<int64_t>()[4] = -7;
  integers.storage["x"] = "big-endian i64";
  EXPECT_EQ(fit(integers),
            "converted to the model's types: x from big-endian i64\n");
  EXPECT_EQ(integers.arrays["x"].values<float>()[3], 16777216.0f);
  EXPECT_EQ(integers.arrays["x"].values<float>()[4], -7.0f);

  for (int64_t inexact : {int64_t(1 << 24) + 1, INT64_MAX, INT64_MIN + 1,
                          -(int64_t(1 << 24) + 1)}) {
    Dataset large = numbered(20);
    large.arrays["x"] = HostArray(DType::I64, {20});
    large.arrays["x"].values<int64_t>()[9] = inexact;
    EXPECT_EQ(fit(large), "test.npz, array \"x\": row 9 holds " +
                              std::to_string(inexact) +
                              ", which f32 cannot hold exactly");
  }
  Dataset bools = numbered(20);
  bools.arrays["x"] = HostArray(DType::Bool, {20});
  bools.arrays["x"].values<uint8_t>()[2] = 1;
  EXPECT_EQ(fit(bools), "converted to the model's types: x from bool\n");
  EXPECT_EQ(bools.arrays["x"].values<float>()[2], 1.0f);
}

TEST(DatasetTest, RoundsFloatsWithinTheirRange) {
  Dataset wide = numbered(20);
  wide.arrays["x"] = HostArray(DType::F64, {20});
  wide.arrays["x"].values<double>()[1] = 0.5;
  EXPECT_EQ(fit(Dataset(wide)), "converted to the model's types: x from f64\n");
  wide.arrays["x"].values<double>()[1] = 0.1;
  EXPECT_EQ(fit(Dataset(wide)),
            "converted to the model's types: x from f64, rounded\n");
  wide.arrays["x"].values<double>()[1] = 1e39;
  EXPECT_EQ(fit(wide), "test.npz, array \"x\": row 1 holds 1e+39, which f32 "
                       "cannot hold");
}

TEST(DatasetTest, DimensionsOfSizeOneMayBeMissing) {
  Dataset column = numbered(20);
  column.arrays["x"].shape = {20, 1};
  EXPECT_EQ(fit(column), "");
  EXPECT_EQ(column.arrays["x"].shape, (std::vector<int64_t>{20}));
}

TEST(DatasetTest, ChecksAndConvertsLabels) {
  Dataset labels = numbered(20);
  labels.arrays["x"] = HostArray(DType::I64, {20});
  labels.arrays["x"].values<int64_t>()[4] = 9;
  EXPECT_EQ(fit(Dataset(labels), 10, fb::DType::I32),
            "converted to the model's types: x from i64\n");
  EXPECT_EQ(fit(Dataset(labels), 9, fb::DType::I32),
            "test.npz, array \"x\": row 4 has label 9, expected 0 to 8");
  labels.arrays["x"].values<int64_t>()[4] = -1;
  EXPECT_EQ(fit(Dataset(labels), 10, fb::DType::I32),
            "test.npz, array \"x\": row 4 has label -1, expected 0 to 9");
  labels.arrays["x"].values<int64_t>()[4] = int64_t(1) << 40;
  EXPECT_NE(fit(labels, 0, fb::DType::I32).find("i32 cannot hold"),
            std::string::npos);
  EXPECT_NE(fit(numbered(20), 10, fb::DType::I32).find("is f32[20], but"),
            std::string::npos);
}

TEST(CsvTest, TellsOfProgress) {
  std::string text = "x\n";
  for (int i = 0; i < 1 << 20; ++i)
    text += "1.5\n";
  int calls = 0;
  auto table = parseCsv(text, "t.csv", [&] { ++calls; });
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->arrays.at("x").shape, (std::vector<int64_t>{1 << 20}));
  EXPECT_EQ(calls, 4); // One for each MiB.
}

TEST(CsvTest, ReadsColumns) {
  auto table = parseCsv("\xef\xbb\xbfx0, \"a \"\"b\"\"\" ,y\r\n"
                        "1,2.5,3\r\n"
                        "\r\n"
                        " -4 ,\"1e3\",5\n",
                        "t.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->arrays.size(), 3u);
  auto x = table->arrays.at("x0").values<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(x.begin(), x.end()),
            (std::vector<int64_t>{1, -4}));
  auto named = table->arrays.at("a \"b\"").values<double>();
  EXPECT_EQ(std::vector<double>(named.begin(), named.end()),
            (std::vector<double>{2.5, 1000}));
}

TEST(CsvTest, NamesTheLine) {
  auto error = [](const std::string &text) {
    return std::string(parseCsv(text, "t.csv").status().message());
  };
  EXPECT_EQ(error(""), "t.csv: empty, expected a line of column names");
  EXPECT_EQ(error("1,2\n3,4\n"),
            "t.csv:1: expected a line of column names, found \"1\"");
  EXPECT_EQ(error("x,x\n"), "t.csv:1: two columns \"x\"");
  EXPECT_EQ(error("x,,y\n"), "t.csv:1: column 2 has no name");
  EXPECT_EQ(error("x,y\n1,2\n\n3\n"),
            "t.csv:4: expected 2 numbers, one a column, found 1");
  EXPECT_EQ(error("x,y\n1,\n"),
            "t.csv:2: column \"y\": expected a number, found \"\"");
  EXPECT_EQ(error("x,y\n1,two\n"),
            "t.csv:2: column \"y\": expected a number, found \"two\"");
  EXPECT_EQ(error("x,y\n1,2\n3,0x10\n"),
            "t.csv:3: column \"y\": expected a number, found \"0x10\"");
  EXPECT_EQ(error("x,y\n1,2\n3,-1e400\n"),
            "t.csv:3: column \"y\": expected a number that f64 can hold, found "
            "\"-1e400\"");
  EXPECT_EQ(error("x\n\"1\n"), "t.csv:2: a quote is not closed on its line");
  EXPECT_EQ(error("x\n\"1\"2\n"), "t.csv:2: expected a comma behind a quote");
}

TEST(CsvTest, ColumnsBecomeAnInput) {
  TemporaryFolder folder;
  std::string path = folder / "table.csv";
  writeAll(path, "x,z\n0.1,7\n2,8\n");
  auto dataset = loadDataset(path, {});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(fit(*dataset),
            "ignored, since the model has no such input: z (i64[2])\n");
  EXPECT_EQ(dataset->arrays.at("x").values<float>()[0], 0.1f);

  writeAll(path, "x1\n3\n4\n");
  dataset = loadDataset(path, {});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(fit(*dataset),
            "converted to the model's types: x from columns x1 to x1\n");
  EXPECT_EQ(dataset->arrays.at("x").values<float>()[1], 4.0f);

  writeAll(path, "x0,x1\n3,4\n");
  dataset = loadDataset(path, {});
  EXPECT_NE(fit(*dataset).find("is i64[1,2], but the model's input is f32[12]"),
            std::string::npos);
}

TEST(DatasetTest, PartsOfTheDigitsAreReadOnce) {
  TemporaryFolder folder;
  ArrayMap arrays;
  arrays["x"] = iota(DType::F32, {1500, 4});
  arrays["y"] = iota(DType::I32, {1500});
  ASSERT_TRUE(writeArrays(folder / "digits.npz", arrays).ok());
  int calls = 0;
  DatasetOptions options;
  options.dataDirs = {folder / "."};
  options.onProgress = [&] { ++calls; };
  auto train = loadDataset("digits", options);
  ASSERT_TRUE(train.ok()) << train.status();
  const int callsOfOne = std::exchange(calls, 0);
  EXPECT_GT(callsOfOne, 0);
  auto test = loadDataset("digits:test", options);
  ASSERT_TRUE(test.ok()) << test.status();
  calls = 0;
  auto both = loadDatasets({"digits", "digits:test"}, options);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(calls, callsOfOne);
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ((*both)[0].rows, 1437);
  EXPECT_EQ((*both)[1].rows, 63);
  for (const char *name : {"x", "y"}) {
    EXPECT_EQ((*both)[0].arrays.at(name).data, train->arrays.at(name).data);
    EXPECT_EQ((*both)[1].arrays.at(name).data, test->arrays.at(name).data);
  }
  EXPECT_FALSE(loadDatasets({"digits", "nothing"}, options).ok());
}

TEST(DatasetTest, ReadsNpyFiles) {
  TemporaryFolder folder;
  std::string x = folder / "x.npy", other = folder / "features.npy";
  for (const std::string &path : {x, other})
    writeAll(path, numpyFile("<f4", "False", "(6,)"));
  for (const std::string &spec : {x, "x=" + other, x + ",y=" + other}) {
    auto dataset = loadDataset(spec, {});
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ(dataset->arrays.at("x").values<float>()[5], 5.0f);
  }
  EXPECT_EQ(dataFiles(x + ",y=" + other, {}),
            (std::vector<std::string>{x, other}));
  EXPECT_FALSE(loadDataset(x + ",x=" + other, {}).ok());
  EXPECT_EQ(loadDataset("=none.npy", {}).status(),
            absl::InvalidArgumentError(
                "an array without a name: expected NAME=none.npy"));
  EXPECT_EQ(loadDataset(folder / "none.npy", {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(DatasetTest, ArraysThatCannotBeReadAreNoErrorYet) {
  TemporaryFolder folder;
  std::string path = folder / "mixed.npz";
  ArrayMap arrays;
  arrays["x"] = iota(DType::F32, {20});
  arrays["names"] = iota(DType::I32, {20});
  ASSERT_TRUE(writeArrays(path, arrays).ok());
  std::string bytes = readAll(path);
  // The zip archive's checksum no longer fits, either.
  bytes.replace(bytes.find("'<i4'"), 5, "'<U1'");
  writeAll(path, bytes);
  auto dataset = loadDataset(path, {});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->unreadable.size(), 1u);
  EXPECT_EQ(dataset->arrays.count("x"), 1u);
  EXPECT_FALSE(readNpz(path).ok());
}

} // namespace
