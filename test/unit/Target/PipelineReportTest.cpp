//===- PipelineReportTest.cpp - Reports of pipelines ----------------------===//

#include "shardc/PipelineSchedules/PipelineSchedule.h"
#include "shardc/Target/Plan/Report.h"

#include "plan_generated.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace shardc;
using testing::HasSubstr;
namespace fb = shardc::rt::fb;
namespace json = llvm::json;

namespace {

/// The seconds of the tasks of a rank's stages together, on one microbatch.
struct RankSeconds {
  double forward = 1e-6, inputGradient = 1e-6, weightGradient = 1e-6;
  double send = 0;
};

class PipelineReport : public testing::Test {
protected:
  using Commands = std::vector<flatbuffers::Offset<fb::Command>>;
  using Collectives = std::vector<flatbuffers::Offset<fb::CollectiveReport>>;

  double getTaskSeconds(TaskKind kind, const RankSeconds &seconds) {
    switch (kind) {
    case TaskKind::Forward:
      return seconds.forward;
    case TaskKind::InputGradient:
      return seconds.inputGradient;
    case TaskKind::WeightGradient:
      return seconds.weightGradient;
    case TaskKind::Backward:
      return seconds.inputGradient + seconds.weightGradient;
    }
    return 0;
  }

  void addSend(Commands &commands, Collectives &collectives, double seconds) {
    std::vector<uint32_t> buffers = {0};
    auto send = fb::CreateSendDirect(builder, &buffers, 0, 0,
                                     uint32_t(collectives.size()));
    commands.push_back(
        fb::CreateCommand(builder, fb::Operation::Send, send.Union()));
    std::vector<flatbuffers::Offset<flatbuffers::String>> axes;
    collectives.push_back(fb::CreateCollectiveReportDirect(
        builder, fb::CollectiveKind::Send, &axes, 2, 10, 10, fb::Part::Forward,
        "model.mlir:1:1", "cause", seconds));
  }

  /// The train step of a rank. Behind each task is a send of 10 bytes, and
  /// behind the last one two, the second of the sum of all microbatches, which
  /// takes no time.
  flatbuffers::Offset<fb::Program> writeStep(const PipelineSchedule &schedule,
                                             int rank,
                                             const RankSeconds &seconds) {
    double chunks =
        static_cast<double>(llvm::count(schedule.rankOfStage, rank));
    std::vector<flatbuffers::Offset<fb::Task>> tasks;
    std::vector<flatbuffers::Offset<fb::Buffer>> buffers;
    Commands commands;
    Collectives collectives;
    std::vector<flatbuffers::Offset<fb::Result>> results;
    for (const PipelineTask &task : schedule.ranks[rank]) {
      auto clear = fb::CreateClear(builder, uint32_t(0));
      commands.push_back(fb::CreateCommand(
          builder, fb::Operation::Clear, clear.Union(), fb::Part::Forward, 0,
          fb::Stream::Compute, 0, static_cast<int>(tasks.size())));
      addSend(commands, collectives, seconds.send / chunks);
      tasks.push_back(fb::CreateTask(
          builder, fb::TaskKind(task.kind), task.stage, task.microbatch,
          getTaskSeconds(task.kind, seconds) / chunks));
    }
    addSend(commands, collectives, 0);
    return fb::CreateProgramDirect(builder, "train_step", &buffers, &commands,
                                   &results, &collectives, 10, 0, 0, 0, 0, 0, 0,
                                   static_cast<int16_t>(rank), &tasks);
  }

