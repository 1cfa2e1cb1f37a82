//===- WorkerPoolTest.cpp - Threads that run one job together -------------===//

#include "exec/WorkerPool.h"

#include <atomic>
#include <gtest/gtest.h>

using namespace shardc::rt;

TEST(WorkerPoolTest, EveryWorkerRunsEveryJobOnce) {
  for (int workers : {1, 2, 3, 5}) {
    WorkerPool pool(workers);
    std::vector<std::atomic<int>> counts(workers);
    std::atomic<int> sum{0};
    for (int job = 0; job < 200; ++job)
      pool.run([&](int worker) {
        ++counts[worker];
        sum.fetch_add(1);
        pool.barrier();
        // All have added before any continues.
        EXPECT_EQ(sum.load() % workers, 0);
        pool.barrier();
      });
    for (std::atomic<int> &count : counts)
      EXPECT_EQ(count.load(), 200);
  }
}

namespace {

/// The affinity of this thread, restored afterwards.
class WorkerAffinityTest : public testing::Test {
protected:
  WorkerAffinityTest() { sched_getaffinity(0, sizeof(before), &before); }
  ~WorkerAffinityTest() override {
    sched_setaffinity(0, sizeof(before), &before);
  }

  cpu_set_t before;
};

} // namespace

/// If there are enough cores, only the caller uses its core.
TEST_F(WorkerAffinityTest, LeavesItsCoreToTheCaller) {
  if (CPU_COUNT(&before) < 2)
    GTEST_SKIP() << "one core";
  WorkerPool pool(CPU_COUNT(&before));
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &before))
      continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    pool.run([&](int worker) {
      if (worker == 0)
        return;
      cpu_set_t mine;
      ASSERT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
      EXPECT_FALSE(CPU_ISSET(core, &mine)) << core;
      EXPECT_EQ(CPU_COUNT(&mine), CPU_COUNT(&before) - 1) << core;
    });
  }
}

/// More workers than cores: they need the caller's core.
TEST_F(WorkerAffinityTest, TakesAllCoresWhereItNeedsThem) {
  WorkerPool pool(CPU_COUNT(&before) + 1);
  pool.run([&](int) {
    cpu_set_t mine;
    ASSERT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    EXPECT_TRUE(CPU_EQUAL(&mine, &before));
  });
}
