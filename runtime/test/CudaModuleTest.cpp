//===- CudaModuleTest.cpp - Code that drivers load or refuse --------------===//

#include "CudaFixture.h"

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

class CudaModuleTest : public CudaExecutorTest {
protected:
  /// A plan for sm_90 that has a cubin beside its PTX.
  static std::shared_ptr<const Plan> makeAssembledPlan() {
    return makeGpuPlan(1, [](fb::PlanT &plan) {
      const std::string first = "cubin\n";
      plan.cubin.assign(first.begin(), first.end());
      plan.cubin.insert(plan.cubin.end(), plan.code.begin(), plan.code.end());
    });
  }

  /// The code that drivers were given for plans.
  std::vector<std::string> loaded() const {
    std::vector<std::string> images;
    const std::string begin = "cuModuleLoadDataEx(";
    for (const std::string &call : fake->details)
      if (call.rfind(begin, 0) == 0)
        images.push_back(
            call.substr(begin.size(), call.size() - begin.size() - 1));
    return images;
  }
};

} // namespace

TEST_F(CudaModuleTest, ShowsTheCompilersLog) {
  fake->jitError = "line 3: unknown instruction 'frobnicate'";
  auto executor = create(makeGpuPlan(1));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(executor.status().message().find(fake->jitError),
            absl::string_view::npos)
      << executor.status();
}

TEST_F(CudaModuleTest, RefusesOlderGpusAndPlansForCpus) {
  fake->architecture = 80;
  auto executor = create(makeGpuPlan(1));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(executor.status().message().find("is sm_80"),
            absl::string_view::npos)
      << executor.status();
  executor = create(*Plan::parse(makePlan(1)));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CudaModuleTest, LoadsMachineCodeForTheGpuAndComputesWithIt) {
  auto compiled = create(makeGpuPlan(1));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  auto expected = train(**compiled, 3);
  ASSERT_TRUE(expected.ok()) << expected.status();
  fake->details.clear();
  auto executor = create(makeAssembledPlan());
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ(loaded().back(), "cubin");
  auto actual = train(**executor, 3);
  ASSERT_TRUE(actual.ok()) << actual.status();
  EXPECT_EQ(*actual, *expected);
}

TEST_F(CudaModuleTest, CompilesForOtherGpus) {
  // A GPU of the same generation may run it, one of a later generation may not.
  for (auto [architecture, image] :
       {std::pair(91, "cubin"), {100, "PTX"}, {120, "PTX"}}) {
    fake->architecture = architecture;
    fake->details.clear();
    auto executor = create(makeAssembledPlan());
    ASSERT_TRUE(executor.ok()) << executor.status();
    EXPECT_EQ(loaded().back(), image) << architecture;
  }
}

TEST_F(CudaModuleTest, CompilesWhereTheDriverDoesNotKnowTheMachineCode) {
  for (int error : {200, 209}) { // An invalid image, none for this GPU.
    fake->cubinError = error;
    fake->details.clear();
    auto executor = create(makeAssembledPlan());
    ASSERT_TRUE(executor.ok()) << executor.status();
    auto images = loaded();
    ASSERT_GE(images.size(), 2u);
    EXPECT_EQ(images[images.size() - 2], "cubin");
    EXPECT_EQ(images.back(), "PTX");
  }
  fake->cubinError = 2; // Out of memory: compiling will not help.
  fake->details.clear();
  auto executor = create(makeAssembledPlan());
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(loaded().back(), "cubin");
}

TEST(PlanCode, MachineCodeIsForGpus) {
  auto plan = Plan::parse(
      makePlan(1, [](fb::PlanT &plan) { plan.cubin.assign(4, 'x'); }));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(plan.status().message().find("has a cubin"),
            absl::string_view::npos)
      << plan.status();
}