  /// The bytes of a plan with this pipeline.
  llvm::StringRef write(const PipelineSchedule &schedule,
                        const RankSeconds &seconds = {}) {
    builder.Clear();
    std::vector<flatbuffers::Offset<fb::Program>> programs;
    std::vector<flatbuffers::Offset<fb::PipelineRank>> ranks;
    for (int rank = 0; rank < schedule.getNumRanks(); ++rank) {
      programs.push_back(writeStep(schedule, rank, seconds));
      ranks.push_back(fb::CreatePipelineRank(builder, 64));
    }
    std::vector<flatbuffers::Offset<fb::Axis>> axes = {
        fb::CreateAxisDirect(builder, "stage", schedule.getNumRanks())};
    auto mesh = fb::CreateMeshDirect(builder, 0, &axes);
    std::vector<uint16_t> stages(schedule.rankOfStage.begin(),
                                 schedule.rankOfStage.end());
    auto pipeline = fb::CreatePipelineDirect(builder, 0, "csv", &stages,
                                             schedule.microbatches, &ranks);
    std::vector<flatbuffers::Offset<fb::Tensor>> tensors;
    std::vector<flatbuffers::Offset<flatbuffers::String>> kernels;
    auto model = builder.CreateString("model");
    auto tensorsOffset = builder.CreateVector(tensors);
    auto programsOffset = builder.CreateVector(programs);
    auto kernelsOffset = builder.CreateVector(kernels);
    auto code = builder.CreateVector(std::vector<uint8_t>());
    fb::PlanBuilder plan(builder);
    plan.add_model(model);
    plan.add_mesh(mesh);
    plan.add_tensors(tensorsOffset);
    plan.add_programs(programsOffset);
    plan.add_kernels(kernelsOffset);
    plan.add_code(code);
    plan.add_arena_bytes(64);
    plan.add_pipeline(pipeline);
    fb::FinishPlanBuffer(builder, plan.Finish());
    return {reinterpret_cast<const char *>(builder.GetBufferPointer()),
            builder.GetSize()};
  }

  llvm::StringRef write(llvm::StringRef name, int ranks, int chunks,
                        int microbatches, const RankSeconds &seconds = {}) {
    return write(
        llvm::cantFail(makePipelineSchedule(name, ranks, chunks, microbatches)),
        seconds);
  }

  /// The JSON report, or an empty object with a failure.
  static json::Object report(llvm::StringRef plan, ReportKinds kinds = {}) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (llvm::Error error = printJsonReports(plan, kinds, {}, os)) {
      ADD_FAILURE() << llvm::toString(std::move(error));
      return {};
    }
    return *llvm::cantFail(json::parse(text)).getAsObject();
  }

  static std::string print(llvm::StringRef plan) {
    ReportKinds kinds;
    kinds.pipeline = true;
    std::string text;
    llvm::raw_string_ostream os(text);
    if (llvm::Error error = printReports(plan, kinds, os))
      return llvm::toString(std::move(error));
    return text;
  }

  /// Expects the makespan in microseconds and, by rank, the live microbatches.
  void expect(llvm::StringRef name, int ranks, int chunks, int microbatches,
              double makespan, llvm::function_ref<double(int)> getLive) {
    json::Object pipeline =
        *report(write(name, ranks, chunks, microbatches)).getObject("pipeline");
    std::string what = name.str() + " S=" + std::to_string(ranks) +
                       " V=" + std::to_string(chunks) +
                       " M=" + std::to_string(microbatches);
    EXPECT_NEAR(*pipeline.getNumber("makespan_microseconds"), makespan, 1e-6)
        << what;
    EXPECT_NEAR(*pipeline.getNumber("bubble"), 1 - 3 * microbatches / makespan,
                1e-9)
        << what;
    const json::Array &list = *pipeline.getArray("ranks");
    ASSERT_EQ(list.size(), size_t(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const json::Object &each = *list[rank].getAsObject();
      EXPECT_NEAR(*each.getNumber("busy_microseconds"), 3 * microbatches, 1e-6);
      EXPECT_DOUBLE_EQ(*each.getNumber("live_microbatches"), getLive(rank))
          << what << " rank " << rank;
    }
  }

  flatbuffers::FlatBufferBuilder builder;
};

TEST_F(PipelineReport, EqualTimes) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int runs = 1; runs <= 24; ++runs) {
      expect("gpipe", ranks, 1, runs, 3 * (runs + ranks - 1),
             [&](int) { return runs; });
      expect("1f1b", ranks, 1, runs, 3 * (runs + ranks - 1),
             [&](int rank) { return std::min(runs, ranks - rank); });
      if (runs >= 2 * ranks)
        expect("zero-bubble", ranks, 1, runs, 3 * runs + ranks - 1,
               [&](int) { return std::min(runs, ranks); });
      for (int chunks = 1; chunks <= 3; ++chunks)
        if (runs % ranks == 0)
          expect("interleaved", ranks, chunks, runs,
                 3 * (runs + (ranks - 1.0) / chunks), [&](int rank) {
                   double first = chunks > 1 ? 2 * (ranks - rank - 1) +
                                                   (chunks - 1) * ranks + 1
                                             : ranks - rank;
                   return std::min<double>(first, runs * chunks) / chunks;
                 });
    }
}

