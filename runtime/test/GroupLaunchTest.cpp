//===- GroupLaunchTest.cpp - One kernel for devices that share a buffer ---===//

#include "MatrixPlan.h"

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

/// A launch on a matrix that devices along the first axis have in common, and
/// one of which each has its columns. Rows of both are sharded along "e".
struct GroupLaunch {
  int devices;      ///< Along the first axis.
  int groupDevices; ///< Of the kernel for groups.
  bool hasRows = false;
  bool hasLoop = false;
};

constexpr int64_t rows = 4, columns = 5;

std::string makeGroupPlan(const GroupLaunch &launch) {
  return makePlan(launch.devices, [&](fb::PlanT &plan) {
    std::vector<uint16_t> ofRows;
    if (launch.hasRows) {
      addAxis(plan);
      ofRows = {1};
    }
    uint32_t shared =
        addParameter(plan, "shared", {rows, columns}, {ofRows, {}});
    uint32_t own = addParameter(plan, "own", {rows, columns * launch.devices},
                                {ofRows, {0}});
    const int64_t local = plan.programs[0]->buffers[own]->shape[0];
    uint32_t out = addOwnBuffer(plan, fb::DType::F32, {local, columns});
    addResult(plan, "product", out, {rows, columns * launch.devices},
              {ofRows, {0}});
    const size_t first = plan.programs[0]->commands.size();
    int64_t extent = local * columns;
    if (launch.hasLoop) {
      extent /= 2;
      for (uint32_t *buffer : {&shared, &own, &out})
        *buffer = addRowsOfRun(plan, *buffer, local / 2);
    }
    fb::LaunchT table;
    table.kernel = plan.kernels.size();
    table.group_kernel = table.kernel + 1;
    table.group_devices = launch.groupDevices;
    table.group_shared = 0;
    plan.kernels.insert(
        plan.kernels.end(),
        {"test_product",
         "test_product_group_" + std::to_string(launch.groupDevices)});
    table.buffers = {shared, own, out};
    table.extent = extent;
    table.writes = 1;
    table.parts.push_back(std::make_unique<fb::LaunchPartT>());
    table.parts[0]->extent = extent;
    table.parts[0]->buffers = {0, 1, 2};
    table.parts[0]->bytes_per_iteration = {4, 4, 4};
    addCommand(plan, std::move(table));
    if (launch.hasLoop)
      addLoopFrom(plan, first);
  });
}

/// Whether the kernel for groups ran, by the 1 that it adds. All elements have
/// to be right.
bool runsForGroups(const GroupLaunch &launch, int threads, bool share = true) {
  auto plan = Plan::parse(makeGroupPlan(launch));
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto context = Context::create({threads});
  EXPECT_TRUE(context.ok());
  ExecutorOptions options;
  options.shareReplicas = share;
  auto executor = Executor::create(**context, *plan, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  EXPECT_TRUE((*executor)->initializeParameters().ok());
  const int64_t all = columns * launch.devices;
  HostArray x(DType::F32, {12}), shared(DType::F32, {rows, columns}),
      own(DType::F32, {rows, all});
  for (int64_t i = 0; i < rows * columns; ++i)
    shared.values<float>()[i] = float(i % 7 - 3);
  for (int64_t i = 0; i < rows * all; ++i)
    own.values<float>()[i] = float(i);
  EXPECT_TRUE((*executor)->setTensor("shared", shared.view()).ok());
  EXPECT_TRUE((*executor)->setTensor("own", own.view()).ok());
  auto result = (*executor)->step({{"x", x.view()}});
  EXPECT_TRUE(result.ok()) << result.status();
  auto product = result->find("product")->values<float>();
  const float more = product[3]; // shared[3] is 0.
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < all; ++column)
      EXPECT_EQ(product[row * all + column],
                shared.values<float>()[row * columns + column % columns] *
                        own.values<float>()[row * all + column] +
                    more)
          << row << ", " << column;
  return more == 1;
}

class GroupLaunchTest : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(GroupLaunchTest, ComputesTheResultsOfAllItsDevices) {
  auto [devices, threads] = GetParam();
  for (bool hasRows : {false, true})
    for (bool hasLoop : {false, true}) {
      EXPECT_TRUE(runsForGroups({devices, devices, hasRows, hasLoop}, threads))
          << hasRows << hasLoop;
      // Every device has a buffer of its own.
      EXPECT_FALSE(runsForGroups({devices, devices, hasRows, hasLoop}, threads,
                                 /*share=*/false));
    }
}

INSTANTIATE_TEST_SUITE_P(Meshes, GroupLaunchTest,
                         testing::Combine(testing::Values(2, 3, 4, 6),
                                          testing::Values(1, 2, 3)));

TEST(GroupLaunchTest, NeedsAsManyDevices) {
  EXPECT_FALSE(runsForGroups({4, 2}, 2));
  EXPECT_FALSE(runsForGroups({3, 2}, 2));
}

} // namespace
