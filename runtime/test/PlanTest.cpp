//===- PlanTest.cpp - Plans are verified, never trusted
//--------------------===//

#include "TestPlan.h"

#include "shardc-rt/Plan.h"

#include <gtest/gtest.h>
#include <random>

using namespace shardc::rt;
using test::makePlan;

namespace {

absl::StatusCode codeOf(const std::string &bytes) {
  return Plan::parse(bytes).status().code();
}

TEST(PlanTest, ReadsASoundPlan) {
  auto plan = Plan::parse(makePlan(4));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->mesh.numDevices(), 4);
  ASSERT_NE((*plan)->findTensor("x"), nullptr);
  EXPECT_EQ((*plan)->findTensor("x")->role, Role::Input);
  ASSERT_NE((*plan)->findProgram("train_step"), nullptr);
  EXPECT_EQ((*plan)->findProgram("train_step")->commands.size(), 5u);
  EXPECT_EQ((*plan)->findTensor("nothing"), nullptr);
}

TEST(PlanTest, EveryTruncationIsAnError) {
  std::string bytes = makePlan(3);
  for (size_t length = 0; length < bytes.size();
       length += length < 4096 ? 1 : 97)
    ASSERT_EQ(codeOf(bytes.substr(0, length)), absl::StatusCode::kDataLoss)
        << length;
}

TEST(PlanTest, EveryFlippedByteIsAnError) {
  std::string bytes = makePlan(3);
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= 1 + random() % 255;
    ASSERT_FALSE(Plan::parse(damaged).ok());
  }
}

TEST(PlanTest, DamageBehindARightFingerprintNeverCrashes) {
  std::string bytes = makePlan(2);
  size_t code = bytes.find("\177ELF");
  std::mt19937 random(2);
  int accepted = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = bytes;
    // Anywhere but in the machine code, which is trusted.
    size_t at = random() % (damaged.size() - 16384);
    if (at >= code && code != std::string::npos)
      at = random() % code;
    damaged[at] ^= 1 << random() % 8;
    flatbuffers::Verifier verifier(
        reinterpret_cast<const uint8_t *>(damaged.data()), damaged.size());
    if (!fb::PlanBufferHasIdentifier(damaged.data()) ||
        !fb::VerifyPlanBuffer(verifier))
      continue;
    accepted += Plan::parse(test::withFingerprint(damaged)).ok();
  }
  EXPECT_GT(accepted, 0);
}

