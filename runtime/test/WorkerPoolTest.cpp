//===- WorkerPoolTest.cpp - Threads that share work -----------------------===//

#include "exec/WorkerPool.h"

#include "base/UsableCpus.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <thread>

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

TEST(WorkerPoolTest, EveryTaskRunsOnce) {
  for (int workers : {1, 2, 3, 5})
    for (int64_t tasks : {0, 1, 2, 7, 100, 20000})
      for (int64_t atOnce : {1, 3, 1000}) {
        WorkerPool pool(workers);
        std::vector<std::atomic<int>> runs(tasks);
        pool.forEach(tasks, atOnce, [&](int64_t task) { ++runs[task]; });
        for (std::atomic<int> &run : runs)
          ASSERT_EQ(run.load(), 1);
      }
}

namespace {

/// Sections of steps of given numbers of chunks, which checks that each chunk
/// runs once, behind all that it may need.
class CheckedWork : public SharedWork {
public:
  /// By section, share and step.
  using Chunks = std::vector<std::vector<std::vector<int>>>;

  CheckedWork(Chunks numbers, bool divided)
      : numbers(std::move(numbers)), divided(divided) {}

  bool openSection() override {
    EXPECT_EQ(left.load(), 0) << "chunks of the section before";
    if (++section == static_cast<int>(numbers.size()))
      return false;
    for (const std::vector<int> &steps : numbers[section])
      for (int chunks : steps)
        left += chunks;
    return true;
  }
  SharedStep firstStep(int share) override { return stepFrom(share, 0); }
  SharedStep stepAfter(int share, uint32_t number) override {
    for (int i = 0; i < numbers[section][share][number]; ++i)
      EXPECT_EQ(ran[share][i].exchange(0), 1);
    return stepFrom(share, number + 1);
  }
  void runChunk(int worker, int share, uint32_t number, int chunk) override {
    EXPECT_TRUE(worker == share || !divided);
    EXPECT_LT(chunk, numbers[section][share][number]);
    ++ran[share][chunk];
    --left;
    ++total;
    whileRunning(worker);
  }
  bool isDivided() const override { return divided; }

  virtual void whileRunning(int) {}

  std::atomic<int> total{0};

private:
  SharedStep stepFrom(int share, uint32_t number) const {
    const std::vector<int> &steps = numbers[section][share];
    while (number < steps.size() && steps[number] == 0)
      ++number;
    return {number, number < steps.size() ? steps[number] : 0};
  }

  const Chunks numbers;
  const bool divided;
  int section = -1;
  std::atomic<int> left{0}; ///< Chunks of the section that have not run.
  std::atomic<int> ran[8][64] = {}; ///< Of a share's step, by chunk.
};

/// One whose worker 1 is late: in its first chunk it waits until so many have
/// run.
class WorkOfALateWorker : public CheckedWork {
public:
  WorkOfALateWorker(Chunks numbers, int others)
      : CheckedWork(std::move(numbers), /*divided=*/false), others(others) {}

  void whileRunning(int worker) override {
    while (worker == 1 && total.load() < others)
      std::this_thread::yield();
  }

private:
  const int others;
};

} // namespace

TEST(WorkerPoolTest, SharesAreSequencesOfSteps) {
  std::mt19937 random(7);
  for (int workers : {1, 2, 3, 5}) {
    WorkerPool pool(workers);
    for (int round = 0; round < 300; ++round) {
      CheckedWork::Chunks numbers(random() % 6);
      int chunks = 0;
      for (auto &shares : numbers) {
        shares.resize(workers);
        for (auto &steps : shares)
          for (int step = random() % 5; step > 0; --step) {
            steps.push_back(random() % 3 ? random() % 4 : random() % 64);
            chunks += steps.back();
          }
      }
      CheckedWork work(numbers, /*divided=*/round % 3 == 0);
      pool.run(work);
      ASSERT_EQ(work.total.load(), chunks);
    }
  }
}

