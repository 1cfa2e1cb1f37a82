//===- InputsInPlaceTest.cpp - Inputs that need no copy -------------------===//

#include "MatrixPlan.h"

#include "exec/InputsInPlace.h"

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

/// The buffer of x, the last tensor of the test plan.
uint32_t inputBuffer(const fb::PlanT &plan) {
  return plan.programs[0]->commands[0]->operation.AsLaunch()->buffers[0];
}

/// The arrays that a plan's step reads in place.
class LoadedInputs : public LoadedPlan {
public:
  explicit LoadedInputs(const std::string &bytes) : LoadedPlan(bytes) {
    placeInputs(buffers, prepared);
  }
  size_t count() const { return prepared.inputs.size(); }
  /// Where a device reads a buffer, in bytes from the beginning of the array.
  int64_t offset(int64_t device, uint32_t buffer) const {
    return buffers.address(device, buffer) - prepared.inputs[0].array;
  }

private:
  PreparedSteps prepared;
};

/// What a plan for some devices has besides.
struct InputUse {
  const char *name;
  int devices;
  bool isInPlace;
  std::function<void(fb::PlanT &)> edit = {};
};

void PrintTo(const InputUse &use, std::ostream *out) { *out << use.name; }

class InputUseTest : public testing::TestWithParam<InputUse> {};

/// Results of a step by an executor that reads arrays in place where it can,
/// and by one that copies all, which has no shared memory.
TEST_P(InputUseTest, DecidesWhetherItNeedsACopy) {
  const InputUse &use = GetParam();
  const std::string bytes = makePlan(use.devices, use.edit);
  EXPECT_EQ(LoadedInputs(bytes).count(), use.isInPlace);
  auto plan = Plan::parse(bytes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto context = Context::create({2});
  ASSERT_TRUE(context.ok());
  std::vector<float> y[2];
  for (bool share : {false, true}) {
    ExecutorOptions options;
    options.shareReplicas = share;
    auto executor = Executor::create(**context, *plan, options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->initializeParameters().ok());
    // Another array in each step, the last one at an odd address.
    for (int step = 0; step < 3; ++step) {
      std::vector<int64_t> shape{12};
      std::vector<char> memory(12 * sizeof(float) + 1);
      char *array = memory.data() + (step == 2);
      for (int i = 0; i < 12; ++i) {
        const float value = 100 * step + i;
        std::memcpy(array + i * sizeof(float), &value, sizeof(float));
      }
      auto result = (*executor)->step({{"x", {DType::F32, shape, array}}});
      ASSERT_TRUE(result.ok()) << result.status();
      for (const ResultInfo &info : (*plan)->findProgram("train_step")->results)
        if (info.dtype == DType::F32)
          for (float value : result->find(info.name)->values<float>())
            y[share].push_back(value);
    }
  }
  EXPECT_EQ(y[0], y[1]);
}

void addReaderOf(fb::PlanT &plan, uint32_t buffer) {
  addResult(plan, "copy", addCopyOf(plan, buffer), {12}, {{0}});
}

INSTANTIATE_TEST_SUITE_P(
    Uses, InputUseTest,
    testing::Values(
        InputUse{"one device", 1, true}, InputUse{"blocks of rows", 4, true},
        InputUse{"padded shards", 5, false},
        InputUse{"a copy reads it, too", 2, true,
                 [](fb::PlanT &plan) { addReaderOf(plan, inputBuffer(plan)); }},
        InputUse{"it is a result", 2, false,
                 [](fb::PlanT &plan) {
                   addResult(plan, "same", inputBuffer(plan), {12}, {{0}});
                 }},
        InputUse{"a collective reads it", 2, false,
                 [](fb::PlanT &plan) {
                   addResult(plan, "all",
                             addAllGather(plan, inputBuffer(plan), {12}, 0),
                             {12});
                 }},
        InputUse{
            "another buffer is written in its place, behind the last reader", 2,
            true,
            [](fb::PlanT &plan) {
              auto &buffers = plan.programs[0]->buffers;
              buffers.push_back(
                  std::make_unique<fb::BufferT>(*buffers[inputBuffer(plan)]));
              addClear(plan, buffers.size() - 1);
              addReaderOf(plan, buffers.size() - 1);
            }},
        InputUse{"runs of a loop read parts of it", 2, true, addLoops}),
    [](const auto &info) { return "Use" + std::to_string(info.index); });

TEST(InputsInPlaceTest, EachDeviceReadsItsRows) {
  uint32_t x = 0;
  LoadedInputs plan(
      makePlan(4, [&](fb::PlanT &plan) { x = inputBuffer(plan); }));
  ASSERT_EQ(plan.count(), 1u);
  // Shards of three elements, which the arena would align.
  for (int64_t device = 0; device < 4; ++device)
    EXPECT_EQ(plan.offset(device, x), device * 3 * 4);
}

} // namespace
