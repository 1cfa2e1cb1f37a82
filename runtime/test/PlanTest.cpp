//===- PlanTest.cpp - Plans are verified, never trusted -------------------===//

#include "TemporaryFolder.h"
#include "TestPlan.h"

#include "plan/PlanSpec.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace shardc::rt;
using test::makePlan;

namespace {

using Edit = void (*)(fb::PlanT &);

absl::StatusCode codeOf(const std::string &bytes) {
  return Plan::parse(bytes).status().code();
}

TEST(PlanTest, ReadsASoundPlan) {
  auto plan = Plan::parse(makePlan(4));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->numDevices(), 4);
  ASSERT_NE((*plan)->findTensor("x"), nullptr);
  EXPECT_EQ((*plan)->findTensor("x")->role, Role::Input);
  ASSERT_NE((*plan)->findProgram("train_step"), nullptr);
  EXPECT_EQ((*plan)->spec().findProgram("train_step")->commands.size(), 7u);
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

class DamagedPlanTest : public testing::TestWithParam<Edit> {};

TEST_P(DamagedPlanTest, DamageBehindARightFingerprintNeverCrashes) {
  std::string bytes = makePlan(2, GetParam());
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

INSTANTIATE_TEST_SUITE_P(All, DamagedPlanTest,
                         testing::Values(
                             +[](fb::PlanT &) {}, &test::addLoops,
                             &test::addCopy, &test::onGpu,
                             +[](fb::PlanT &p) {
                               test::addPipeline(p, /*ranks=*/2,
                                                 /*microbatches=*/2);
                             }));

TEST(PlanTest, ForeignFilesAndVersions) {
  EXPECT_EQ(codeOf("PK\3\4 not a plan at all"), absl::StatusCode::kDataLoss);
  absl::Status old =
      Plan::parse(makePlan(2, [](fb::PlanT &p) { p.version = 2; })).status();
  EXPECT_EQ(old.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(old.message(),
            "plan of version 2; this runtime reads versions 5 and "
            "6: compile the model again");
  EXPECT_EQ(
      Plan::loadFile(test::TemporaryFolder() / "x.shardc").status().code(),
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

class BrokenPlanTest : public testing::TestWithParam<Edit> {};

TEST_P(BrokenPlanTest, IsAnError) {
  absl::Status status = Plan::parse(makePlan(2, GetParam())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

fb::LaunchT *launch(fb::PlanT &p) {
  return p.programs[0]->commands[0]->operation.AsLaunch();
}
fb::CollectiveStartT *gather(fb::PlanT &p) {
  return p.programs[0]->commands[1]->operation.AsCollectiveStart();
}
fb::CollectiveStartT *reduce(fb::PlanT &p) {
  return p.programs[0]->commands[3]->operation.AsCollectiveStart();
}
fb::CollectiveWaitT *wait(fb::PlanT &p, int command) {
  return p.programs[0]->commands[command]->operation.AsCollectiveWait();
}
/// Sets the buffers and coordinates of each part of the launch's 6 iterations.
void addPart(fb::PlanT &p, int64_t extent, std::vector<uint16_t> buffers,
             std::vector<uint16_t> axes) {
  auto part = std::make_unique<fb::LaunchPartT>();
  part->extent = extent;
  part->buffers = std::move(buffers);
  part->coordinate_axes = std::move(axes);
  launch(p)->parts.push_back(std::move(part));
}
/// Lets kernel `kernel` compute the launch for `devices` devices, if it
/// reads no coordinates of `axes`.
void addGroupKernel(fb::PlanT &p, uint32_t kernel, uint32_t devices,
                    std::vector<uint16_t> axes = {}) {
  addPart(p, 6, {0, 1}, std::move(axes));
  launch(p)->group_kernel = kernel;
  launch(p)->group_devices = devices;
}
/// Makes it a plan for a GPU and returns the launch.
fb::LaunchT *launchOnGpu(fb::PlanT &p) {
  test::onGpu(p);
  return p.programs[0]->commands[1]->operation.AsLaunch();
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
        +[](fb::PlanT &p) { p.tensors[2]->sharding->dims[0]->shard_size = -1; },
        +[](fb::PlanT &p) { p.tensors[2]->sharding->dims[0]->shard_size = 1; },
        +[](fb::PlanT &p) {
          p.tensors[2]->sharding->dims[0]->shard_size = 1 << 20;
        },
        +[](fb::PlanT &p) {
          p.tensors[2]->sharding->dims[0]->shard_size = INT64_MAX;
        },
        +[](fb::PlanT &p) { p.tensors[0]->dtype = fb::DType(77); },
        +[](fb::PlanT &p) { p.tensors[0]->role = fb::Role(-3); },
        +[](fb::PlanT &p) { p.programs[0]->buffers[0]->bytes += 4; },
        +[](fb::PlanT &p) { p.kernels.push_back(p.kernels[0]); },
        +[](fb::PlanT &p) { launch(p)->kernel = 9; },
        +[](fb::PlanT &p) { launch(p)->buffers = {99}; },
        +[](fb::PlanT &p) { launch(p)->extent = -1; },
        +[](fb::PlanT &p) { launch(p)->grain = 0; },
        +[](fb::PlanT &p) { launch(p)->writes = 3; },
        +[](fb::PlanT &p) { launch(p)->threads = 64; },
        +[](fb::PlanT &p) {
          addPart(p, 5, {0, 1}, {0});
        },
        +[](fb::PlanT &p) {
          addPart(p, 7, {0, 1}, {0});
        },
        +[](fb::PlanT &p) { addPart(p, -1, {}, {}), addPart(p, 7, {}, {}); },
        +[](fb::PlanT &p) {
          addPart(p, 6, {0, 2}, {0});
        },
        +[](fb::PlanT &p) {
          addPart(p, 6, {0, 1}, {1});
        },
        +[](fb::PlanT &p) {
          addPart(p, 6, {0, 1}, {0});
          launch(p)->parts[0]->bytes_per_iteration = {8};
        },
        +[](fb::PlanT &p) {
          addPart(p, 6, {0, 1}, {0});
          launch(p)->parts[0]->bytes_per_iteration = {0, 1};
        },
        +[](fb::PlanT &p) {
          addPart(p, 6, {0, 1}, {0});
          launch(p)->parts[0]->bytes_per_iteration = {~uint64_t(0), 0};
        },
        +[](fb::PlanT &p) {
          launch(p)->grain = 4;
          addPart(p, 2, {0, 1}, {0});
          addPart(p, 4, {0, 1}, {0});
        },
        +[](fb::PlanT &p) { addGroupKernel(p, 2, 2); },
        +[](fb::PlanT &p) { addGroupKernel(p, 1, 1); },
        +[](fb::PlanT &p) { addGroupKernel(p, 1, 3); },
        +[](fb::PlanT &p) { addGroupKernel(p, 1, ~uint32_t(0)); },
        +[](fb::PlanT &p) { addGroupKernel(p, 1, 2, {0}); },
        +[](fb::PlanT &p) { launch(p)->group_devices = 2; },
        +[](fb::PlanT &p) { addGroupKernel(p, 1, 2), launch(p)->writes = 2; },
        +[](fb::PlanT &p) { addGroupKernel(p, 1, 2), launch(p)->writes = 0; },
        +[](fb::PlanT &p) {
          addGroupKernel(p, 1, 2);
          p.programs[0]->buffers[3]->dtype = fb::DType::I32;
        },
        +[](fb::PlanT &p) {
          addGroupKernel(p, 1, 2);
          launch(p)->parts[0]->extent = 3;
          addPart(p, 3, {0, 1}, {});
        },
        // The kernel of a group that shares a buffer.
        +[](fb::PlanT &p) { launch(p)->group_shared = 0; },
        +[](fb::PlanT &p) {
          addGroupKernel(p, 2, 2), launch(p)->group_shared = 0;
        },
        +[](fb::PlanT &p) {
          addGroupKernel(p, 1, 3), launch(p)->group_shared = 0;
        },
        +[](fb::PlanT &p) {
          addGroupKernel(p, 1, 2), launch(p)->group_shared = 1;
        },
        +[](fb::PlanT &p) {
          addGroupKernel(p, 1, 2), launch(p)->group_shared = 1 << 30;
        },
        +[](fb::PlanT &p) {
          addGroupKernel(p, 1, 2, {0}), launch(p)->group_shared = 0;
        },
        +[](fb::PlanT &p) {
          fb::LaunchT *onGpu = launchOnGpu(p);
          onGpu->group_kernel = 1;
          onGpu->group_devices = 2;
        },
        +[](fb::PlanT &p) { p.gpu_target = "sm_90"; },
        +[](fb::PlanT &p) { launchOnGpu(p)->threads = 48; },
        +[](fb::PlanT &p) { launchOnGpu(p)->threads = 2048; },
        +[](fb::PlanT &p) { launchOnGpu(p)->extent = 0; },
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
        +[](fb::PlanT &p) {
          gather(p)->sources = {1, 0};
        },
        +[](fb::PlanT &p) { p.programs[0]->results[0]->buffer = 77; },
        +[](fb::PlanT &p) { p.programs[0]->results[1]->shape = {13}; }));

TEST(PlanTest, OfAGpuSaysSo) {
  auto plan = Plan::parse(makePlan(2, test::onGpu));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->target(), "sm_90");
}

/// A defect in the order of commands, and the text of its error.
struct Misuse {
  const char *message;
  Edit edit;
};
class MisuseTest : public testing::TestWithParam<Misuse> {};

TEST_P(MisuseTest, IsAnError) {
  absl::Status status = Plan::parse(makePlan(2, GetParam().edit)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(status.message().find(GetParam().message), absl::string_view::npos)
      << status;
}

/// Moves command `from` to where `to` is.
void move(fb::PlanT &p, int from, int to) {
  auto &commands = p.programs[0]->commands;
  if (from < to)
    std::rotate(commands.begin() + from, commands.begin() + from + 1,
                commands.begin() + to + 1);
  else
    std::rotate(commands.begin() + to, commands.begin() + from,
                commands.begin() + from + 1);
}

INSTANTIATE_TEST_SUITE_P(
    Collectives, MisuseTest,
    testing::Values(
        Misuse{"command 2: waits for command 0, which starts no communication",
               [](fb::PlanT &p) { wait(p, 2)->start = 0; }},
        Misuse{"command 2: waits for command 99, which starts no communication",
               [](fb::PlanT &p) { wait(p, 2)->start = 99; }},
        Misuse{"command 4: waits for command 1, which has been waited for",
               [](fb::PlanT &p) { wait(p, 4)->start = 1; }},
        Misuse{"command 2: waits for command 3, which comes later",
               [](fb::PlanT &p) { wait(p, 2)->start = 3; }},
        Misuse{"command 3: starts communication that is never waited for",
               [](fb::PlanT &p) { p.programs[0]->commands.resize(4); }},
        // The second collective reads the result of the first one.
        Misuse{"nothing orders command 2 (all_reduce), which reads bytes",
               [](fb::PlanT &p) {
                 move(p, 2, 3);
                 wait(p, 4)->start = 2;
               }},
        // The GEMM reads the sum before the wait.
        Misuse{"nothing orders command 4 (gemm), which reads bytes",
               [](fb::PlanT &p) { move(p, 4, 5); }},
        // The kernel writes its result into the operand of the gather.
        Misuse{"nothing orders command 1 (launch), which writes bytes",
               [](fb::PlanT &p) {
                 move(p, 0, 1);
                 wait(p, 2)->start = 0;
               }},
        // A loop of the start alone, and one of the wait alone.
        Misuse{"command 2: ends a loop in which command 2 starts communication",
               [](fb::PlanT &p) { test::addLoop(p, 1, /*runs=*/2); }},
        Misuse{"command 3: waits in each run of a loop for command 1",
               [](fb::PlanT &p) { test::addLoop(p, 2, /*runs=*/2); }},
        Misuse{"sources of all_gather over 2 devices are no permutation",
               [](fb::PlanT &p) {
                 gather(p)->sources = {1, 0};
               }},
        Misuse{
            "sources of collective_permute over 2 devices are no permutation",
            [](fb::PlanT &p) {
              gather(p)->kind = fb::CollectiveKind::CollectivePermute;
              gather(p)->target_axes = gather(p)->axes;
              gather(p)->sources = {1, 1};
            }},
        Misuse{
            "sources of collective_permute over 2 devices are no permutation",
            [](fb::PlanT &p) {
              gather(p)->kind = fb::CollectiveKind::CollectivePermute;
              gather(p)->target_axes = gather(p)->axes;
              gather(p)->sources = {0, 4294967295u};
            }},
        Misuse{"command 3: the result of tensor 0 overlaps tensor 1",
               [](fb::PlanT &p) {
                 reduce(p)->items.push_back(
                     std::make_unique<fb::CollectiveItemT>(
                         *reduce(p)->items[0]));
               }}));

/// Command `number` of the plan for a GPU.
fb::CommandT &onGpu(fb::PlanT &p, int number) {
  test::onGpu(p);
  return *p.programs[0]->commands[number];
}

INSTANTIATE_TEST_SUITE_P(
    Streams, MisuseTest,
    testing::Values(
        Misuse{
            "command 0: launch on stream communication after 0 commands in a "
            "plan for a CPU",
            [](fb::PlanT &p) {
              p.programs[0]->commands[0]->stream = fb::Stream::Communication;
            }},
        Misuse{"command 1: all_gather on stream compute after 1 commands in a "
               "plan for a CPU",
               [](fb::PlanT &p) { p.programs[0]->commands[1]->after = {0}; }},
        Misuse{"command 1: unknown stream",
               [](fb::PlanT &p) { onGpu(p, 1).stream = fb::Stream(3); }},
        Misuse{"command 2: all_gather on stream compute, expected",
               [](fb::PlanT &p) {
                 // They are ordered nevertheless.
                 onGpu(p, 2).stream = fb::Stream::Compute;
                 p.programs[0]->commands[2]->after.clear();
                 p.programs[0]->commands[3]->after = {2};
               }},
        Misuse{"command 4: is to come after command 5, which has not been",
               [](fb::PlanT &p) {
                 onGpu(p, 4).after = {3, 5};
               }},
        Misuse{"command 4: is to come after command 4, which has not been",
               [](fb::PlanT &p) { onGpu(p, 4).after = {4}; }},
        Misuse{"command 4: the commands that it comes after are not in order",
               [](fb::PlanT &p) {
                 onGpu(p, 4).after = {3, 2};
               }},
        Misuse{
            "command 0: tensor 3 of 3",
            [](fb::PlanT &p) { onGpu(p, 0).operation.AsUpload()->tensor = 3; }},
        Misuse{
            "command 0: tensor \"w\" is a parameter, which the host does not",
            [](fb::PlanT &p) { onGpu(p, 0).operation.AsUpload()->tensor = 0; }},
        Misuse{"command 8: result 9 of 3",
               [](fb::PlanT &p) {
                 onGpu(p, 8).operation.AsDownload()->result = 9;
               }},
        Misuse{"command 4: waits for command 2, but in a plan for a GPU",
               [](fb::PlanT &p) {
                 fb::CollectiveWaitT wait;
                 wait.start = 2;
                 onGpu(p, 4).operation.Set(wait);
               }}));

fb::LoopT *loop(fb::PlanT &p, size_t command) {
  return p.programs[0]->commands[command]->operation.AsLoop();
}

Edit loopEdits[] = {
    +[](fb::PlanT &p) { loop(p, 0)->runs = 0; },
    +[](fb::PlanT &p) { loop(p, 0)->runs = -3; },
    +[](fb::PlanT &p) { loop(p, 0)->runs = int64_t(1) << 40; },
    +[](fb::PlanT &p) { loop(p, 0)->commands = 0; },
    // Longer than the program; with a loop inside.
    +[](fb::PlanT &p) { loop(p, 7)->commands = 3; },
    +[](fb::PlanT &p) { loop(p, 0)->commands = 8; },
    // Out of the arena in the last run, and with overflow.
    +[](fb::PlanT &p) {
      p.programs[0]->buffers.back()->stride = p.arena_bytes / 2;
    },
    +[](fb::PlanT &p) { p.programs[0]->buffers.back()->stride = ~uint64_t(0); },
    // The GEMM's operand moves on into its result.
    +[](fb::PlanT &p) {
      std::vector<std::unique_ptr<fb::BufferT>> &buffers =
          p.programs[0]->buffers;
      fb::GemmT *gemm = p.programs[0]->commands[8]->operation.AsGemm();
      buffers[gemm->a]->stride =
          buffers[gemm->c]->offset - buffers[gemm->a]->offset;
    },
    +[](fb::PlanT &p) {
      p.programs[0]->commands[6]->operation.AsClear()->buffer = 99;
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
