//===- TraceTest.cpp - What is made of recorded spans ---------------------===//

#include "trace/ChromeTrace.h"
#include "trace/Profile.h"

#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace shardc::rt;

namespace {

using Json = nlohmann::json;

/// Steps of a millisecond.
constexpr int64_t millisecond = 1000000;

TracedStep compute(const std::string &name) {
  TracedStep step;
  step.name = name;
  step.part = "forward";
  step.bytes = 100;
  step.devices = {{0}};
  return step;
}

TracedStep communicate(const std::string &name) {
  TracedStep step = compute(name);
  step.kind = TracedStep::Kind::Communication;
  step.bytes = 0;
  return step;
}

/// The recording of two workers.
class Recorded : public testing::Test {
protected:
  void open(std::vector<TracedStep> steps, int64_t runs = 1) {
    TracedProgram program;
    program.name = "train_step";
    program.spansPerRun = steps.size();
    program.steps = std::move(steps);
    trace.emplace(TraceOptions{runs});
    ASSERT_TRUE(
        trace
            ->open({program}, {{"worker 0"}, {"worker 1"}}, Mesh({{"data", 1}}))
            .ok());
  }

  /// A run whose workers spend a millisecond on each step, worker 1 later.
  void run(bool failed = false, int64_t late = 0) {
    const size_t steps = trace->programs[0].steps.size();
    int32_t number = trace->beginRun(0);
    TracedRun &run = trace->runs.back();
    run.begin = number * 100 * millisecond;
    for (uint32_t step = 0; step < steps; ++step)
      for (int worker = 0; worker < 2; ++worker) {
        int64_t at = run.begin + step * millisecond + worker * late;
        trace->workers[worker].add(
            {0, step, number, 0, worker, worker + 1, at, at, at + millisecond});
      }
    trace->endRun(number, failed);
    run.end = run.begin + steps * millisecond + late;
  }

  Json events() const {
    return Json::parse(
        chromeTrace({chromeEvents(*trace, {})}, trace->plan))["traceEvents"];
  }
  Json events(const std::string &phase) const {
    Json found = Json::array();
    for (const Json &event : events())
      if (event["ph"] == phase)
        found.push_back(event);
    return found;
  }

  std::optional<Trace::State> trace;
};

} // namespace

TEST_F(Recorded, RunThatFailedIsShownAndNotCounted) {
  open({compute("a"), compute("b")}, /*runs=*/2);
  run();
  run(/*failed=*/true);
  std::vector<std::string> steps;
  for (const Json &event : events("X")) {
    EXPECT_GE(event["dur"], 0);
    if (event["cat"] == "run")
      steps.push_back(event["name"]);
  }
  EXPECT_EQ(steps, std::vector<std::string>({"step 1", "step 2, failed"}));
  Profile profile = profileOf(*trace);
  EXPECT_EQ(profile.numSteps, 1);
  EXPECT_DOUBLE_EQ(profile.stepSeconds, 2e-3);
}

TEST_F(Recorded, RunWhoseSpansWereReplacedIsNotCounted) {
  open({compute("a"), compute("b")}, /*runs=*/2);
  // The rings have room for one run more.
  for (int i = 0; i < 4; ++i)
    run();
  ASSERT_GT(trace->workers[0].numLost(), 0u);
  Profile profile = profileOf(*trace);
  EXPECT_EQ(profile.firstStep, 3);
  EXPECT_EQ(profile.numSteps, 2);
  EXPECT_DOUBLE_EQ(profile.seconds["forward"], profile.stepSeconds);
}

TEST_F(Recorded, StepThatWasInterruptedIsNotCounted) {
  open({compute("a")}, /*runs=*/4);
  for (int i = 0; i < 4; ++i)
    run();
  trace->runs[1].end += 5 * millisecond;
  Profile profile = profileOf(*trace);
  EXPECT_EQ(profile.firstStep, 1);
  EXPECT_EQ(profile.lastStep, 4);
  EXPECT_EQ(profile.numSteps, 3);
  EXPECT_EQ(profile.numSlow, 1);
  EXPECT_DOUBLE_EQ(profile.stepSeconds, 1e-3);
  EXPECT_DOUBLE_EQ(profile.seconds["forward"], 1e-3);
}

TEST_F(Recorded, CollectiveOfSeveralStepsIsOne) {
  // A round at its start, then two at its wait.
  std::vector<TracedStep> steps = {communicate("all_reduce"), compute("a"),
                                   communicate("all_reduce"),
                                   communicate("all_reduce")};
  steps[3].startedAt = 0;
  steps[3].waitedAt = 2;
  steps[3].isEarly = true;
  steps[3].wireBytes = 64;
  open(steps);
  run();
  ASSERT_EQ(events("b").size(), 1u);
  ASSERT_EQ(events("e").size(), 1u);
  EXPECT_EQ(events("b")[0]["id"], events("e")[0]["id"]);
  EXPECT_EQ(events("b")[0]["ts"], 0.0);
  EXPECT_EQ(events("e")[0]["ts"], 4000.0);
  Json from = events("s"), to = events("f");
  ASSERT_EQ(from.size(), 1u);
  EXPECT_EQ(from[0]["ts"], 0.0);
  EXPECT_EQ(to[0]["ts"], 2000.0);
  Profile profile = profileOf(*trace);
  ASSERT_EQ(profile.commands.size(), 2u);
  const Profile::Command &reduce = profile.commands[0];
  EXPECT_EQ(reduce.name, "all_reduce");
  EXPECT_EQ(reduce.wireBytes, 64u);
  EXPECT_DOUBLE_EQ(reduce.secondsInFlight, 2e-3);
  EXPECT_DOUBLE_EQ(reduce.seconds, 3e-3);
  EXPECT_DOUBLE_EQ(profile.hidden, 1e-3);
}