TEST_F(PipelineReport, Bubbles) {
  auto getPercent = [&](llvm::StringRef name, int ranks, int chunks, int runs) {
    return 100 * *report(write(name, ranks, chunks, runs))
                      .getObject("pipeline")
                      ->getNumber("bubble");
  };
  EXPECT_NEAR(getPercent("gpipe", 4, 1, 8), 27.3, 0.05);
  EXPECT_NEAR(getPercent("1f1b", 4, 1, 8), 27.3, 0.05);
  EXPECT_NEAR(getPercent("interleaved", 4, 2, 8), 15.8, 0.05);
  EXPECT_NEAR(getPercent("zero-bubble", 4, 1, 8), 11.1, 0.05);
  EXPECT_NEAR(getPercent("1f1b", 8, 1, 32), 17.9, 0.05);
  EXPECT_NEAR(getPercent("interleaved", 8, 2, 32), 9.9, 0.05);
  EXPECT_NEAR(getPercent("interleaved", 8, 4, 32), 5.2, 0.05);
  EXPECT_NEAR(getPercent("zero-bubble", 8, 1, 32), 6.8, 0.05);
}

TEST_F(PipelineReport, OtherTimes) {
  RankSeconds seconds{2e-6, 3e-6, 1e-6};
  auto getMakespan = [&](llvm::StringRef name) {
    return *report(write(name, 4, 1, 8, seconds))
                .getObject("pipeline")
                ->getNumber("makespan_microseconds");
  };
  EXPECT_NEAR(getMakespan("1f1b"), 11 * 6, 1e-6);
  EXPECT_NEAR(getMakespan("zero-bubble"), 8 * 6 + 3 * (2 + 3 - 1), 1e-6);
  // With one microbatch 2 * 3 sends delay the last task.
  seconds.send = 0.5e-6;
  EXPECT_NEAR(*report(write("1f1b", 4, 1, 1, seconds))
                   .getObject("pipeline")
                   ->getNumber("makespan_microseconds"),
              4 * 6 + 6 * 0.5, 1e-6);
}

TEST_F(PipelineReport, ForPeople) {
  EXPECT_EQ(
      print(write("1f1b", 2, 1, 4)),
      "Pipeline csv: 2 ranks, 2 stages, 4 microbatches; tasks over time, by "
      "estimated times\n"
      "  rank 0  F0 F1 ......B0--- F2 B1--- F3 B2--- ...B3---\n"
      "  rank 1  ...F0 B0--- F1 B1--- F2 B2--- F3 B3--- ......\n"
      "  rank  stages  live microbatches  busy us    idle  wire bytes  peak "
      "bytes\n"
      "     0  0                       2    12.00  20.0 %          10          "
      "64\n"
      "     1  1                       1    12.00  20.0 %          10          "
      "64\n"
      "   all                                                      20\n"
      "  makespan of the tasks: 15.00 us, bubble 20.0 %\n");
}

/// An op has a line, whatever the number of microbatches; what is sent once has
/// its own.
TEST_F(PipelineReport, LinesOfCollectives) {
  for (int runs : {1, 4}) {
    ReportKinds kinds;
    kinds.communication = true;
    json::Object all = report(write("1f1b", 2, 1, runs), kinds);
    const json::Array &lines = *all.getArray("collectives");
    ASSERT_EQ(lines.size(), 6u);
    for (auto [number, value] : llvm::enumerate(lines)) {
      const json::Object &line = *value.getAsObject();
      bool isOnce = number % 3 == 2;
      EXPECT_EQ(line.getInteger("rank"), int64_t(number / 3));
      EXPECT_EQ(line.getInteger("runs"), isOnce ? 1 : runs);
      EXPECT_EQ(line.getInteger("wire_bytes"), isOnce ? 10 : 10 * runs);
    }
  }
}

TEST_F(PipelineReport, NoSchedule) {
  PipelineSchedule schedule =
      llvm::cantFail(makePipelineSchedule("1f1b", 2, 1, 2));
  std::swap(schedule.ranks[0][1], schedule.ranks[0][2]);
  std::swap(schedule.ranks[1][1], schedule.ranks[1][2]);
  EXPECT_THAT(print(write(schedule)),
              HasSubstr("the plan's pipeline: the schedule waits forever"));
  schedule.ranks[0].pop_back();
  EXPECT_THAT(print(write(schedule)), HasSubstr("is missing"));
  schedule.ranks[0].push_back({TaskKind::Backward, 0, 9});
  EXPECT_EQ(print(write(schedule)),
            "the plan's pipeline: a task is of no kind or microbatch");
  schedule.rankOfStage.clear();
  EXPECT_EQ(print(write(schedule)),
            "a schedule needs at least one stage and one microbatch");
}

} // namespace
