//===- WriterPeersTest.cpp - Writers of one checkpoint --------------------===//

#include "Processes.h"

#include "checkpoint/WriterPeers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <gtest/gtest.h>
#include <thread>

using namespace shardc::rt;
using namespace shardc::rt::test;

TEST(WriterPeersTest, StatusesPassThroughText) {
  for (const absl::Status &status :
       {absl::OkStatus(), absl::OutOfRangeError("two\nlines: 3 4")})
    EXPECT_EQ(parseStatus(formatStatus(status)), status);
  EXPECT_EQ(parseStatus("nothing").code(), absl::StatusCode::kInternal);
}

TEST(WriterPeersTest, OneProcessHasItsOwn) {
  WriteProgress progress(nullptr);
  WriterPeers peers(nullptr, absl::Seconds(20), progress);
  EXPECT_TRUE(peers.begin("a").ok());
  EXPECT_EQ(peers.fromFirst("made", absl::AbortedError("x")).message(), "x");
  EXPECT_EQ(peers.toFirst("written", std::string("7"))->at(0), "7");
}

/// Values go to rank 0 and statuses from it, while the main threads exchange
/// other values.
TEST(WriterPeersTest, ExchangesBesideTheMainThread) {
  for (int size : {2, 3}) {
    auto said = runRanks(size, [](const Ranks &ranks) -> std::string {
      auto store = Store::connect(ranks, {absl::Seconds(20)});
      WriteProgress progress(store->get());
      WriterPeers peers(store->get(), absl::Seconds(20), progress);
      if (absl::Status s = peers.begin(absl::StrCat("w", ranks.rank)); !s.ok())
        return std::string(s.message());
      std::string report;
      std::thread writer([&] {
        for (int round = 0; round < 20; ++round) {
          absl::Status s = peers.fromFirst("made", absl::OkStatus());
          auto all = peers.toFirst("written",
                                   absl::StrCat(ranks.rank, " of\n", round));
          absl::Status last = peers.fromFirst(
              "ended",
              round == 7 ? absl::OutOfRangeError("seven") : absl::OkStatus());
          if (!s.ok() || !all.ok() || last.ok() != (round != 7))
            report += absl::StrCat("round ", round);
          if (ranks.rank == 0 && all.ok())
            for (int rank = 0; rank < ranks.size; ++rank)
              if ((*all)[rank] != absl::StrCat(rank, " of\n", round))
                report += (*all)[rank];
        }
      });
      for (int round = 0; round < 20; ++round)
        if (!(*store)->gatherAll("a test", "", absl::Seconds(20)).ok())
          report += "main";
      writer.join();
      return report.empty() ? "well" : report;
    });
    EXPECT_EQ(said, std::vector<std::string>(size, "well"));
  }
}

/// On one host all processes have the same pages of files, if there is one
/// file system.
TEST(WriterPeersTest, KnowWhetherTheyHaveTheSamePages) {
  auto said = runRanks(2, [](const Ranks &ranks) -> std::string {
    auto store = Store::connect(ranks, {absl::Seconds(20)});
    WriteProgress progress(store->get());
    WriterPeers peers(store->get(), absl::Seconds(20), progress);
    std::string report;
    for (const char *other : {"/proc", "/none", "/"}) {
      absl::Status s = peers.compareFileSystems(ranks.rank == 0 ? "/" : other);
      report += !s.ok() ? "error " : peers.sharePages() ? "same " : "others ";
    }
    return report;
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "others others same "));
}

/// The error of one is that of rank 0, with its rank; one that does not answer
/// is named.
TEST(WriterPeersTest, NamesWhoFails) {
  auto said = runRanks(3, [](const Ranks &ranks) -> std::string {
    auto store = Store::connect(ranks, {absl::Seconds(20)});
    WriteProgress progress(store->get());
    WriterPeers peers(store->get(), absl::Milliseconds(300), progress);
    if (absl::Status s = peers.begin("w"); !s.ok())
      return std::string(s.message());
    absl::StatusOr<std::string> mine = std::string();
    if (ranks.rank == 1)
      mine = absl::ResourceExhaustedError("full");
    auto first = peers.toFirst("written", mine);
    absl::Status told = peers.fromFirst("ended", first.status());
    absl::Status second;
    if (ranks.rank != 2)
      second = peers.toFirst("written", std::string()).status();
    std::string report = absl::StrCat(told.message(), "; ", second.message());
    (void)(*store)->gatherAll("the end", "", absl::Seconds(20));
    return report;
  });
  ASSERT_EQ(said.size(), 3u);
  for (const std::string &text : said) {
    EXPECT_EQ(text.find("rank 1 on "), 0u) << text;
    EXPECT_NE(text.find(": full; "), std::string::npos) << text;
  }
  EXPECT_NE(said[0].find("; rank 2 has not written its part after 300ms"),
            std::string::npos)
      << said[0];
}
