//===- StoreTest.cpp - The store, between processes -----------------------===//

#include "Processes.h"

#include "comm/Socket.h"
#include "comm/StoreServer.h"
#include "shardc-rt/Store.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

#include <csignal>
#include <gtest/gtest.h>

using namespace shardc::rt;
using namespace shardc::rt::test;

using Stores = absl::StatusOr<std::unique_ptr<Store>>;
constexpr absl::Duration patience = absl::Seconds(20);

static std::string textOf(const absl::Status &status) {
  return std::string(status.message());
}

TEST(StoreTest, EveryRankGetsWhatIsSet) {
  for (int size : {1, 2, 3, 8}) {
    auto said = runRanks(size, [](const Ranks &ranks) -> std::string {
      Stores store = Store::connect(ranks, {patience});
      if (!store.ok())
        return textOf(store.status());
      // Bytes of all values, more than a piece of a message.
      if (ranks.rank == ranks.size - 1)
        if (absl::Status s = (*store)->set("id", std::string(3000000, '\0'));
            !s.ok())
          return textOf(s);
      auto id = (*store)->get("id", patience);
      if (!id.ok())
        return textOf(id.status());
      std::string report = absl::StrCat(id->size(), ":");
      for (int round = 0; round < 3; ++round) {
        auto all = (*store)->gatherAll(
            "a test", absl::StrCat(ranks.rank + 10 * round), patience);
        if (!all.ok())
          return textOf(all.status());
        absl::StrAppend(&report, absl::StrJoin(*all, ","), ";");
        auto first = (*store)->broadcast(
            "a test", absl::StrCat(ranks.rank + round), patience);
        if (!first.ok() || *first != absl::StrCat(round))
          return absl::StrCat("not broadcast: ", textOf(first.status()));
      }
      return report;
    });
    std::string expected = "3000000:";
    for (int round = 0; round < 3; ++round) {
      std::vector<int> values;
      for (int rank = 0; rank < size; ++rank)
        values.push_back(rank + 10 * round);
      absl::StrAppend(&expected, absl::StrJoin(values, ","), ";");
    }
    EXPECT_EQ(said, std::vector<std::string>(size, expected));
  }
}

TEST(StoreTest, WaitsHaveDeadlines) {
  auto said = runRanks(3, [](const Ranks &ranks) -> std::string {
    if (ranks.rank == 1) {
      absl::SleepFor(absl::Seconds(2));
      return "";
    }
    return textOf(Store::connect(ranks, {absl::Milliseconds(700)}).status());
  });
  for (int rank : {0, 2})
    EXPECT_NE(said[rank].find("starting: rank 1 of 3 is not there"),
              std::string::npos)
        << said[rank];
  said = runRanks(2, [](const Ranks &ranks) -> std::string {
    if (ranks.rank == 0) {
      absl::SleepFor(absl::Milliseconds(500));
      return "";
    }
    return textOf(Store::connect(ranks, {absl::Milliseconds(200)}).status());
  });
  EXPECT_NE(said[1].find("rank 1 of 2: waiting for rank 0"), std::string::npos)
      << said[1];
  EXPECT_NE(said[1].find("nobody listens at 127.0.0.1"), std::string::npos)
      << said[1];
  said = runRanks(2, [](const Ranks &ranks) -> std::string {
    Stores store = Store::connect(ranks, {patience});
    auto value = (*store)->get("nothing", absl::Milliseconds(100));
    return absl::StrCat(int(value.status().code()), " ",
                        textOf(value.status()));
  });
  EXPECT_EQ(said[1], "4 rank 1 of 2: nobody has set \"nothing\"");
}