TEST(PlanTest, ForeignFilesAndVersions) {
  EXPECT_EQ(codeOf("PK\3\4 not a plan at all"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(codeOf(makePlan(2, [](fb::PlanT &p) { p.version = 99; })),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Plan::loadFile("/nonexistent/x.shardc").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(PlanTest, NeedsTheCpuFeatures) {
  absl::Status status = Plan::parse(makePlan(2, [](fb::PlanT &p) {
                          p.cpu_target = "another";
                          p.cpu_features = {"sse4_2", "feature_of_the_future"};
                        })).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("feature_of_the_future"),
            absl::string_view::npos);
}

using Edit = void (*)(fb::PlanT &);
class BrokenPlanTest : public testing::TestWithParam<Edit> {};

TEST_P(BrokenPlanTest, IsAnError) {
  absl::Status status = Plan::parse(makePlan(2, GetParam())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

fb::LaunchT *launch(fb::PlanT &p) {
  return p.programs[0]->commands[0]->operation.AsLaunch();
}
fb::CollectiveT *gather(fb::PlanT &p) {
  return p.programs[0]->commands[1]->operation.AsCollective();
}
fb::GemmT *gemm(fb::PlanT &p) {
  return p.programs[0]->commands[3]->operation.AsGemm();
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenPlanTest,
    testing::Values(
        +[](fb::PlanT &p) { p.mesh->axes[0]->size = 0; },
        +[](fb::PlanT &p) { p.mesh->axes[0]->size = 1 << 30; },
        +[](fb::PlanT &p) { p.mesh->axes[0]->name = ""; },
        +[](fb::PlanT &p) { p.alignment = 3; },
        +[](fb::PlanT &p) { p.batch_size = -1; },
        +[](fb::PlanT &p) { p.arena_bytes = 64; },
        +[](fb::PlanT &p) { p.tensors[0]->offset = 4; },
        +[](fb::PlanT &p) { p.tensors[0]->offset = ~uint64_t(63); },
        +[](fb::PlanT &p) { p.tensors[0]->bytes = 17; },
        +[](fb::PlanT &p) { p.tensors[0]->shape = {-4}; },
        +[](fb::PlanT &p) {
          p.tensors[0]->shape = {1 << 30, 1 << 30};
        },
        +[](fb::PlanT &p) { p.tensors[1]->name = "w"; },
        +[](fb::PlanT &p) { p.tensors[2]->sharding->dims[0]->axes = {7}; },
        +[](fb::PlanT &p) {
          p.tensors[2]->sharding->dims[0]->axes = {0, 0};
        },
        +[](fb::PlanT &p) { p.tensors[2]->sharding->dims.clear(); },
        +[](fb::PlanT &p) { p.tensors[0]->dtype = fb::DType(77); },
        +[](fb::PlanT &p) { p.tensors[0]->role = fb::Role(-3); },
        +[](fb::PlanT &p) { p.programs[0]->buffers[0]->bytes += 4; },
        +[](fb::PlanT &p) { launch(p)->kernel = 9; },
        +[](fb::PlanT &p) { launch(p)->buffers = {99}; },
        +[](fb::PlanT &p) { launch(p)->extent = -1; },
        +[](fb::PlanT &p) { launch(p)->grain = 0; },
        +[](fb::PlanT &p) { gather(p)->axes = {3}; },
        +[](fb::PlanT &p) { gather(p)->items[0]->dim = 5; },
        +[](fb::PlanT &p) { gather(p)->items[0]->in = 55; },
        +[](fb::PlanT &p) {
          gather(p)->items[0]->out = gather(p)->items[0]->in;
        },
        +[](fb::PlanT &p) { gather(p)->kind = fb::CollectiveKind(9); },
        +[](fb::PlanT &p) {
          gather(p)->kind = fb::CollectiveKind::CollectivePermute;
        },
        +[](fb::PlanT &p) { gemm(p)->k = 13; },
        +[](fb::PlanT &p) { gemm(p)->m = -1; },
        +[](fb::PlanT &p) { gemm(p)->bias = 1000; },
        +[](fb::PlanT &p) { gemm(p)->c = gemm(p)->a; },
        +[](fb::PlanT &p) { gemm(p)->activation = fb::Activation(5); },
        +[](fb::PlanT &p) { p.programs[0]->results[0]->buffer = 77; },
        +[](fb::PlanT &p) { p.programs[0]->results[1]->shape = {13}; }));

fb::LoopT *loop(fb::PlanT &p, size_t command) {
  return p.programs[0]->commands[command]->operation.AsLoop();
}

Edit loopEdits[] = {
    +[](fb::PlanT &p) { loop(p, 0)->runs = 0; },
    +[](fb::PlanT &p) { loop(p, 0)->runs = -3; },
    +[](fb::PlanT &p) { loop(p, 0)->runs = int64_t(1) << 40; },
    +[](fb::PlanT &p) { loop(p, 0)->commands = 0; },
    // Longer than the program; with a loop inside.
    +[](fb::PlanT &p) { loop(p, 5)->commands = 3; },
    +[](fb::PlanT &p) { loop(p, 0)->commands = 6; },
    // Out of the arena in the last run, and with overflow.
    +[](fb::PlanT &p) {
      p.programs[0]->buffers.back()->stride = p.arena_bytes / 2;
    },
    +[](fb::PlanT &p) { p.programs[0]->buffers.back()->stride = ~uint64_t(0); },
    // The product's operand moves on into its result.
    +[](fb::PlanT &p) {
      std::vector<std::unique_ptr<fb::BufferT>> &buffers =
          p.programs[0]->buffers;
      fb::GemmT *gemm = p.programs[0]->commands[6]->operation.AsGemm();
      buffers[gemm->a]->stride =
          buffers[gemm->c]->offset - buffers[gemm->a]->offset;
    },
    +[](fb::PlanT &p) {
      p.programs[0]->commands[4]->operation.AsClear()->buffer = 99;
    },
};

TEST(PlanTest, BrokenLoopsAreErrors) {
  EXPECT_TRUE(Plan::parse(makePlan(2, test::addLoops)).ok());
  for (Edit edit : loopEdits) {
    absl::Status status = Plan::parse(makePlan(2, [&](fb::PlanT &p) {
                            test::addLoops(p);
                            edit(p);
                          })).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss)
        << "edit " << &edit - loopEdits << ": " << status;
  }
}

} // namespace