TEST_F(Recorded, WhatHidesBehindTheSameWorkIsHiddenOnce) {
  std::vector<TracedStep> steps = {communicate("first"),  communicate("second"),
                                   compute("a"),          communicate("first"),
                                   communicate("second"), communicate("third")};
  for (int i : {3, 4}) {
    steps[i].startedAt = i - 3;
    steps[i].waitedAt = i;
    steps[i].isEarly = true;
  }
  // All of it is done at its wait.
  steps[5].startedAt = 0;
  steps[5].waitedAt = 5;
  open(steps);
  run();
  Profile profile = profileOf(*trace);
  for (const Profile::Command &command : profile.commands)
    EXPECT_DOUBLE_EQ(command.secondsInFlight,
                     command.name == "first" || command.name == "second" ? 3e-3
                                                                         : 0)
        << command.name;
  EXPECT_DOUBLE_EQ(profile.hidden, 1e-3);
}

TEST_F(Recorded, EveryTrackHasANumberOfItsOwn) {
  // Workers that are half a step apart work for the device at the same time.
  open({compute("a"), compute("b"), compute("c")});
  trace->devices = {"data=0", "data=1"};
  for (TracedStep &step : trace->programs[0].steps)
    step.devices = {{0, 1}};
  run(/*failed=*/false, /*late=*/millisecond / 2);
  {
    std::lock_guard<std::mutex> lock(trace->hostMutex);
    trace->host.push_back({"data", "batch", 0, millisecond});
  }
  std::map<int, std::string> names;
  std::set<std::string> different;
  for (const Json &event : events())
    if (event["name"] == "thread_name") {
      EXPECT_TRUE(names.emplace(event["tid"], event["args"]["name"]).second);
      different.insert(event["args"]["name"]);
    }
  EXPECT_EQ(different,
            std::set<std::string>(
                {"steps", "worker 0", "worker 1", "device 0 (data=0)",
                 "device 0 (data=0), beside it", "device 1 (data=1)",
                 "device 1 (data=1), beside it", "data"}));
  for (const Json &event : events("X"))
    EXPECT_EQ(names.count(event["tid"]), 1u) << event;
}

/// Two devices whose streams compute, and one that communicates for both or for
/// one of them. Milliseconds.
TEST(TracedStreams, WhatIsHiddenTakesNoTimeOfAStep) {
  TracedStep first = compute("first"), last = compute("last");
  TracedStep both = communicate("both"), one = communicate("one");
  for (TracedStep *step : {&first, &last})
    step->devices = {{0}, {1}};
  both.devices = {{0, 1}};
  both.wireBytes = 64;
  one.devices = {{1}};
  TracedProgram program{"train_step", {first, both, one, last}, 4};
  Trace::State trace(TraceOptions{1});
  ASSERT_TRUE(trace
                  .open({program},
                        {{"0", {0}}, {"1", {1}}, {"between", {0, 1}, true}},
                        Mesh({{"data", 2}}))
                  .ok());
  const int32_t run = trace.beginRun(0);
  auto add = [&](size_t stream, uint32_t step, int position, int64_t arrived,
                 int64_t begin, int64_t end) {
    trace.workers[stream].add({0, step, run, 0, position, position + 1,
                               arrived * millisecond, begin * millisecond,
                               end * millisecond});
  };
  add(0, 0, 0, 0, 0, 10);
  add(1, 0, 1, 0, 0, 12);
  add(2, 1, 0, 0, 10, 14);
  add(2, 2, 0, 14, 14, 15);
  add(0, 3, 0, 10, 14, 18);
  add(1, 3, 1, 12, 16, 20);
  trace.endRun(run, /*failed=*/false);
  trace.runs[run].begin = 0;
  trace.runs[run].end = 20 * millisecond;
  Profile profile = profileOf(trace);
  EXPECT_TRUE(profile.isOfStreams);
  EXPECT_EQ(profile.numWorkers, 2);
  EXPECT_DOUBLE_EQ(profile.stepSeconds, 20e-3);
  EXPECT_DOUBLE_EQ(profile.seconds["forward"], (10 + 4 + 12 + 4) / 2.0 * 1e-3);
  // All 4 on device 0; 2 of 4, and the second one, on device 1.
  EXPECT_DOUBLE_EQ(profile.seconds["communication"], (4 + 2 + 1) / 2.0 * 1e-3);
  EXPECT_DOUBLE_EQ(profile.hidden, 2 / 2.0 * 1e-3);
  EXPECT_NEAR(profile.waiting, (0 + 1) / 2.0 * 1e-3, 1e-9);
  EXPECT_NEAR(profile.rest, 2 / 2.0 * 1e-3, 1e-9);
  for (const Profile::Command &command : profile.commands) {
    if (command.name == "both") {
      EXPECT_DOUBLE_EQ(command.seconds, 4e-3);
      EXPECT_EQ(command.wireBytes, 64u);
    }
    if (command.name == "one") {
      EXPECT_DOUBLE_EQ(command.seconds, 0.5e-3);
    }
    if (command.name == "last") {
      EXPECT_EQ(command.bytes, 100);
    }
  }
}