TEST(StoreTest, FailuresAreTold) {
  // Rank 2 fails; the others wait for something else.
  auto said = runRanks(3, [](const Ranks &ranks) -> std::string {
    Stores store = Store::connect(ranks, {patience});
    if (ranks.rank == 2) {
      (*store)->fail(absl::ResourceExhaustedError("rank 2 of 3: out of paper"));
      return (*store)->checkPeers().ok() ? "alone" : "";
    }
    absl::Status status = (*store)->get("never", patience).status();
    return absl::StrCat(int(status.code()), " ", textOf(status));
  });
  const std::string failed =
      absl::StrCat("rank 2 on ", hostName(), " failed: out of paper");
  EXPECT_EQ(said[0], "8 rank 0 of 3: " + failed);
  EXPECT_EQ(said[1], "8 rank 1 of 3: " + failed);
  EXPECT_EQ(said[2], "alone");
  // Rank 1 ends without a word, and then rank 0, which keeps the store.
  for (int victim : {1, 0}) {
    said = runRanks(3, [&](const Ranks &ranks) -> std::string {
      // Its connection is closed at once. An answer may take seconds on a busy
      // computer, and one that is late closes the connection as well.
      Stores store = Store::connect(ranks, {patience, absl::Seconds(20)});
      if (!store.ok())
        return textOf(store.status());
      (*store)->setActivity("step 7");
      if (ranks.rank == victim) {
        // Rank 0 gets to know what it is doing.
        while (ranks.rank > 0 &&
               !absl::StrContains((*store)->describe(victim), "step 7"))
          absl::SleepFor(absl::Milliseconds(10));
        _exit(1);
      }
      absl::Status status;
      for (int i = 0; i < 200 && status.ok(); ++i) {
        absl::SleepFor(absl::Milliseconds(50));
        status = (*store)->checkPeers();
      }
      return textOf(status);
    });
    EXPECT_NE(said[2].find(absl::StrCat("rank 2 of 3: rank ", victim)),
              std::string::npos)
        << said[2];
    EXPECT_NE(said[2].find(absl::StrCat(" on ", hostName())), std::string::npos)
        << said[2];
    EXPECT_NE(said[2].find("has gone"), std::string::npos) << said[2];
    EXPECT_TRUE(victim == 0 || absl::StrContains(said[2], "was last in step 7"))
        << said[2];
  }
}

TEST(StoreTest, AProcessThatIsStoppedIsKnownByItsSilence) {
  auto said = runRanks(2, [](const Ranks &ranks) -> std::string {
    Stores store = Store::connect(ranks, {patience, absl::Milliseconds(100)});
    if (!store.ok())
      return textOf(store.status());
    if (ranks.rank == 1) {
      (*store)->setActivity("step 3");
      while (!absl::StrContains((*store)->describe(1), "step 3"))
        absl::SleepFor(absl::Milliseconds(10));
      if (absl::Status s = (*store)->set("pid", absl::StrCat(getpid()));
          !s.ok())
        return textOf(s);
      // Stopped, and then killed, here.
      for (;;)
        pause();
    }
    absl::StatusOr<std::string> pid = (*store)->get("pid", patience);
    pid_t other = 0;
    if (!pid.ok() || !absl::SimpleAtoi(*pid, &other))
      return textOf(pid.status());
    std::string lively = (*store)->describe(1);
    kill(other, SIGSTOP);
    // It has not gone, and a wait for it says what is known.
    absl::Status missing =
        (*store)->gatherAll("a test", "", absl::Seconds(1)).status();
    absl::Status peers = (*store)->checkPeers();
    kill(other, SIGKILL);
    return absl::StrCat(lively, "|", textOf(missing), "|", textOf(peers));
  });
  std::vector<std::string> parts = absl::StrSplit(said[0], '|');
  ASSERT_EQ(parts.size(), 3u) << said[0];
  EXPECT_TRUE(absl::EndsWith(parts[0], "was last in step 3")) << parts[0];
  EXPECT_TRUE(absl::StrContains(parts[1], "a test: rank 1 of 2 is not there"))
      << parts[1];
  EXPECT_TRUE(absl::StrContains(
      parts[1], "was last in step 3 and has given no sign for "))
      << parts[1];
  EXPECT_EQ(parts[2], "");
}

TEST(StoreTest, ANewActivityIsToldBeforeTheNextHeartbeat) {
  auto said = runRanks(2, [](const Ranks &ranks) -> std::string {
    // Signs come every second.
    Stores store = Store::connect(ranks, {patience, absl::Seconds(10)});
    if (!store.ok())
      return textOf(store.status());
    if (ranks.rank == 1) {
      (*store)->setActivity("step 7");
      absl::SleepFor(absl::Milliseconds(500));
      _exit(1);
    }
    return textOf((*store)->get("never", patience).status());
  });
  EXPECT_TRUE(absl::StrContains(said[0], "has gone")) << said[0];
  EXPECT_TRUE(absl::StrContains(said[0], "it was last in step 7")) << said[0];
}

TEST(StoreTest, AWaitLastsAsLongAsTheOtherMakesProgress) {
  auto said = runRanks(2, [](const Ranks &ranks) -> std::string {
    Stores store = Store::connect(ranks, {patience, absl::Milliseconds(200)});
    if (!store.ok())
      return textOf(store.status());
    constexpr absl::Duration deadline = absl::Seconds(1);
    const absl::Time end = absl::Now() + 2 * deadline;
    while (ranks.rank == 1 && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(20));
      (*store)->noteProgress();
    }
    auto all = (*store)->gatherAll("a test", "", deadline);
    if (!all.ok())
      return textOf(all.status());
    // Without progress.
    if (ranks.rank == 1)
      absl::SleepFor(2 * deadline);
    return textOf((*store)->gatherAll("the end", "", deadline).status());
  });
  EXPECT_TRUE(absl::StrContains(
      said[0], "the end: rank 1 of 2 is not there after 1s; rank 1 on "))
      << said[0];
}

