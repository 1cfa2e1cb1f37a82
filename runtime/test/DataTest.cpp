//===- DataTest.cpp - Arrays from files, data sets, batches ---------------===//

#include "TemporaryFolder.h"
#include "TestPlan.h"

#include "base/Convert.h"
#include "data/Batches.h"
#include "data/Npz.h"

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

namespace {

std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void writeAll(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

HostArray iota(DType dtype, std::vector<int64_t> shape) {
  HostArray array(dtype, std::move(shape));
  for (size_t i = 0; i < array.data.size(); ++i)
    array.data[i] = std::byte(i * 7 + 1);
  return array;
}

/// What numpy.save writes for numpy.arange(6, dtype="<f4").reshape(2, 3).
std::string numpyFile(const std::string &descr = "<f4",
                      const std::string &order = "False",
                      const std::string &shape = "(2, 3)") {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order +
                       ", 'shape': " + shape + ", }";
  header.append(117 - header.size(), ' ');
  header += '\n';
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8);
  bytes += char(header.size());
  bytes += '\0';
  bytes += header;
  for (float value : {0.f, 1.f, 2.f, 3.f, 4.f, 5.f})
    bytes.append(reinterpret_cast<const char *>(&value), 4);
  return bytes;
}

TEST(NpyTest, ReadsWhatNumPyWrites) {
  auto array = parseNpy(numpyFile(), "a.npy");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->dtype, DType::F32);
  EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(array->values<float>()[5], 5.0f);
}

TEST(NpyTest, RoundTrips) {
  for (DType dtype :
       {DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool})
    for (std::vector<int64_t> shape : {std::vector<int64_t>{},
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
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(back->data, array.data);
    }
  EXPECT_FALSE(formatNpy(iota(DType::BF16, {2}).view()).ok());
}

TEST(NpyTest, RefusesWhatItCannotRead) {
  EXPECT_TRUE(parseNpy(numpyFile("<f4", "False", "(6,)"), "a").ok());
  for (const std::string &bytes :
       {numpyFile(">f4"), numpyFile("<f2"), numpyFile("<f4", "True"),
        numpyFile("<f4", "Maybe"), numpyFile("<f4", "False", "(2, -3)"),
        numpyFile("<f4", "False", "(2, 4)"), numpyFile("<f4", "False", "6"),
        numpyFile("<f4", "False", "(99999999999, 99999999999)"),
        numpyFile("<f4", "False", "(x,)"), std::string("PK"), std::string()}) {
    absl::Status status = parseNpy(bytes, "a.npy").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message().substr(0, 6), "a.npy:");
  }
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
  test::TemporaryFolder folder;
  std::string path = folder / "a.npz", again = folder / "b.npz";
  ArrayMap arrays;
  arrays["x"] = iota(DType::F32, {3, 4});
  arrays["y"] = iota(DType::I64, {3});
  ASSERT_TRUE(writeNpz(path, arrays).ok());
  ASSERT_TRUE(writeNpz(again, arrays).ok());
  EXPECT_EQ(readAll(path), readAll(again));
  auto back = readNpz(path);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)["x"].data, arrays["x"].data);
  EXPECT_EQ((*back)["y"].shape, arrays["y"].shape);
}

