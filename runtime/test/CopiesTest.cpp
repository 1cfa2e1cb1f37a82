//===- CopiesTest.cpp - Rounded copies of parameters ----------------------===//

#include "CudaFixture.h"

#include "base/Convert.h"
#include "shardc-rt/Executor.h"

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

float rounded(const HostArray &w) {
  return fromBF16(toBF16(w.values<float>()[0]));
}

/// The loss of the test plan with a copy is the copy's element 0.
void checkThatTheCopyFollows(Executor &executor, const NamedArrays &inputs) {
  auto run = [&](const char *program) {
    HostArray before = *executor.getTensor("w");
    auto result = executor.run(program, inputs);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->loss, rounded(before)) << program;
    EXPECT_NE(result->loss, before.values<float>()[0]);
  };
  HostArray w(DType::F32, {4});
  auto set = [&](float value) {
    w.values<float>()[0] = value;
    ASSERT_TRUE(executor.setTensor("w", w.view()).ok());
  };
  ASSERT_TRUE(executor.initializeParameters().ok());
  run("train_step");
  run("train_step");
  run("evaluate");
  // Another caller writes the parameter.
  set(0.1f);
  run("train_step");
  set(0.2f);
  run("evaluate");
  run("train_step");
  run("evaluate");
  ASSERT_TRUE(executor.initializeParameters().ok());
  run("evaluate");
}

std::unique_ptr<Executor> createOnCpu(Context &context, int devices) {
  auto plan = Plan::parse(makePlan(devices, addCopy));
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto executor = Executor::create(context, *plan);
  EXPECT_TRUE(executor.ok()) << executor.status();
  return *std::move(executor);
}

class CopiesTest : public CudaExecutorTest {
protected:
  static std::shared_ptr<const Plan> makeGpuPlanWithCopy(int devices) {
    return makeGpuPlan(devices, [](fb::PlanT &plan) {
      addCopy(plan);
      std::string ptx =
          ".entry test_round( .param .u64 a, .param .u64 b,\n"
          "  .param .u64 c ) { ret; }\n"
          ".entry test_first( .param .u64 a, .param .u64 b,\n"
          "  .param .u64 c ) { ret; }\n"
          ".entry test_update_copy( .param .u64 a, .param .u64 b,\n"
          "  .param .u64 c, .param .u64 d, .param .u64 e ) { ret; }\n";
      plan.code.insert(plan.code.end(), ptx.begin(), ptx.end());
    });
  }
};

TEST_F(CopiesTest, FollowParametersOnCpus) {
  for (int devices : {1, 3, 4})
    for (int threads : {1, 2, 3}) {
      auto context = Context::create({threads});
      auto executor = createOnCpu(**context, devices);
      checkThatTheCopyFollows(*executor, inputs());
    }
}

TEST_F(CopiesTest, FollowParametersOnGpus) {
  for (bool serialize : {false, true})
    for (int devices : {1, 2, 4}) {
      options.serialize = serialize;
      auto executor = create(makeGpuPlanWithCopy(devices));
      ASSERT_TRUE(executor.ok()) << executor.status();
      checkThatTheCopyFollows(**executor, inputs());
    }
}

TEST_F(CopiesTest, AreMadeOnlyAfterParametersWereSet) {
  auto executor = create(makeGpuPlanWithCopy(2));
  ASSERT_TRUE(executor.ok()) << executor.status();
  auto countLaunches = [&] {
    fake->calls.clear();
    EXPECT_TRUE((*executor)->step(inputs()).ok());
    // The host does not wait for the copies.
    EXPECT_EQ(countCalls("cuEventQuery"), 1);
    return countCalls("cuGraphLaunch");
  };
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  EXPECT_EQ(countLaunches(), 2);
  EXPECT_EQ(countLaunches(), 1);
  EXPECT_EQ(countLaunches(), 1);
  HostArray w(DType::F32, {4});
  ASSERT_TRUE((*executor)->setTensor("w", w.view()).ok());
  EXPECT_EQ(countLaunches(), 2);
  EXPECT_EQ(countLaunches(), 1);
}