TEST(StoreTest, ErrorsNameWhomOthersWaitFor) {
  auto said = runRanks(3, [](const Ranks &ranks) -> std::string {
    Stores store = Store::connect(ranks, {patience, absl::Milliseconds(100)});
    if (!store.ok())
      return textOf(store.status());
    (*store)->setActivity(absl::StrCat("step ", ranks.rank));
    (*store)->setActivity("writing", Track::Checkpoint);
    if (ranks.rank == 1)
      (*store)->setWaitsFor(2);
    if (ranks.rank > 0)
      return textOf((*store)->get("known", patience).status());
    std::string known;
    // Each is told on its own.
    auto isComplete = [&] {
      return absl::StrContains(known, "step 1, beside") &&
             absl::StrContains(known, "for rank 2; ") &&
             absl::StrContains(known, "step 2, beside");
    };
    for (int i = 0; i < 1000 && !isComplete(); ++i) {
      absl::SleepFor(absl::Milliseconds(10));
      known = (*store)->describe(1);
    }
    if (absl::Status s = (*store)->set("known", "", 2); !s.ok())
      return textOf(s);
    return known;
  });
  const std::string host = hostName();
  EXPECT_EQ(said[0],
            absl::StrCat("rank 1 on ", host,
                         " was last in step 1, beside that in writing, "
                         "waiting for rank 2; rank 2 on ",
                         host, " was last in step 2, beside that in writing"));
}

TEST(StoreTest, OtherVersionsAreRefused) {
  auto said = runRanks(2, [](const Ranks &ranks) -> std::string {
    if (ranks.rank == 0)
      return textOf(Store::connect(ranks, {patience}).status());
    auto socket =
        Socket::connect(ranks.address, ranks.port, absl::Now() + patience);
    const std::string program = "shardc 9.9.9", host = "node9";
    StoreRequest hello{storeMagic, 0, 1, 2, program.size(), host.size()};
    if (!socket.ok() ||
        !socket->send(toBytes(hello) + program + host, absl::Now() + patience)
             .ok())
      return "no connection";
    auto reply = socket->receive(sizeof(StoreReply), absl::Now() + patience);
    return reply.ok() ? "" : textOf(reply.status());
  });
  EXPECT_EQ(said[1], "");
  EXPECT_TRUE(absl::StrContains(said[0], "rank 1 on node9 is of shardc 9.9.9, "
                                         "and rank 0 of shardc "))
      << said[0];
}

TEST(StoreTest, ContradictionsEndTheStart) {
  auto said = runRanks(3, [](const Ranks &ranks) -> std::string {
    Ranks told = ranks;
    if (ranks.rank == 2)
      told.rank = 1;
    return textOf(Store::connect(told, {patience}).status());
  });
  EXPECT_NE(said[0].find("rank 1 is also another process"), std::string::npos)
      << said[0];
  said = runRanks(2, [](const Ranks &ranks) -> std::string {
    Ranks told = ranks;
    if (ranks.rank == 1)
      told.size = 4;
    return textOf(Store::connect(told, {patience}).status());
  });
  for (const std::string &message : said)
    EXPECT_NE(message.find("rank 1 is told that there are 4 processes, and "
                           "rank 0 that there are 2"),
              std::string::npos)
        << message;
}

TEST(StoreTest, OthersAreNoRanks) {
  auto said = runRanks(2, [](const Ranks &ranks) -> std::string {
    if (ranks.rank == 1) {
      // Another program that found the port.
      for (int attempt = 0; attempt < 100; ++attempt) {
        int descriptor = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(ranks.port);
        bool isThere =
            connect(descriptor, reinterpret_cast<sockaddr *>(&address),
                    sizeof(address)) == 0;
        std::string text(100, 'x');
        isThere &= isThere && write(descriptor, text.data(), text.size()) > 0;
        char answer;
        bool isDropped = isThere && read(descriptor, &answer, 1) <= 0;
        close(descriptor);
        if (isDropped)
          break;
        absl::SleepFor(absl::Milliseconds(20));
      }
    }
    Stores store = Store::connect(ranks, {patience});
    return textOf(store.status());
  });
  EXPECT_EQ(said, std::vector<std::string>(2));
  // The port of a store is taken.
  said = runRanks(1, [](const Ranks &ranks) -> std::string {
    Stores first = Store::connect(ranks, {patience});
    Stores second = Store::connect(ranks, {patience});
    return textOf(second.status());
  });
  EXPECT_NE(said[0].find("listening on port"), std::string::npos) << said[0];
}