TEST(NpzTest, DamageIsAnErrorOrHarmless) {
  test::TemporaryFolder folder;
  std::string path = folder / "damaged.npz";
  ArrayMap arrays;
  arrays["x"] = iota(DType::F32, {30, 4});
  ASSERT_TRUE(writeNpz(path, arrays).ok());
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
  EXPECT_FALSE(writeNpz(folder / "missing/x.npz", arrays).ok());
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

Dataset numbered(int64_t rows) {
  Dataset dataset;
  dataset.name = "test.npz";
  dataset.rows = rows;
  HostArray x(DType::F32, {rows});
  std::iota(x.values<float>().begin(), x.values<float>().end(), 0.0f);
  dataset.arrays.emplace("x", std::move(x));
  return dataset;
}

TEST(BatchesTest, EpochsCoverTheRowsAndDropTheRest) {
  Dataset dataset = numbered(10);
  auto stream = BatchStream::create(dataset, 3, /*seed=*/1, /*shuffle=*/true);
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ((*stream)->batchesPerEpoch(), 3);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<float> seen;
    for (int batch = 0; batch < 3; ++batch) {
      const Batch &next = (*stream)->next();
      auto values = next.arrays.at("x").values<float>();
      seen.insert(seen.end(), values.begin(), values.end());
    }
    std::vector<int64_t> order = shuffledRows(10, 1, epoch);
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), order.begin()));
  }
  auto inOrder = BatchStream::create(dataset, 4, 1, /*shuffle=*/false);
  ASSERT_TRUE(inOrder.ok()) << inOrder.status();
  EXPECT_EQ((*inOrder)->next().arrays.at("x").values<float>()[3], 3.0f);
}

TEST(BatchesTest, TooFewRowsForABatchAreAnError) {
  Dataset dataset = numbered(10);
  EXPECT_TRUE(BatchStream::create(dataset, 10, 1, true).ok());
  EXPECT_EQ(BatchStream::create(dataset, 11, 1, true).status(),
            absl::InvalidArgumentError(
                "test.npz has 10 rows, fewer than the batch size 11"));
  EXPECT_EQ(BatchStream::create(dataset, 0, 1, true).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(BatchesTest, PadsTheLastBatchWithItsLastRow) {
  Dataset dataset = numbered(5);
  std::vector<int64_t> order = {0, 1, 2, 3, 4};
  Batch batch = gatherBatch(dataset, order, 3, 4);
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
  EXPECT_EQ(loadDataset("digits", options).status().code(),
            absl::StatusCode::kNotFound);
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

/// The error of fitting `dataset` to the test plan, or "".
std::string fit(Dataset dataset, int64_t labelClasses = 0,
                shardc::rt::fb::DType dtype = fb::DType::F32) {
  auto plan = Plan::parse(test::makePlan(1, [&](fb::PlanT &p) {
    p.tensors[2]->label_classes = labelClasses;
    p.tensors[2]->dtype = dtype;
  }));
  EXPECT_TRUE(plan.ok()) << plan.status();
  absl::Status status = fitToPlan(**plan, dataset);
  return std::string(status.message());
}

TEST(DatasetTest, FitsOrSaysWhyNot) {
  EXPECT_EQ(fit(numbered(20)), "");
  Dataset other = numbered(20);
  other.arrays["extra"] = iota(DType::F32, {3});
  EXPECT_EQ(fit(other), "");

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
  Dataset wide = numbered(20);
  wide.arrays["x"] = HostArray(DType::F64, {20});
  wide.arrays["x"].values<double>()[5] = 1e300;
  EXPECT_EQ(fit(wide), "test.npz, array \"x\": element 5 is 1e+300, which f32 "
                       "cannot hold");
}

TEST(DatasetTest, ChecksAndConvertsLabels) {
  Dataset labels = numbered(20);
  labels.arrays["x"] = HostArray(DType::I64, {20});
  labels.arrays["x"].values<int64_t>()[4] = 9;
  EXPECT_EQ(fit(labels, 10, fb::DType::I32), "");
  EXPECT_EQ(fit(labels, 9, fb::DType::I32),
            "test.npz, array \"x\": row 4 has label 9, expected 0 to 8");
  labels.arrays["x"].values<int64_t>()[4] = -1;
  EXPECT_NE(fit(labels, 10, fb::DType::I32), "");
  labels.arrays["x"].values<int64_t>()[4] = int64_t(1) << 40;
  EXPECT_NE(fit(labels, 0, fb::DType::I32).find("i32 cannot hold"),
            std::string::npos);
}

} // namespace
