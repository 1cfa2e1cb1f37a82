//===- PipelineReportTest.cpp - Reports of pipelines ----------------------===//

#include "shardc/PipelineSchedules/MessageSlots.h"
#include "shardc/PipelineSchedules/SimulateSchedule.h"
#include "shardc/Target/Plan/Report.h"

#include "plan_generated.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

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

  /// Tasks and messages of a schedule that can be run; else no messages.
  static std::vector<PipelineMessage>
  findMessages(const PipelineSchedule &schedule, const RankSeconds &seconds) {
    std::vector<PipelineMessage> messages;
    if (llvm::Error error = checkPipelineSchedule(schedule)) {
      llvm::consumeError(std::move(error));
      return messages;
    }
    auto find = [&](bool isForward, int stage, int microbatch) {
      const auto &tasks = schedule.ranks[schedule.rankOfStage[stage]];
      auto found = llvm::find_if(tasks, [&](const PipelineTask &task) {
        return task.stage == stage && task.microbatch == microbatch &&
               (isForward ? task.kind == TaskKind::Forward
                          : task.kind == TaskKind::Backward ||
                                task.kind == TaskKind::InputGradient);
      });
      return static_cast<int>(found - tasks.begin());
    };
    for (int rank = 0; rank < schedule.getNumRanks(); ++rank)
      for (auto [place, task] : llvm::enumerate(schedule.ranks[rank])) {
        bool isForward = task.kind == TaskKind::Forward;
        int stage = task.stage + (isForward ? 1 : -1);
        if (task.kind == TaskKind::WeightGradient || stage < 0 ||
            stage == schedule.getNumStages() ||
            schedule.rankOfStage[stage] == rank)
          continue;
        messages.push_back({rank, schedule.rankOfStage[stage],
                            static_cast<int>(place),
                            find(isForward, stage, task.microbatch)});
      }
    double chunks =
        static_cast<double>(schedule.getNumStages()) / schedule.getNumRanks();
    StageTimes times{seconds.forward / chunks, seconds.inputGradient / chunks,
                     seconds.weightGradient / chunks, seconds.send / chunks,
                     seconds.send / chunks};
    placeMessages(
        simulateSchedule(
            schedule, std::vector<StageTimes>(schedule.getNumStages(), times)),
        messages);
    return messages;
  }

  void addCollective(Collectives &collectives, double seconds) {
    std::vector<flatbuffers::Offset<flatbuffers::String>> axes;
    collectives.push_back(fb::CreateCollectiveReportDirect(
        builder, fb::CollectiveKind::Send, &axes, 2, 10, 10, fb::Part::Forward,
        "model.mlir:1:1", "cause", seconds));
  }

  /// Starts a message of 10 bytes, or waits for it.
  void addStart(Commands &commands, Collectives &collectives, bool isSend,
                int peer, int number, double seconds) {
    std::vector<uint32_t> buffers = {0};
    if (isSend) {
      auto send = fb::CreateSendDirect(builder, &buffers, peer, number,
                                       uint32_t(collectives.size()));
      commands.push_back(
          fb::CreateCommand(builder, fb::Operation::Send, send.Union()));
      addCollective(collectives, seconds);
    } else {
      auto receive = fb::CreateReceiveDirect(builder, &buffers, peer, number);
      commands.push_back(
          fb::CreateCommand(builder, fb::Operation::Receive, receive.Union()));
    }
  }
  void addWait(Commands &commands, size_t start) {
    auto wait = fb::CreateCollectiveWait(builder, uint32_t(start));
    commands.push_back(fb::CreateCommand(builder, fb::Operation::CollectiveWait,
                                         wait.Union()));
  }

  /// The train step of a rank. Two ranks exchange what takes no time at the
  /// end.
  flatbuffers::Offset<fb::Program>
  writeStep(const PipelineSchedule &schedule,
            llvm::ArrayRef<PipelineMessage> messages, int rank,
            const RankSeconds &seconds) {
    double chunks =
        static_cast<double>(llvm::count(schedule.rankOfStage, rank));
    std::vector<flatbuffers::Offset<fb::Task>> tasks;
    std::vector<flatbuffers::Offset<fb::Buffer>> buffers;
    Commands commands;
    Collectives collectives;
    std::vector<flatbuffers::Offset<fb::Result>> results;
    RankSlots slots =
        getSlots(messages, rank, static_cast<int>(schedule.ranks[rank].size()));
    std::map<int, size_t> started;
    for (size_t slot = 0; slot <= schedule.ranks[rank].size(); ++slot) {
      for (int index : slots.starts[slot]) {
        const PipelineMessage &message = messages[index];
        bool isSend = message.from == rank;
        started[index] = commands.size();
        addStart(commands, collectives, isSend,
                 isSend ? message.to : message.from, message.number,
                 seconds.send / chunks);
      }
      for (int index : slots.ends[slot])
        addWait(commands, started.at(index));
      if (slot == schedule.ranks[rank].size())
        break;
      const PipelineTask &task = schedule.ranks[rank][slot];
      auto clear = fb::CreateClear(builder, uint32_t(0));
      commands.push_back(fb::CreateCommand(
          builder, fb::Operation::Clear, clear.Union(), fb::Part::Forward, 0,
          fb::Stream::Compute, 0, static_cast<int>(tasks.size())));
      tasks.push_back(fb::CreateTask(
          builder, fb::TaskKind(task.kind), task.stage, task.microbatch,
          getTaskSeconds(task.kind, seconds) / chunks));
    }
    if (schedule.getNumRanks() == 2)
      for (int sender : {0, 1})
        addStart(commands, collectives, sender == rank, 1 - rank,
                 int(messages.size()) + sender, 0);
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
    std::vector<PipelineMessage> messages = findMessages(schedule, seconds);
    for (int rank = 0; rank < schedule.getNumRanks(); ++rank) {
      programs.push_back(writeStep(schedule, messages, rank, seconds));
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
    // Anything but the default, so that the field has a place.
    plan.add_fingerprint(1);
    fb::FinishPlanBuffer(builder, plan.Finish());
    setFingerprint(builder.GetBufferPointer(), builder.GetSize());
    return {reinterpret_cast<const char *>(builder.GetBufferPointer()),
            builder.GetSize()};
  }

  /// As docs/PlanFormat.md has it: FNV-1a of the plan with zeros in its place.
  static void setFingerprint(uint8_t *bytes, size_t size) {
    auto *plan = flatbuffers::GetMutableRoot<flatbuffers::Table>(bytes);
    plan->SetField<uint64_t>(fb::Plan::VT_FINGERPRINT, 0, 1);
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; ++i)
      hash = (hash ^ bytes[i]) * 0x100000001b3;
    plan->SetField<uint64_t>(fb::Plan::VT_FINGERPRINT, hash, 1);
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

/// A rank has one message at a time, on both sides.
TEST_F(PipelineReport, MessagesGoOneAfterTheOther) {
  // F0 and F1 take 1 us each, and their messages 4 us. Rank 1 has F0 from 5 us
  // to 6 us, and then receives what F1 needs.
  RankSeconds seconds{1e-6, 1e-6, 0, 4e-6};
  json::Object pipeline =
      *report(write("gpipe", 2, 1, 2, seconds)).getObject("pipeline");
  const json::Array &starts =
      *(*pipeline.getArray("ranks"))[1].getAsObject()->getArray(
          "start_microseconds");
  EXPECT_NEAR(*starts[0].getAsNumber(), 5, 1e-6);
  EXPECT_NEAR(*starts[1].getAsNumber(), 10, 1e-6);
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
    ASSERT_EQ(lines.size(), 4u);
    for (auto [number, value] : llvm::enumerate(lines)) {
      const json::Object &line = *value.getAsObject();
      bool isOnce = number % 2 == 1;
      EXPECT_EQ(line.getInteger("rank"), int64_t(number / 2));
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
