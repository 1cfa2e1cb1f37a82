//===- InitializationTest.cpp - Initial values in pieces ------------------===//

#include "init/Initialization.h"

#include <gtest/gtest.h>

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

TEST(InitializationTest, PiecesAreTheWholeAndProgressIsTold) {
  PlanSpec plan;
  plan.tensors = {makeTensor("w", {3000, 200}), makeTensor("scalar", {}),
                  makeTensor("none", {0, 5}), makeTensor("row", {1, 300000})};
  std::vector<int64_t> told;
  ExecutorOptions options;
  options.seed = 7;
  options.onInitialize = [&](int64_t done, int64_t elements) {
    EXPECT_EQ(elements, 600000 + 1 + 300000);
    EXPECT_GE(done, told.empty() ? 1 : told.back());
    told.push_back(done);
  };
  Initialization initialization(plan, options);
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
    ASSERT_TRUE(initializeShard(tensor.initializer, options.seed, tensor.name,
                                tensor.dtype, tensor.shape, start, tensor.shape,
                                local, whole.data.data())
                    .ok());
    EXPECT_EQ(pieces.data, whole.data) << tensor.name;
  }
  // More often than there are tensors.
  EXPECT_GE(told.size(), 5u);
  EXPECT_EQ(told.back(), 900001);
}

} // namespace
