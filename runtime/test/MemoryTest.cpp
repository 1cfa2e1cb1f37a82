//===- MemoryTest.cpp - Memory that other processes see -------------------===//

#include "base/Memory.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace shardc::rt;

TEST(MemoryTest, AnotherProcessSeesVisibleMemory) {
  constexpr uint64_t bytes = uint64_t(5) << 20;
  Memory memory;
  ASSERT_TRUE(memory.allocateVisible(bytes));
  EXPECT_EQ(memory.get()[bytes - 1], 0);
  char *place = memory.get() + 12345;
  std::strcpy(place, "hello");
  std::optional<VisiblePlace> visible = memory.visiblePlace(place);
  ASSERT_TRUE(visible.has_value());
  EXPECT_EQ(visible->offset, 12345);
  int toChild[2], toParent[2];
  ASSERT_EQ(pipe(toChild), 0);
  ASSERT_EQ(pipe(toParent), 0);
  pid_t child = fork();
  if (child == 0) {
    // By a mapping of its own.
    VisibleMemory seen;
    char byte = 0;
    VisiblePlace where = *visible;
    bool isSeen =
        seen.map(where) && std::strcmp(seen.get() + where.offset, "hello") == 0;
    isSeen &=
        write(toParent[1], "x", 1) == 1 && read(toChild[0], &byte, 1) == 1;
    isSeen &= std::strcmp(seen.get() + where.offset, "world") == 0;
    _exit(isSeen ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(toParent[0], &byte, 1), 1);
  std::strcpy(place, "world");
  ASSERT_EQ(write(toChild[1], "x", 1), 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (int end : {toChild[0], toChild[1], toParent[0], toParent[1]})
    close(end);
}

// What a number of a process or of a file stands for may have changed, or be
// something else where another process looks.
TEST(MemoryTest, OtherFilesAreNotMistakenForMemory) {
  std::optional<VisiblePlace> old;
  {
    Memory memory;
    ASSERT_TRUE(memory.allocateVisible(100));
    old = memory.visiblePlace(memory.get());
    ASSERT_TRUE(old.has_value());
    VisiblePlace other = *old;
    ++other.file;
    EXPECT_FALSE(VisibleMemory().map(other));
    other = *old;
    other.descriptor = 0;
    EXPECT_FALSE(VisibleMemory().map(other));
    EXPECT_TRUE(VisibleMemory().map(*old));
    EXPECT_FALSE(memory.visiblePlace(memory.get() - 1).has_value());
  }
  EXPECT_FALSE(VisibleMemory().map(*old));
  Memory next;
  ASSERT_TRUE(next.allocateVisible(100));
  EXPECT_FALSE(VisibleMemory().map(*old)); // The same descriptor.
}

TEST(MemoryTest, MemoryOfThisProcessAloneIsNotVisible) {
  Memory memory;
  ASSERT_TRUE(memory.allocate(100));
  EXPECT_FALSE(memory.visiblePlace(memory.get()).has_value());
  Memory visible;
  ASSERT_TRUE(visible.allocateVisible(100));
  EXPECT_FALSE(visible.visiblePlace(nullptr).has_value());
  EXPECT_FALSE(visible.visiblePlace(memory.get()).has_value());
}
