//===- RanksTest.cpp - Ranks from the environment -------------------------===//

#include "shardc-rt/Ranks.h"

#include <gtest/gtest.h>
#include <map>

using namespace shardc::rt;

using Variables = std::map<std::string, std::string>;

static absl::StatusOr<Ranks> read(const Variables &variables) {
  return ranksFrom([&](const char *name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt
                                    : std::optional(found->second);
  });
}

static void expectError(const Variables &variables, const std::string &text) {
  absl::StatusOr<Ranks> ranks = read(variables);
  EXPECT_EQ(ranks.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ranks.status().message(), text);
}

TEST(RanksTest, OneProcessWithoutALauncher) {
  auto ranks = read({{"HOME", "/"}, {"MASTER_ADDR", "a"}});
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(ranks->size, 1);
  EXPECT_EQ(ranks->launcher, "");
}

TEST(RanksTest, Torchrun) {
  Variables variables = {{"RANK", "5"},
                         {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "node0"},
                         {"MASTER_PORT", "29500"}};
  auto ranks = read(variables);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(ranks->rank, 5);
  EXPECT_EQ(ranks->size, 8);
  EXPECT_EQ(ranks->localRank, 1);
  EXPECT_EQ(ranks->address, "node0");
  EXPECT_EQ(ranks->port, 29500);
  EXPECT_EQ(ranks->launcher, "torchrun");
  // Its agent listens on that port.
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  ranks = read(variables);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(ranks->port, 29501);
  variables["SHARDC_PORT"] = "4000";
  ranks = read(variables);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(ranks->port, 4000);
}

TEST(RanksTest, MpirunAndSlurm) {
  Variables step = {{"SLURM_PROCID", "3"},
                    {"SLURM_STEP_NUM_TASKS", "4"},
                    {"SLURM_LOCALID", "1"},
                    {"SLURM_STEP_NUM_NODES", "2"},
                    {"MASTER_ADDR", "node0"}};
  auto ranks = read(step);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(ranks->rank, 3);
  EXPECT_EQ(ranks->launcher, "Slurm");
  EXPECT_EQ(ranks->port, 29533);
  // mpirun in a job of Slurm.
  Variables both = step;
  both.insert({{"OMPI_COMM_WORLD_RANK", "1"},
               {"OMPI_COMM_WORLD_SIZE", "2"},
               {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  both.erase("MASTER_ADDR");
  ranks = read(both);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(ranks->rank, 1);
  EXPECT_EQ(ranks->launcher, "mpirun");
  EXPECT_EQ(ranks->address, "127.0.0.1");
  // The script of a batch job is one process.
  ranks = read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}});
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(ranks->size, 1);
}

TEST(RanksTest, MissingVariables) {
  expectError({{"RANK", "0"}},
              "WORLD_SIZE is not set, but other variables of torchrun are");
  expectError({{"WORLD_SIZE", "2"}},
              "RANK is not set, but other variables of torchrun are");
  expectError({{"RANK", "0"}, {"WORLD_SIZE", "2"}},
              "LOCAL_RANK is not set, but other variables of torchrun are");
  expectError({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}},
              "MASTER_ADDR is not set: the machine of rank 0 of the 2 "
              "processes that torchrun started");
}

TEST(RanksTest, WrongAndContradictingVariables) {
  expectError({{"RANK", "one"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}},
              "RANK=\"one\": a number from 0 to 1048576 expected");
  expectError({{"RANK", "0"}, {"WORLD_SIZE", "0"}, {"LOCAL_RANK", "0"}},
              "WORLD_SIZE=\"0\": a number from 1 to 1048576 expected");
  expectError({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}},
              "RANK=2 contradicts WORLD_SIZE=2");
  expectError({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}},
              "LOCAL_RANK=1 contradicts RANK=0");
  expectError({{"RANK", "1"},
               {"WORLD_SIZE", "2"},
               {"LOCAL_RANK", "1"},
               {"LOCAL_WORLD_SIZE", "1"}},
              "LOCAL_RANK=1 contradicts LOCAL_WORLD_SIZE=1");
  expectError({{"RANK", "1"},
               {"WORLD_SIZE", "2"},
               {"LOCAL_RANK", "1"},
               {"LOCAL_WORLD_SIZE", "3"}},
              "LOCAL_WORLD_SIZE=3 contradicts WORLD_SIZE=2");
  expectError({{"RANK", "1"},
               {"WORLD_SIZE", "2"},
               {"LOCAL_RANK", "1"},
               {"MASTER_ADDR", "a"},
               {"MASTER_PORT", "0"}},
              "MASTER_PORT=\"0\": a number from 1 to 65535 expected");
}