namespace {

/// One step of one share, which looks at its own progress.
class WorkThatLooks : public CheckedWork {
public:
  explicit WorkThatLooks(const WorkerPool &pool)
      : CheckedWork({{{1, 2}, {}}}, /*divided=*/true), pool(pool) {}

  void whileRunning(int) override { seen.push_back(pool.stepOf(0)); }

  std::vector<std::optional<uint32_t>> seen;

private:
  const WorkerPool &pool;
};

} // namespace

TEST(WorkerPoolTest, SaysWhereAShareIs) {
  WorkerPool pool(2);
  WorkThatLooks work(pool);
  pool.run(work);
  EXPECT_EQ(work.seen, (std::vector<std::optional<uint32_t>>{0, 1, 1}));
  EXPECT_EQ(pool.stepOf(0), std::nullopt);
  EXPECT_EQ(pool.stepOf(1), std::nullopt);
}

/// Others do what a late worker has not begun: all but the steps of one share
/// behind its chunk, which are 6 of the third share at most.
TEST(WorkerPoolTest, NobodyWaitsForWhatALateWorkerHasNotBegun) {
  WorkerPool pool(3);
  for (int round = 0; round < 50; ++round) {
    WorkOfALateWorker work({{{8, 3}, {8}, {8, 1, 5}}}, /*others=*/33 - 6);
    pool.run(work);
    EXPECT_EQ(work.total.load(), 33);
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

  /// Who falls asleep looks once whether the other is off its core: on a busy
  /// machine that may be too early or too late, but not so many times.
  static constexpr int mostRuns = 50;

  int firstCore() const {
    int core = 0;
    while (!CPU_ISSET(core, &before))
      ++core;
    return core;
  }
  static cpu_set_t only(int core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return one;
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
    const cpu_set_t one = only(core);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    pool.run([&](int worker) {
      cpu_set_t mine;
      if (worker > 0) {
        EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
        EXPECT_FALSE(CPU_ISSET(core, &mine)) << core;
        EXPECT_EQ(CPU_COUNT(&mine), CPU_COUNT(&before) - 1) << core;
      }
      pool.barrier(); // Nobody waits for a late one.
    });
  }
}

/// A worker more than there are cores is spare, and may use all of them.
TEST_F(WorkerAffinityTest, SpareWorkersMayUseAllCores) {
  const int cores = CPU_COUNT(&before);
  if (findUsableCpus().count() < cores)
    GTEST_SKIP() << "a CPU quota";
  WorkerPool pool(cores + 1);
  pool.run([&](int worker) {
    cpu_set_t mine;
    EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    EXPECT_EQ(CPU_COUNT(&mine),
              worker == 0 || worker == cores ? cores : cores - 1)
        << worker;
    pool.barrier();
  });
}

/// A thread that is off its core may use the caller's while that waits for it.
TEST_F(WorkerAffinityTest, LetsALateThreadUseTheCoreOfTheCaller) {
  if (CPU_COUNT(&before) < 2)
    GTEST_SKIP() << "one core";
  const int core = firstCore();
  const cpu_set_t one = only(core);
  WorkerPool pool(2);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  std::atomic<bool> hasMoved{false};
  for (int run = 0; run < mostRuns && !hasMoved; ++run) {
    std::atomic<bool> hasBegun{false};
    pool.run([&](int worker) {
      if (worker == 0) {
        while (!hasBegun)
          std::this_thread::yield();
        // It is off its core before the caller has nothing left to do.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return;
      }
      hasBegun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      cpu_set_t mine;
      EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
      hasMoved = CPU_EQUAL(&mine, &one);
      EXPECT_TRUE(hasMoved || !CPU_ISSET(core, &mine));
    });
  }
  EXPECT_TRUE(hasMoved);
  pool.run([&](int worker) {
    cpu_set_t mine;
    EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    EXPECT_EQ(CPU_ISSET(core, &mine), worker == 0);
    pool.barrier();
  });
}

namespace {

/// Two sections, in the first of which worker 1 is late, and may use the core
/// of the caller, `one`.
class WorkOfAGuest : public CheckedWork {
public:
  explicit WorkOfAGuest(const cpu_set_t &one)
      : CheckedWork({{{1}, {1}}, {{20, 20}, {20, 20}}}, /*divided=*/false),
        one(one) {}

  void whileRunning(int worker) override {
    if (worker == 0) {
      // Worker 1 has its chunk meanwhile, or is late for it, too.
      for (int turn = 0; turn < 100 && !hasBegun; ++turn)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    } else if (!hasBegun.exchange(true)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      wasGuest = isOnCoreOfCaller();
    } else if (isOnCoreOfCaller()) {
      hasBegunAsGuest = true;
    }
  }

  std::atomic<bool> wasGuest{false}, hasBegunAsGuest{false};

private:
  bool isOnCoreOfCaller() const {
    cpu_set_t mine;
    EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    return CPU_EQUAL(&mine, &one);
  }

  const cpu_set_t one;
  std::atomic<bool> hasBegun{false};
};

} // namespace

/// It ends its chunk there, and begins nothing: both would share that core.
TEST_F(WorkerAffinityTest, BeginsNothingOnTheCoreOfTheCaller) {
  if (findUsableCpus().count() < 2)
    GTEST_SKIP() << "one core, or a quota of one";
  const int core = firstCore();
  const cpu_set_t one = only(core);
  WorkerPool pool(2);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  // A busy machine may take a worker off its core in other chunks, too.
  int guests = 0, without = 0;
  for (int run = 0; run < mostRuns && without == 0; ++run) {
    WorkOfAGuest work(one);
    pool.run(work);
    EXPECT_EQ(work.total.load(), 82);
    guests += work.wasGuest;
    without += work.wasGuest && !work.hasBegunAsGuest;
  }
  EXPECT_GT(without, 0) << guests << " times on the core of the caller";
}

/// A caller that is off its core may use that of a thread without work, and has
/// its own affinity afterwards.
TEST_F(WorkerAffinityTest, LetsALateCallerUseTheCoreOfAnIdleThread) {
  if (CPU_COUNT(&before) < 2)
    GTEST_SKIP() << "one core";
  WorkerPool pool(2);
  bool hasMoved = false;
  for (int run = 0; run < mostRuns && !hasMoved; ++run) {
    pool.run([&](int worker) {
      if (worker > 0)
        return;
      const int core = sched_getcpu();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      cpu_set_t mine;
      EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
      hasMoved = CPU_COUNT(&mine) == 1 && !CPU_ISSET(core, &mine);
      EXPECT_TRUE(CPU_COUNT(&mine) == 1 || CPU_EQUAL(&mine, &before));
    });
    cpu_set_t mine;
    EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    EXPECT_TRUE(CPU_EQUAL(&mine, &before));
  }
  EXPECT_TRUE(hasMoved);
}

/// But not one that its user keeps off that core.
TEST_F(WorkerAffinityTest, LeavesACallerWhereItsUserWantsIt) {
  if (CPU_COUNT(&before) < 2)
    GTEST_SKIP() << "one core";
  WorkerPool pool(2);
  const int core = firstCore();
  const cpu_set_t one = only(core);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  pool.run([&](int worker) {
    if (worker > 0)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cpu_set_t mine;
    EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    EXPECT_TRUE(CPU_EQUAL(&mine, &one));
  });
}

/// With one core the caller does what any worker can do; divided work still
/// needs them all.
TEST_F(WorkerAffinityTest, OneCoreHasOneWorker) {
  const cpu_set_t one = only(sched_getcpu());
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  WorkerPool pool(3);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 20; ++round) {
    pool.forEach(100, 1, [&](int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
    });
    std::atomic<int> workers{0};
    pool.run([&](int worker) {
      workers += worker + 1;
      pool.barrier();
    });
    EXPECT_EQ(workers, 6);
  }
}
