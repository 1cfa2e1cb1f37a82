//===- BucketsTest.cpp - Collectives in plans -----------------------------===//
//
// The collectives of a plan: where their tensors lie, that nothing
// is copied to put them there, and when they start and end.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/MemoryPlan.h"
#include "shardc/Driver/Compile.h"
#include "shardc/Models/Mlp.h"

#include "plan_generated.h"
#include "gtest/gtest.h"

using namespace shardc;
namespace fb = shardc::rt::fb;

namespace {

class BucketsTest : public testing::Test {
protected:
  /// The train step of a three-layer perceptron.
  const fb::Program &compile(const std::string &strategy,
                             int64_t bucketBytes = 0) {
    MlpSpec spec;
    spec.layers = {24, 40, 40, 8};
    spec.strategy = strategy;
    spec.mesh = strategy == "hsdp"
                    ? decltype(spec.mesh){{"replica", 2}, {"shard", 4}}
                    : decltype(spec.mesh){{"data", 4}, {"model", 2}};
    spec.batchSize = 16;
    CompileOptions options;
    options.bucketBytes = bucketBytes;
    CompileResult result = compileSource(printMlp(spec), "m.mlir", options);
    EXPECT_EQ(result.code, ExitCode::Ok) << result.diagnostics;
    bytes = result.plan;
    for (const fb::Program *program : *fb::GetPlan(bytes.data())->programs())
      if (program->name()->str() == "train_step")
        return *program;
    ADD_FAILURE() << "no train step";
    return *fb::GetPlan(bytes.data())->programs()->Get(0);
  }

  /// The collectives of a kind, in order.
  static std::vector<const fb::CollectiveStart *>
  getStarts(const fb::Program &program, fb::CollectiveKind kind) {
    std::vector<const fb::CollectiveStart *> starts;
    for (const fb::Command *command : *program.commands())
      if (const auto *start = command->operation_as_CollectiveStart())
        if (start->kind() == kind)
          starts.push_back(start);
    return starts;
  }

  /// Whether every tensor but the first starts where the one before it ends, up
  /// to the alignment.
  static bool isOneRegion(const fb::Program &program,
                          const fb::CollectiveStart &start, bool ofResults) {
    const fb::Buffer *last = nullptr;
    for (const fb::CollectiveItem *item : *start.items()) {
      const fb::Buffer *buffer =
          program.buffers()->Get(ofResults ? item->out() : item->in());
      if (last &&
          buffer->offset() != last->offset() + alignBytes(last->bytes()))
        return false;
      last = buffer;
    }
    return true;
  }

  std::string bytes;
};

TEST_F(BucketsTest, GradientsAndLossAreOneRegion) {
  const fb::Program &step = compile("dp");
  auto starts = getStarts(step, fb::CollectiveKind::AllReduce);
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0]->items()->size(), 7u);
  EXPECT_TRUE(isOneRegion(step, *starts[0], /*ofResults=*/false));
  EXPECT_TRUE(isOneRegion(step, *starts[0], /*ofResults=*/true));
  for (const fb::CollectiveItem *item : *starts[0]->items())
    EXPECT_EQ(step.buffers()->Get(item->in())->offset(),
              step.buffers()->Get(item->out())->offset());
}

TEST_F(BucketsTest, GradientsAndTheirShardsAreOneRegionEach) {
  const fb::Program &step = compile("fsdp");
  auto gathers = getStarts(step, fb::CollectiveKind::AllGather);
  auto scatters = getStarts(step, fb::CollectiveKind::ReduceScatter);
  ASSERT_EQ(gathers.size(), 1u);
  ASSERT_EQ(scatters.size(), 1u);
  EXPECT_EQ(gathers[0]->items()->size(), 6u);
  EXPECT_EQ(scatters[0]->items()->size(), 6u);
  EXPECT_TRUE(isOneRegion(step, *scatters[0], /*ofResults=*/false));
  EXPECT_TRUE(isOneRegion(step, *scatters[0], /*ofResults=*/true));
}

TEST_F(BucketsTest, AreAsSmallAsAskedFor) {
  for (int64_t limit : {1, 2000, 8000}) {
    const fb::Program &step = compile("dp", limit);
    auto starts = getStarts(step, fb::CollectiveKind::AllReduce);
    EXPECT_GT(starts.size(), 1u);
    for (const fb::CollectiveStart *start : starts) {
      int64_t sum = 0;
      for (const fb::CollectiveItem *item : *start->items())
        sum += step.buffers()->Get(item->in())->bytes();
      EXPECT_TRUE(sum <= limit || start->items()->size() == 1) << sum;
      EXPECT_TRUE(isOneRegion(step, *start, /*ofResults=*/true));
    }
  }
}

TEST_F(BucketsTest, NothingIsCopiedAndEveryStartHasItsWait) {
  for (const std::string &strategy : getStrategies())
    for (int64_t limit : {0, 3000}) {
      const fb::Program &step = compile(strategy, limit);
      std::vector<uint32_t> underWay;
      for (uint32_t i = 0; i < step.commands()->size(); ++i) {
        const fb::Command *command = step.commands()->Get(i);
        EXPECT_NE(command->operation_type(), fb::Operation::Copy) << strategy;
        if (command->operation_as_CollectiveStart() ||
            command->operation_as_Send() || command->operation_as_Receive())
          underWay.push_back(i);
        if (const auto *wait = command->operation_as_CollectiveWait()) {
          auto found =
              std::find(underWay.begin(), underWay.end(), wait->start());
          ASSERT_NE(found, underWay.end()) << strategy;
          underWay.erase(found);
        }
      }
      EXPECT_TRUE(underWay.empty()) << strategy;
    }
}

TEST_F(BucketsTest, ComputeRunsWhileGradientsAreReduced) {
  const fb::Program &step = compile("dp", /*bucketBytes=*/1);
  int underWay = 0, most = 0;
  bool overlaps = false;
  for (const fb::Command *command : *step.commands()) {
    underWay += command->operation_type() == fb::Operation::CollectiveStart;
    underWay -= command->operation_type() == fb::Operation::CollectiveWait;
    most = std::max(most, underWay);
    overlaps |= underWay > 0 && command->part() == fb::Part::Backward &&
                command->operation_type() == fb::Operation::Launch;
  }
  EXPECT_GT(most, 1);
  EXPECT_TRUE(overlaps);
}

} // namespace
