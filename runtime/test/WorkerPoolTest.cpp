//===- WorkerPoolTest.cpp - Threads that run one job together -------------===//

#include "exec/WorkerPool.h"

#include <atomic>
#include <gtest/gtest.h>

using namespace shardc::rt;

TEST(WorkerPool, EveryWorkerRunsAJobOnce) {
  for (int workers : {1, 2, 5}) {
    WorkerPool pool(workers);
    std::vector<std::atomic<int>> runs(workers);
    for (int job = 0; job < 100; ++job)
      pool.run([&](int worker) {
        ++runs[worker];
        pool.barrier();
        // All have come this far.
        for (const std::atomic<int> &count : runs)
          if (count.load() <= job)
            runs[0] = -1;
      });
    for (const std::atomic<int> &count : runs)
      EXPECT_EQ(count.load(), 100) << workers;
  }
}

/// Where there are cores enough, the caller's is its own.
TEST(WorkerPool, LeavesItsCoreToTheCaller) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  if (CPU_COUNT(&before) < 2)
    GTEST_SKIP() << "one core";
  WorkerPool pool(2);
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
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

/// More workers than cores: the caller's is needed.
TEST(WorkerPool, TakesAllCoresWhereItNeedsThem) {
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  const int workers = CPU_COUNT(&cores) + 1;
  WorkerPool pool(workers);
  pool.run([&](int) {
    cpu_set_t mine;
    ASSERT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    EXPECT_TRUE(CPU_EQUAL(&mine, &cores));
  });
}
