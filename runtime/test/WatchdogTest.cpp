//===- WatchdogTest.cpp - What does not end -------------------------------===//

#include "Processes.h"

#include "shardc-rt/Watchdog.h"

#include "absl/time/clock.h"

#include <future>
#include <gtest/gtest.h>

using namespace shardc::rt;
using namespace shardc::rt::test;

TEST(WatchdogTest, NamesWhatDoesNotEnd) {
  // Not the status: its counter is in a library that ThreadSanitizer does not
  // see.
  std::promise<std::string> error;
  Watchdog watchdog({absl::Milliseconds(100), absl::Milliseconds(50),
                     [&](const absl::Status &status) {
                       error.set_value(status.ToString());
                     }});
  watchdog.begin("step 4");
  EXPECT_EQ(error.get_future().get(),
            "DEADLINE_EXCEEDED: step 4 has not ended after 100ms");
}

TEST(WatchdogTest, SaysWhatTheActivityIsIn) {
  std::promise<std::string> error;
  Watchdog watchdog({absl::Milliseconds(100), absl::Milliseconds(50),
                     [&](const absl::Status &status) {
                       error.set_value(std::string(status.message()));
                     }});
  watchdog.begin("step 4");
  watchdog.explainBy([] { return "kernel_2 (forward, model.mlir:7:3)"; });
  EXPECT_EQ(error.get_future().get(),
            "step 4, in kernel_2 (forward, model.mlir:7:3), has not ended "
            "after 100ms");
}

TEST(WatchdogTest, EachActivityHasTheWholeTime) {
  Watchdog watchdog(
      {absl::Hours(1), absl::Milliseconds(20),
       [](const absl::Status &status) { FAIL() << status.message(); }});
  for (int step = 0; step < 10; ++step) {
    watchdog.begin("a step");
    absl::SleepFor(absl::Milliseconds(5));
  }
}

TEST(WatchdogTest, ProgressGivesTheWholeTimeAgain) {
  Watchdog watchdog(
      {absl::Seconds(1), absl::Milliseconds(200),
       [](const absl::Status &status) { FAIL() << status.message(); }});
  watchdog.begin("a long write");
  for (const absl::Time end = absl::Now() + absl::Seconds(2);
       absl::Now() < end;) {
    absl::SleepFor(absl::Milliseconds(20));
    watchdog.noteProgress();
  }
}

TEST(WatchdogTest, EachWaitForAnotherProcessHasItsOwnTime) {
  auto said = runRanks(2, [](const Ranks &ranks) -> std::string {
    auto store =
        Store::connect(ranks, {absl::Seconds(20), absl::Milliseconds(100)});
    if (!store.ok())
      return std::string(store.status().message());
    std::promise<std::string> error;
    if (ranks.rank == 0) {
      Watchdog watchdog({absl::Seconds(1), absl::Milliseconds(200),
                         [&](const absl::Status &status) {
                           error.set_value(std::string(status.message()));
                         }});
      watchdog.watch(store->get());
      watchdog.begin("step 4");
      for (int wait = 0; wait < 4; ++wait) {
        (*store)->setWaitsFor(1);
        absl::SleepFor(absl::Milliseconds(400));
        (*store)->setWaitsFor(-1);
      }
      // One that does not end.
      watchdog.begin("step 5");
      (*store)->setWaitsFor(1);
      return error.get_future().get();
    }
    return std::string(
        (*store)->get("never", absl::Seconds(20)).status().message());
  });
  EXPECT_EQ(said[0], "step 5, waiting for rank 1, has not ended after 1s");
  EXPECT_NE(said[1].find("failed: step 5, waiting for rank 1, has not ended"),
            std::string::npos)
      << said[1];
}

TEST(WatchdogTest, EndsWhenAnotherProcessHasGone) {
  auto said = runRanks(2, [](const Ranks &ranks) -> std::string {
    auto store =
        Store::connect(ranks, {absl::Seconds(20), absl::Milliseconds(100)});
    if (!store.ok() || ranks.rank == 1)
      _exit(1);
    std::promise<std::string> error;
    Watchdog watchdog({absl::Hours(1), absl::Milliseconds(100),
                       [&](const absl::Status &status) {
                         error.set_value(status.ToString());
                       }});
    watchdog.watch(store->get());
    // In a wait that ends by no failure.
    return error.get_future().get();
  });
  EXPECT_NE(said[0].find("rank 1 on "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find(" has gone"), std::string::npos) << said[0];
}

TEST(WatchdogTest, OthersLearnWhatDoesNotEnd) {
  auto said = runRanks(2, [](const Ranks &ranks) -> std::string {
    auto store =
        Store::connect(ranks, {absl::Seconds(20), absl::Milliseconds(100)});
    if (!store.ok())
      return std::string(store.status().message());
    if (ranks.rank == 0)
      return std::string(
          (*store)->get("nothing", absl::Seconds(20)).status().message());
    std::promise<void> expired;
    Watchdog watchdog({absl::Milliseconds(100), absl::Milliseconds(100),
                       [&](const absl::Status &) { expired.set_value(); }});
    watchdog.watch(store->get());
    watchdog.begin("step 9");
    expired.get_future().wait();
    return "";
  });
  EXPECT_NE(said[0].find("failed: step 9 has not ended after 100ms"),
            std::string::npos)
      << said[0];
}
