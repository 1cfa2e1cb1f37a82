//===- ApiTest.cpp - The public API, out of the shared library ------------===//
//
// Includes the public headers alone and links the shared library, as a host
// does: it uses every function and class that they declare.
//
//===----------------------------------------------------------------------===//

#include "../TemporaryFolder.h"
#include "../TestPlan.h"

#include "shardc-rt/Checkpoint.h"
#include "shardc-rt/Context.h"
#include "shardc-rt/Cuda.h"
#include "shardc-rt/DType.h"
#include "shardc-rt/Dataset.h"
#include "shardc-rt/Errors.h"
#include "shardc-rt/Executor.h"
#include "shardc-rt/HostArray.h"
#include "shardc-rt/Plan.h"
#include "shardc-rt/Ranks.h"
#include "shardc-rt/Store.h"
#include "shardc-rt/Trainer.h"
#include "shardc-rt/Version.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace shardc::rt;

namespace {

TEST(ApiTest, TheVersionIsThatOfTheHeaders) {
  EXPECT_STREQ(version(), SHARDC_RT_VERSION_STRING);
  std::ostringstream text;
  text << SHARDC_RT_VERSION_MAJOR << "." << SHARDC_RT_VERSION_MINOR << "."
       << SHARDC_RT_VERSION_PATCH;
  EXPECT_EQ(text.str(), SHARDC_RT_VERSION_STRING);
#if SHARDC_RT_VERSION >= SHARDC_RT_MAKE_VERSION(0, 1, 0) &&                    \
    SHARDC_RT_VERSION < SHARDC_RT_MAKE_VERSION(1000, 0, 0)
  SUCCEED();
#else
  FAIL() << SHARDC_RT_VERSION;
#endif
}

TEST(ApiTest, Arrays) {
  EXPECT_EQ(byteSize(DType::BF16), 2);
  EXPECT_EQ(toString(DType::F32), "f32");
  EXPECT_TRUE(isFloat(DType::F64));
  HostArray array(DType::F32, {2, 3});
  EXPECT_EQ(numElements(array.view().shape), 6);
  EXPECT_EQ(describe(array.dtype, array.shape), "f32[2,3]");
}

/// A host that trains and evaluates by hand, from the plan on.
TEST(ApiTest, TrainsAPlan) {
  test::TemporaryFolder folder;
  std::string bytes = test::makePlan(2);
  std::ofstream(folder / "x.shardc", std::ios::binary) << bytes;
  auto plan = Plan::loadFile(folder / "x.shardc");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(Plan::parse(bytes.substr(0, 100)).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ((*plan)->model(), "test");
  EXPECT_EQ((*plan)->producer(), "");
  EXPECT_EQ((*plan)->target(), "");
  EXPECT_FALSE((*plan)->isForGpu());
  EXPECT_EQ((*plan)->mesh(), "d=2");
  EXPECT_EQ((*plan)->numDevices(), 2);
  EXPECT_EQ((*plan)->batchSize(), 12);
  EXPECT_NE((*plan)->fingerprint(), 0u);
  std::vector<std::string> names;
  for (const TensorInfo &tensor : (*plan)->tensors())
    names.push_back(tensor.name + " " + std::string(toString(tensor.role)));
  EXPECT_EQ(names, (std::vector<std::string>{"w parameter", "m parameter",
                                             "x input"}));
  ASSERT_EQ((*plan)->programs().size(), 1u);
  const ProgramInfo *program = (*plan)->findProgram("train_step");
  ASSERT_EQ(program, &(*plan)->programs()[0]);
  ASSERT_EQ(program->results.size(), 3u);
  EXPECT_EQ(program->results[1].name, "y");
  EXPECT_EQ(program->results[1].dtype, DType::F32);
  EXPECT_EQ(program->results[1].shape, std::vector<int64_t>{12});
  EXPECT_EQ((*plan)->findProgram("nothing"), nullptr);
  const TensorInfo *input = (*plan)->findTensor("x");
  ASSERT_NE(input, nullptr);

  auto context = Context::create({2});
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_EQ((*context)->numThreads(), 2);
  auto executor = Executor::create(**context, *plan);
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ((*executor)->allocatedBytesPerDevice(), (*plan)->arenaBytes());
  EXPECT_GT((*executor)->allocatedBytes(), 0u);
  EXPECT_EQ((*executor)->scratchBytesPerDevice(), 0u);
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  HostArray x(input->dtype, input->shape);
  auto result = (*executor)->step({{"x", x.view()}});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_NE(result->find("y"), nullptr);
  RunResult other;
  other.add("loss", HostArray(DType::F32, {}));
  EXPECT_EQ(other.loss, 0);
}

TEST(ApiTest, TrainsOnADataset) {
  auto plan = Plan::parse(test::makePlan(2));
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto context = Context::create();
  auto executor = Executor::create(**context, *plan);
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  Dataset dataset;
  dataset.arrays.emplace("x", HostArray(DType::F32, {24}));
  dataset.rows = 24;
  ASSERT_TRUE(fitToPlan(**plan, dataset).ok());
  TrainOptions options;
  Dataset unfit = dataset;
  unfit.rows = 48;
  std::ostringstream none;
  EXPECT_EQ(train(**executor, unfit, options, none).status(),
            absl::InvalidArgumentError(
                "the data: array \"x\" has the shape [24], expected 48 rows: "
                "fitToPlan makes data fit a plan"));
  int64_t rows = 0;
  options.onBatch = [&](const Batch &batch) {
    rows += batch.views().at("x").shape[0];
    return absl::OkStatus();
  };
  EXPECT_EQ(*lastStepOf(options, dataset, (*plan)->batchSize()), 2);
  std::ostringstream out;
  auto summary = train(**executor, dataset, options, out);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->steps, 2);
  EXPECT_EQ(rows, 24);
  EXPECT_EQ(evaluate(**executor, dataset).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(loadDataset("nothing", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  test::TemporaryFolder folder;
  ASSERT_TRUE(saveParameters(**executor, folder / "w.npz").ok());
  for (const char *name : {"w.bin", "w.npy", "w"})
    EXPECT_EQ(saveParameters(**executor, folder / name).code(),
              absl::StatusCode::kInvalidArgument);
  auto before = readParameters(**executor);
  ASSERT_TRUE(before.ok());
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  EXPECT_NE((*executor)->getTensor("w")->data, before->at("w").data);
  ASSERT_TRUE(loadParameters(**executor, folder / "w.npz").ok());
  EXPECT_EQ((*executor)->getTensor("w")->data, before->at("w").data);
  ASSERT_TRUE(writeArrays(folder / "w.safetensors", *before).ok());
  ASSERT_TRUE(loadParameters(**executor, folder / "w.safetensors").ok());

  // A training that is saved, and goes on.
  {
    auto writer = CheckpointWriter::open({folder / "checkpoints"});
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->reserve(**plan).ok());
    ASSERT_TRUE((*writer)->save(**executor, summary->progress).ok());
    (*writer)->wait();
    std::vector<CheckpointResult> results = (*writer)->takeResults();
    ASSERT_EQ(results.size(), 1u);
    EXPECT_TRUE(results[0].status.ok()) << results[0].status;
  }
  ASSERT_EQ(listCheckpoints(folder / "checkpoints")->size(), 1u);
  auto checkpoint = openLatestCheckpoint(folder / "checkpoints");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->path(), folder / "checkpoints/step-2");
  EXPECT_EQ((*checkpoint)->mesh(), (*plan)->mesh());
  EXPECT_EQ((*checkpoint)->fingerprint().size(), 16u);
  EXPECT_TRUE((*checkpoint)->verify().empty());
  EXPECT_TRUE((*checkpoint)->checkAgainst(**plan).ok());
  EXPECT_EQ((*checkpoint)->readParameters()->at("w").data,
            before->at("w").data);
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  ASSERT_TRUE((*checkpoint)->load(**executor).ok());
  std::vector<float> w(4);
  ASSERT_TRUE((*executor)->readTensor("w", w.data()).ok());
  const void *bytes = w.data();
  EXPECT_EQ(std::memcmp(bytes, before->at("w").data.data(), 16), 0);
  options.start = (*checkpoint)->progress();
  options.steps = 3;
  options.epochs = 0;
  auto rest = train(**executor, dataset, options, out);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->firstStep, 2);
  EXPECT_EQ(rest->steps, 3);
}

TEST(ApiTest, ArraysWithoutTheirBytesAreErrors) {
  auto plan = Plan::parse(test::makePlan(2));
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto context = Context::create();
  auto executor = Executor::create(**context, *plan);
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  EXPECT_EQ(
      (*executor)->readTensor("w", nullptr),
      absl::InvalidArgumentError("no room for \"w\": the pointer is null"));

  HostArray empty, negative, huge;
  empty.shape = {24};
  negative.shape = {-24};
  huge.shape = {int64_t(1) << 40, int64_t(1) << 40};
  test::TemporaryFolder folder;
  auto expect = [&](const HostArray &array, const std::string &error) {
    for (const char *name : {"x.npz", "x.npy", "x.safetensors"}) {
      EXPECT_EQ(writeArrays(folder / name, {{"x", array}}),
                absl::InvalidArgumentError(folder / name + ": " + error));
      EXPECT_FALSE(std::ifstream(folder / name));
    }
    Dataset dataset;
    dataset.arrays.emplace("x", array);
    EXPECT_EQ(fitToPlan(**plan, dataset),
              absl::InvalidArgumentError("the data: " + error));
    EXPECT_EQ(predict(**executor, {{"x", array.view()}}).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ((*executor)->step({{"x", array.view()}}).status().code(),
              absl::StatusCode::kInvalidArgument);
  };
  expect(empty, "array \"x\" has 0 bytes, but f32[24] takes 96");
  expect(negative, "array \"x\" has a dimension of size -24");
  expect(huge, "array \"x\" has a dimension of size 1099511627776");
}

TEST(ApiTest, ProcessesAndGpus) {
  auto none = [](const char *) { return std::optional<std::string>(); };
  auto ranks = ranksFrom(none);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(ranks->size, 1);
  EXPECT_TRUE(ranksFromEnvironment().ok());
  Ranks two;
  two.size = 2;
  two.rank = 1;
  two.address = "localhost";
  two.port = 1;
  EXPECT_EQ(Store::connect(two, {absl::Milliseconds(20)}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  CudaOptions options;
  test::TemporaryFolder folder;
  options.driverPath = folder / "libcuda.so.1";
  EXPECT_EQ(listGpus(options).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(createCudaExecutor(nullptr, {}, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

} // namespace