TEST_F(CopiesTest, AreTheExecutorsOwn) {
  auto context = Context::create();
  auto executor = createOnCpu(**context, 2);
  EXPECT_EQ(executor->getTensor("w.bf16").status().code(),
            absl::StatusCode::kInvalidArgument);
  HostArray copy(DType::BF16, {4});
  EXPECT_EQ(executor->setTensor("w.bf16", copy.view()).message(),
            "\"w.bf16\" is a copy that follows parameter \"w\": set or read "
            "that");
  EXPECT_EQ(executor->run("round_parameters", inputs()).status().message(),
            "the program \"round_parameters\" runs by itself where it is "
            "needed");
}

struct Broken {
  void (*edit)(fb::PlanT &);
  const char *message;
};

class BrokenCopiesTest : public testing::TestWithParam<Broken> {};

TEST_P(BrokenCopiesTest, IsAnError) {
  absl::Status status = Plan::parse(makePlan(2, [](fb::PlanT &plan) {
                          addCopy(plan);
                          GetParam().edit(plan);
                        })).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(std::string(status.message()),
            std::string("damaged plan: ") + GetParam().message);
}

fb::TensorT &copyOf(fb::PlanT &plan) { return *plan.tensors.back(); }
fb::ProgramT &rounding(fb::PlanT &plan) { return *plan.programs.back(); }

INSTANTIATE_TEST_SUITE_P(
    All, BrokenCopiesTest,
    testing::Values(
        Broken{[](fb::PlanT &p) { copyOf(p).parameter = "v"; },
               "copy \"w.bf16\" is of \"v\", which is no parameter of the "
               "plan"},
        Broken{[](fb::PlanT &p) { copyOf(p).parameter = "x"; },
               "copy \"w.bf16\" is of \"x\", which is no parameter of the "
               "plan"},
        Broken{[](fb::PlanT &p) { copyOf(p).parameter = "m"; },
               "copy \"w.bf16\" is bf16[4] and its parameter f32[12,4]; "
               "expected the same shape and sharding"},
        Broken{[](fb::PlanT &p) {
                 copyOf(p).sharding->dims[0]->axes = {0};
                 copyOf(p).bytes /= 2;
               },
               "copy \"w.bf16\" is bf16[4] and its parameter f32[4]; expected "
               "the same shape and sharding"},
        Broken{[](fb::PlanT &p) {
                 copyOf(p).dtype = fb::DType::I32;
                 copyOf(p).bytes *= 2;
               },
               "copy \"w.bf16\" is i32 and its parameter f32; expected a "
               "narrower floating-point type"},
        Broken{[](fb::PlanT &p) { p.programs.pop_back(); },
               "copy \"w.bf16\" has no program \"round_parameters\" to make "
               "it"},
        Broken{[](fb::PlanT &p) { copyOf(p).role = fb::Role::State; },
               "program \"round_parameters\" in a plan without copies"},
        Broken{[](fb::PlanT &p) { rounding(p).commands.clear(); },
               "program \"round_parameters\" does not write copy \"w.bf16\""},
        Broken{[](fb::PlanT &p) {
                 p.programs[0]->buffers.back()->offset = p.arena_bytes;
                 p.arena_bytes += 64;
               },
               "program \"train_step\" does not write copy \"w.bf16\", but "
               "its parameter \"w\""},
        Broken{[](fb::PlanT &p) {
                 rounding(p).commands[0]->operation.AsLaunch()->writes = 2;
               },
               "program \"round_parameters\" writes parameter \"w\"; "
               "expected copies alone"},
        Broken{[](fb::PlanT &p) {
                 auto result = std::make_unique<fb::ResultT>();
                 result->name = "w";
                 result->shape = {4};
                 result->sharding =
                     std::make_unique<fb::ShardingT>(*p.tensors[0]->sharding);
                 rounding(p).results.push_back(std::move(result));
               },
               "program \"round_parameters\" has results"},
        Broken{[](fb::PlanT &p) {
                 fb::ClearT clear;
                 clear.buffer = 1;
                 auto command = std::make_unique<fb::CommandT>();
                 command->operation.Set(clear);
                 rounding(p).commands.push_back(std::move(command));
               },
               "program \"round_parameters\", command 1: clear where launches "
               "alone are expected"}));

} // namespace
