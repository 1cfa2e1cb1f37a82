//===- InitializationTest.cpp - Initial values in pieces ------------------===//

#include "init/Initialization.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <thread>

using namespace shardc::rt;

namespace {

TensorSpec makeTensor(const std::string &name, std::vector<int64_t> shape) {
  TensorSpec tensor;
  tensor.name = name;
  tensor.role = Role::Parameter;
  tensor.dtype = DType::F32;
  tensor.shape = std::move(shape);
  tensor.initializer = {InitializerSpec::Kind::Normal, 0, 1};
  return tensor;
}

/// On the caller alone, and with threads that take tasks from the last to the
/// first.
class InitializationTest : public testing::TestWithParam<bool> {};

TEST_P(InitializationTest, PiecesAreTheWholeAndProgressIsTold) {
  PlanSpec plan;
  plan.tensors = {makeTensor("w", {3000, 200}), makeTensor("scalar", {}),
                  makeTensor("none", {0, 5}), makeTensor("row", {1, 300000}),
                  makeTensor("deep", {2, 3, 50, 500})};
  std::vector<int64_t> told;
  ExecutorOptions options;
  options.seed = 7;
  options.onInitialize = [&](int64_t done, int64_t elements) {
    EXPECT_EQ(elements, 600000 + 1 + 300000 + 150000);
    EXPECT_GE(done, told.empty() ? 1 : told.back());
    told.push_back(done);
  };
  int64_t tasksOfTensor = 0;
  Initialization::ForEach inThreads =
      [&](int64_t tasks, absl::FunctionRef<void(int64_t)> task) {
        tasksOfTensor += tasks;
        std::atomic<int64_t> left = tasks;
        auto work = [&] {
          for (int64_t i; (i = --left) >= 0;)
            task(i);
        };
        std::thread other(work);
        work();
        other.join();
      };
  Initialization initialization(
      plan, options, GetParam() ? inThreads : Initialization::ForEach());
  for (const TensorSpec &tensor : plan.tensors) {
    // Rows have padding behind them.
    std::vector<int64_t> local = tensor.shape, start(tensor.shape.size());
    if (!local.empty())
      local.back() += 3;
    HostArray pieces(DType::F32, local), whole(DType::F32, local);
    ASSERT_TRUE(
        initialization
            .fill(tensor, start, tensor.shape, local, pieces.data.data())
            .ok());
    // Long rows are divided, too.
    EXPECT_EQ(tasksOfTensor > 100,
              GetParam() && numElements(tensor.shape) > 100000)
        << tensor.name;
    tasksOfTensor = 0;
    ASSERT_TRUE(initializeShard(tensor.initializer, options.seed, tensor.name,
                                tensor.dtype, tensor.shape, start, tensor.shape,
                                local, whole.data.data())
                    .ok());
    EXPECT_EQ(pieces.data, whole.data) << tensor.name;
  }
  // More often than there are tensors.
  EXPECT_GE(told.size(), 5u);
  EXPECT_EQ(told.back(), 1050001);
}

INSTANTIATE_TEST_SUITE_P(Threads, InitializationTest, testing::Bool());

} // namespace
