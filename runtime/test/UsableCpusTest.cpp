//===- UsableCpusTest.cpp - Affinity and CPU quotas -----------------------===//

#include "base/UsableCpus.h"

#include "exec/WorkerPool.h"
#include "shardc-rt/Context.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <thread>

#include <unistd.h>

using namespace shardc::rt;

namespace {

/// A folder as /sys/fs/cgroup.
class CpuQuotaTest : public testing::Test {
protected:
  CpuQuotaTest()
      : root(testing::TempDir() + "shardc-cgroup-" + std::to_string(getpid())) {
    std::filesystem::remove_all(root);
  }
  ~CpuQuotaTest() override { std::filesystem::remove_all(root); }

  void write(const std::string &path, const std::string &text) {
    std::filesystem::path file = root + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root;
};

} // namespace

TEST_F(CpuQuotaTest, OfVersion2IsTheLeastOfTheGroupAndThoseAbove) {
  write("/cpu.max", "max 100000\n");
  write("/user/cpu.max", "150000 100000\n");
  write("/user/job/cpu.max", "800000 200000\n");
  EXPECT_EQ(readCpuQuota("0::/\n", root), 0);
  EXPECT_EQ(readCpuQuota("0::/user\n", root), 1.5);
  EXPECT_EQ(readCpuQuota("0::/user/job\n", root), 1.5);
  write("/user/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(readCpuQuota("0::/user/job\n", root), 0.5);
  // A container sees its own group as the mount, and perhaps another path.
  write("/cpu.max", "200000 100000\n");
  EXPECT_EQ(readCpuQuota("0::/../other\n", root), 2);
  EXPECT_EQ(readCpuQuota("0::/docker/1234\n", root), 2);
}

TEST_F(CpuQuotaTest, OfVersion1IsInTwoFiles) {
  for (std::string mount : {"/cpu", "/cpu,cpuacct"}) {
    write(mount + "/job/cpu.cfs_quota_us", "300000\n");
    write(mount + "/job/cpu.cfs_period_us", "200000\n");
    write(mount + "/cpu.cfs_quota_us", "-1\n");
    write(mount + "/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(readCpuQuota("4:memory:/job\n3:cpu,cpuacct:/job\n0::/\n", root),
              1.5);
    EXPECT_EQ(readCpuQuota("3:cpu,cpuacct:/\n0::/\n", root), 0);
    EXPECT_EQ(readCpuQuota("3:cpuset:/job\n", root), 0);
    std::filesystem::remove_all(root);
  }
}

TEST_F(CpuQuotaTest, OfWhatIsNoQuotaIsNone) {
  EXPECT_EQ(readCpuQuota("", root), 0);
  EXPECT_EQ(readCpuQuota("nonsense\n0:\n::::\n", root), 0);
  for (const char *text : {"", "150000", "1 2 3", "-5 100000", "1 0", "a b",
                           "99999999999999999999 100000"}) {
    write("/cpu.max", text);
    EXPECT_EQ(readCpuQuota("0::/\n", root), 0) << text;
  }
}

TEST(UsableCpusTest, CountIsOfTheMaskAndTheQuota) {
  EXPECT_EQ((UsableCpus{8, 8, 0}.count()), 8);
  EXPECT_EQ((UsableCpus{8, 3, 0}.count()), 3);
  EXPECT_EQ((UsableCpus{8, 8, 1.5}.count()), 2);
  EXPECT_EQ((UsableCpus{8, 8, 0.1}.count()), 1);
  EXPECT_EQ((UsableCpus{8, 3, 6}.count()), 3);
  EXPECT_EQ((UsableCpus{8, 8, 0}.limits()), "");
  EXPECT_EQ((UsableCpus{8, 3, 6}.limits()), "3 of 8 CPUs by affinity");
  EXPECT_EQ((UsableCpus{8, 3, 1.5}.limits()),
            "3 of 8 CPUs by affinity, CPU quota 1.5");
}

TEST(UsableCpusTest, ContextsFollowTheMask) {
  // Of a thread of its own: the mask of this one stays.
  std::thread([] {
    cpu_set_t mask, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &mask))
        CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(findUsableCpus().allowed, 1);
    EXPECT_EQ((*Context::create())->numThreads(), 1);
    EXPECT_EQ((*Context::create({3}))->numThreads(), 3);
  }).join();
}
