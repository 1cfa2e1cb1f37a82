//===- KernelLibraryTest.cpp - Which code of a plan is run ----------------===//

#include "exec/KernelLibrary.h"

#include "TestPlan.h"

#include <gtest/gtest.h>

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

/// A plan that has its code again for a CPU with `features`.
std::shared_ptr<const Plan>
makeWiderPlan(const std::vector<std::string> &features,
              const std::vector<uint8_t> *code = nullptr) {
  auto plan = Plan::parse(makePlan(2, [&](fb::PlanT &plan) {
    plan.cpu_target = "base";
    auto wider = std::make_unique<fb::CpuCodeT>();
    wider->cpu_target = "wide";
    wider->cpu_features = features;
    wider->code = code ? *code : plan.code;
    plan.wider_codes.push_back(std::move(wider));
  }));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

const std::vector<uint8_t> broken(100, 'x');

} // namespace

TEST(KernelLibrary, TakesTheMostThatTheCpuHas) {
  // An error of loading names the version of the code.
  EXPECT_EQ(KernelLibrary::load(makeWiderPlan({"popcnt"}, &broken)->spec())
                .status()
                .code(),
            absl::StatusCode::kDataLoss);
  auto narrow =
      KernelLibrary::load(makeWiderPlan({"avx4096"}, &broken)->spec());
  EXPECT_TRUE(narrow.ok()) << narrow.status();
  auto wide = KernelLibrary::load(makeWiderPlan({"popcnt"})->spec());
  EXPECT_TRUE(wide.ok()) << wide.status();
}

TEST(KernelLibrary, TakesTheCodeThatIsAskedFor) {
  auto plan = makeWiderPlan({"popcnt"}, &broken);
  EXPECT_TRUE(KernelLibrary::load(plan->spec(), "base").ok());
  EXPECT_EQ(KernelLibrary::load(plan->spec(), "wide").status().code(),
            absl::StatusCode::kDataLoss);
  absl::Status unknown = KernelLibrary::load(plan->spec(), "other").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(unknown.message().find("\"other\": expected one of base, wide"),
            absl::string_view::npos)
      << unknown;
  absl::Status lacking =
      KernelLibrary::load(makeWiderPlan({"avx4096"})->spec(), "wide").status();
  EXPECT_EQ(lacking.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(lacking.message().find("lacks avx4096"), absl::string_view::npos)
      << lacking;
}

TEST(KernelLibrary, PlansForGpusHaveNoCodeForCpus) {
  auto plan = Plan::parse(makePlan(1, [](fb::PlanT &plan) {
    onGpu(plan);
    auto wider = std::make_unique<fb::CpuCodeT>();
    wider->cpu_target = "wide";
    wider->code = {'x'};
    plan.wider_codes.push_back(std::move(wider));
  }));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(plan.status().message().find("has code for wide"),
            absl::string_view::npos)
      << plan.status();
}
