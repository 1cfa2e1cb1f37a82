//===- CudaTraceTest.cpp - Traces of GPUs against the fake ----------------===//

#include "CudaFixture.h"
#include "Sanitized.h"

#include "shardc-rt/Trace.h"
#include "trace/ChromeTrace.h"
#include "trace/Profile.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

using namespace shardc::rt;
using namespace shardc::rt::test;

using Json = nlohmann::json;

namespace {

class CudaTraceTest : public CudaExecutorTest {
protected:
  absl::StatusOr<std::unique_ptr<Executor>>
  createOn(int gpus, std::shared_ptr<const Plan> plan) {
    fake->gpus = options.gpus = gpus;
    return create(std::move(plan));
  }

  static Json events(const Trace &trace) {
    return Json::parse(chromeTrace({chromeEvents(trace.internals(), {})},
                                   trace.internals().plan))["traceEvents"];
  }
  static Json eventsOf(const Trace &trace, const std::string &phase) {
    Json found = Json::array();
    for (const Json &event : events(trace))
      if (event["ph"] == phase)
        found.push_back(event);
    return found;
  }

  /// Two runs that are recorded, and one that is not.
  void record(Trace &trace, Executor &executor) {
    ASSERT_TRUE(executor.setTrace(&trace).ok());
    trace.setRecording(true);
    for (int step = 0; step < 2; ++step)
      ASSERT_TRUE(executor.step(inputs()).ok());
    trace.setRecording(false);
    ASSERT_TRUE(executor.step(inputs()).ok());
    ASSERT_TRUE(executor.setTrace(nullptr).ok());
  }
};

TEST_F(CudaTraceTest, CommandsOfAllStreamsAreThere) {
  for (int gpus : {1, 4}) {
    auto executor = createOn(gpus, makeGpuPlan(4));
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->initializeParameters().ok());
    Trace trace({/*runs=*/2});
    record(trace, **executor);
    EXPECT_EQ(trace.numRuns(), 2);
    EXPECT_EQ(trace.numLost(), 0u);

    std::map<int, std::string> tracks;
    for (const Json &event : eventsOf(trace, "M"))
      if (event["name"] == "thread_name")
        tracks[event["tid"].get<int>()] =
            event["args"]["name"].get<std::string>();
    std::map<std::string, std::vector<Json>> spans;
    for (const Json &event : eventsOf(trace, "X"))
      spans[tracks[event["tid"].get<int>()]].push_back(event);
    ASSERT_EQ(spans["steps"].size(), 2u);
    const double end = spans["steps"][0]["ts"].get<double>() +
                       spans["steps"][0]["dur"].get<double>();
    EXPECT_LE(end, spans["steps"][1]["ts"].get<double>() + 0.0011);

    // Each device launches its kernels in each run, on a stream of its own.
    for (int device = 0; device < 4; ++device) {
      std::multiset<std::string> names;
      for (const Json &event :
           spans["stream of device " + std::to_string(device) + ": compute"])
        if (event["cat"] != "wait")
          names.insert(event["name"].get<std::string>());
      EXPECT_EQ(names.count("test_scale"), 2u) << device;
      EXPECT_EQ(names.count("test_update"), 2u) << device;
    }
    // Devices of one GPU have one stream of communication.
    std::string communication = gpus == 1
                                    ? "stream of devices 0 to 3: communication"
                                    : "stream of device 0: communication";
    const auto &plan = (*executor)->plan().spec();
    size_t collectives = 0;
    for (const Command &command : plan.findProgram("train_step")->commands)
      collectives +=
          std::holds_alternative<CollectiveStartCommand>(command.operation);
    size_t seen = 0;
    for (const Json &event : spans[communication])
      seen += event["cat"] == "communication";
    EXPECT_EQ(seen, 2 * collectives);

    // No more is sent than the plan says.
    double sent = 0;
    for (const Json &event : eventsOf(trace, "C"))
      if (event["name"] == "wire bytes per device")
        sent = std::max(sent, event["args"]["value"].get<double>());
    auto result = (*executor)->step(inputs());
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(sent, 2.0 * result->wireBytes);

    Profile profile = profileOf(trace.internals());
    EXPECT_TRUE(profile.isOfStreams);
    EXPECT_EQ(profile.waitingOfWorker.size(), 4u);
    double sum = profile.waiting + profile.rest;
    for (const auto &[part, seconds] : profile.seconds) {
      EXPECT_GE(seconds, 0) << part;
      sum += seconds;
    }
    EXPECT_NEAR(sum, profile.stepSeconds, 1e-6 * profile.stepSeconds);
  }
}

TEST_F(CudaTraceTest, BitsAndLaunchesAreThoseOfOtherRuns) {
  for (bool serialize : {false, true})
    for (int gpus : {1, 2}) {
      options.serialize = serialize;
      auto plan = makeGpuPlan(2);
      std::vector<std::vector<std::byte>> all;
      int64_t launches[2];
      for (bool isTraced : {false, true}) {
        auto executor = createOn(gpus, plan);
        ASSERT_TRUE(executor.ok()) << executor.status();
        Trace trace({/*runs=*/3});
        ASSERT_TRUE((*executor)->setTrace(isTraced ? &trace : nullptr).ok());
        trace.setRecording(true);
        fake->calls.clear();
        auto bits = train(**executor, 3);
        ASSERT_TRUE(bits.ok()) << bits.status();
        all.push_back(*bits);
        launches[isTraced] = countCalls("cuGraphLaunch");
        EXPECT_EQ(trace.numRuns(), isTraced ? 3 : 0);
        ASSERT_TRUE((*executor)->setTrace(nullptr).ok());
      }
      EXPECT_EQ(all[0], all[1]);
      EXPECT_EQ(launches[0], serialize ? 0 : 3 * gpus);
      EXPECT_EQ(launches[1], launches[0]);
    }
}

