//===- FilesTest.cpp - Files that survive a crash -------------------------===//

#include "TemporaryFolder.h"

#include "checkpoint/Files.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/resource.h>

using namespace shardc::rt;

namespace {

class FilesTest : public testing::Test {
protected:
  test::TemporaryFolder folder;
  std::string path = folder / "x";
};

/// Writers of a file, of which some map it, have their bytes there, whatever
/// the size of runs and wherever the part that is mapped ends.
TEST_F(FilesTest, WritersShareTheBytesOfAFile) {
  // More than is mapped at a time.
  constexpr uint64_t window = uint64_t(1) << 26, bytes = window + 20000;
  constexpr uint64_t from = window - 20000;
  auto first = WritableFile::make(path);
  ASSERT_TRUE(first.ok()) << first.status();
  auto second = WritableFile::open(path), third = WritableFile::open(path);
  ASSERT_TRUE(second.ok() && third.ok());
  int calls = 0;
  second->onProgress([&] { ++calls; });
  ASSERT_TRUE(first->mapFirst(bytes).ok());
  ASSERT_TRUE(second->mapFirst(bytes - 1000).ok());
  WritableFile *files[] = {&*first, &*second, &*third};
  std::string expected;
  for (uint64_t at = from, run = 1; at < bytes + 500; at += run++) {
    const std::string part(run, char('a' + run % 26));
    ASSERT_TRUE(files[run % 3]->write(at, part).ok());
    expected += part;
  }
  ASSERT_TRUE(first->write(3, "begin").ok());
  for (WritableFile *file : files)
    ASSERT_TRUE(file->close().ok());
  EXPECT_GT(calls, 1);
  const std::string all = test::readAll(path);
  ASSERT_EQ(all.size(), from + expected.size());
  EXPECT_EQ(all.substr(3, 5), "begin");
  EXPECT_EQ(all.find_first_not_of('\0', 8), from);
  EXPECT_TRUE(all.substr(from) == expected);
}

/// The place is there, or there is an error, before anything is written.
TEST_F(FilesTest, AFullDiskIsAnErrorBeforeAPageIsWritten) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit little = before;
  little.rlim_cur = 5000;
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  auto file = WritableFile::make(path);
  absl::Status status = file.ok() ? file->mapFirst(10000) : file.status();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), path + ": cannot write: File too large");
}

} // namespace