/// Where the host waits for every command, none begins before others end.
TEST_F(CudaTraceTest, SerializedCommandsFollowOneAnother) {
  options.serialize = true;
  auto executor = create(makeGpuPlan(4));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  Trace trace({/*runs=*/2});
  record(trace, **executor);
  // By step, of all devices, begin and end.
  std::map<std::pair<int, int>, std::pair<double, double>> steps;
  for (const Json &event : eventsOf(trace, "X")) {
    if (!event["args"].contains("loop"))
      continue;
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    auto key = std::make_pair(event["args"]["run"] == "step 1" ? 1 : 2,
                              event["args"]["step"].get<int>());
    auto [step, isNew] = steps.emplace(key, std::make_pair(begin, end));
    if (!isNew)
      step->second = {std::min(step->second.first, begin),
                      std::max(step->second.second, end)};
  }
  ASSERT_GT(steps.size(), 8u);
  for (auto step = steps.begin(), next = std::next(step); next != steps.end();
       step = next++)
    // A nanosecond for rounding.
    EXPECT_LE(step->second.second, next->second.first + 0.0011);
}

/// What is not recorded costs what it costs without a trace.
TEST_F(CudaTraceTest, RunsThatAreNotRecordedAreAsWithout) {
  auto executor = create(makeGpuPlan(4));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  fake->calls.clear();
  ASSERT_TRUE((*executor)->step(inputs()).ok());
  auto without = fake->calls;
  Trace trace({/*runs=*/1});
  ASSERT_TRUE((*executor)->setTrace(&trace).ok());
  fake->calls.clear();
  ASSERT_TRUE((*executor)->step(inputs()).ok());
  EXPECT_EQ(fake->calls, without);
  EXPECT_EQ(trace.numRuns(), 0);
}

TEST_F(CudaTraceTest, BelongsToOneExecutorAndComesBetweenRuns) {
  auto first = create(makeGpuPlan(1)), second = create(makeGpuPlan(1));
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE((*first)->initializeParameters().ok());
  Trace trace({/*runs=*/1});
  ASSERT_TRUE((*first)->submit("train_step", inputs()).ok());
  EXPECT_EQ((*first)->setTrace(&trace).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE((*first)->await().ok());
  ASSERT_TRUE((*first)->setTrace(&trace).ok());
  EXPECT_EQ((*second)->setTrace(&trace).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(CudaTraceTest, ARunThatFailsIsShownAsThat) {
  auto executor = create(makeGpuPlan(2));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  Trace trace({/*runs=*/1});
  ASSERT_TRUE((*executor)->setTrace(&trace).ok());
  trace.setRecording(true);
  fake->calls.clear();
  ASSERT_TRUE((*executor)->submit("train_step", inputs()).ok());
  // The first question whether it has ended.
  fake->failAt = fake->calls.size() + 2;
  EXPECT_FALSE((*executor)->await().ok());
  std::vector<std::string> steps;
  for (const Json &event : eventsOf(trace, "X"))
    if (event["cat"] == "run")
      steps.push_back(event["name"].get<std::string>());
  EXPECT_EQ(steps, std::vector<std::string>({"step 1, failed"}));
}

TEST_F(CudaTraceTest, ARunBehindOneThatFailsNeverBegan) {
  auto executor = create(makeGpuPlan(2));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  Trace trace({/*runs=*/2});
  ASSERT_TRUE((*executor)->setTrace(&trace).ok());
  trace.setRecording(true);
  for (int run = 0; run < 2; ++run)
    ASSERT_TRUE((*executor)->submit("train_step", inputs()).ok());
  fake->failAt = fake->calls.size() + 2;
  absl::Status failure = (*executor)->await().status();
  EXPECT_FALSE(failure.ok());
  std::vector<std::pair<double, double>> steps;
  for (const Json &event : eventsOf(trace, "X"))
    if (event["cat"] == "run")
      steps.emplace_back(event["ts"], event["dur"]);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].second, 0);
  EXPECT_LE(steps[0].first + steps[0].second, steps[1].first + 0.0011);
  // It can be taken away, and no other one given.
  Trace other({/*runs=*/1});
  EXPECT_EQ((*executor)->setTrace(&other), failure);
  EXPECT_TRUE((*executor)->setTrace(nullptr).ok());
}

TEST_F(CudaTraceTest, EveryFailureIsCleanedUp) {
  auto plan = makeGpuPlan(2);
  bool isInTrace = false;
  for (fake->failAt = 1;; fake->failAt += isSanitized ? 3 : 1) {
    fake->calls.clear();
    fake->details.clear();
    absl::Status status = [&] {
      auto executor = create(plan);
      if (!executor.ok())
        return executor.status();
      Trace trace({/*runs=*/2});
      if (absl::Status s = (*executor)->setTrace(&trace); !s.ok())
        return s;
      trace.setRecording(true);
      return train(**executor, 2).status();
    }();
    EXPECT_EQ(fake->handles(), 0) << "call " << fake->failAt;
    EXPECT_EQ(fake->bytesAllocated, 0) << "call " << fake->failAt;
    if (static_cast<int64_t>(fake->calls.size()) < fake->failAt)
      break;
    const std::string &call = fake->calls[fake->failAt - 1];
    if (call == "cuEventRecordWithFlags" || call == "cuEventElapsedTime") {
      EXPECT_FALSE(status.ok()) << call;
      isInTrace = true;
    }
  }
  EXPECT_TRUE(isInTrace);
}

} // namespace
