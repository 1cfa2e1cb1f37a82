//===- WorkerPool.cpp - Threads that share work ---------------------------===//

#include "exec/WorkerPool.h"

#include "exec/Barriers.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <utility>

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace shardc::rt;

using Clock = std::chrono::steady_clock;

/// A wait spins so long before it sleeps: some times as long as the system
/// takes to wake a thread.
static constexpr std::chrono::microseconds spinning(50);
/// Turns of a wait between two looks at the clock. A turn is some tens of
/// nanoseconds.
static constexpr int turnsPerLook = 32;
/// Turns in which a worker waits for its own share alone.
static constexpr int turnsForOwn = 20;

static void relaxCpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void futex(std::atomic<uint32_t> &word, int operation, uint32_t value) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

namespace {
/// The value of `Share::untaken`.
struct Untaken {
  static constexpr int bits = 12;
  static constexpr uint64_t mask = (1 << bits) - 1;
  static_assert(mask == SharedWork::mostChunks);

  explicit Untaken(uint64_t word)
      : step(word >> (2 * bits)), next(word >> bits & mask), end(word & mask) {}

  uint64_t word() const {
    return step << (2 * bits) | uint64_t(next) << bits | uint64_t(end);
  }

  uint64_t step;
  int next, end;
};
} // namespace

WorkerPool::WorkerPool(int workers) : workers(workers), shares(workers) {
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof(cores), &cores);
  for (int worker = 1; worker < workers; ++worker)
    threads.emplace_back([this, worker] { work(worker); });
}

WorkerPool::~WorkerPool() {
  ending = true;
  wakeAll();
  for (std::thread &thread : threads)
    thread.join();
}

void WorkerPool::wakeAll() {
  wakeups.fetch_add(1);
  futex(wakeups, FUTEX_WAKE_PRIVATE, INT_MAX);
}

template <typename Done>
void WorkerPool::takeOrWait(int worker, Done done) {
  Clock::time_point start;
  for (int turn = 0; !done(); ++turn) {
    // Its own share mostly begins in a moment. Who took another one meanwhile
    // would need what lies in the caches of that share's worker.
    if (takeFrom(worker, worker) || (turn >= turnsForOwn && takeAny(worker)))
      return;
    const bool mayNotSleep = worker == 0 && current->whileCallerWaits();
    relaxCpu();
    if (turn % turnsPerLook != turnsPerLook - 1)
      continue;
    if (turn < turnsPerLook)
      start = Clock::now();
    if (Clock::now() - start < spinning)
      continue;
    if (mayNotSleep) {
      std::this_thread::yield();
      continue;
    }
    // Whoever makes something ready either sees that this one sleeps, or did it
    // before this one looks.
    sleepers.fetch_add(1);
    uint32_t before = wakeups.load();
    if (!done() && !seesWork(worker))
      futex(wakeups, FUTEX_WAIT_PRIVATE, before);
    sleepers.fetch_sub(1);
  }
}

void WorkerPool::work(int worker) {
  while (!ending)
    takeOrWait(worker, [&] { return ending.load(); });
}

bool WorkerPool::seesWork(int worker) const {
  auto has = [&](int share) {
    Untaken untaken(shares[share].untaken.load());
    return untaken.next < untaken.end;
  };
  if (has(worker))
    return true;
  if (isDivided.load(std::memory_order_relaxed))
    return false;
  for (int share = 0; share < workers; ++share)
    if (has(share))
      return true;
  return false;
}

bool WorkerPool::takeAny(int worker) {
  for (int distance = 1; distance < workers; ++distance)
    if (takeFrom((worker + distance) % workers, worker))
      return true;
  return false;
}

bool WorkerPool::takeFrom(int share, int worker) {
  std::atomic<uint64_t> &word = shares[share].untaken;
  uint64_t seen = word.load(std::memory_order_acquire);
  while (true) {
    Untaken untaken(seen);
    if (untaken.next >= untaken.end)
      return false;
    // What it says of another work is no harm: then the word has changed.
    if (share != worker && isDivided.load(std::memory_order_relaxed))
      return false;
    int chunk = share == worker ? untaken.next++ : --untaken.end;
    if (word.compare_exchange_weak(seen, untaken.word(),
                                   std::memory_order_acq_rel,
                                   std::memory_order_acquire)) {
      runAll(share, chunk, worker);
      return true;
    }
  }
}

void WorkerPool::publish(int share, int next, int end) {
  Untaken untaken(shares[share].untaken.load(std::memory_order_relaxed));
  ++untaken.step;
  untaken.next = next;
  untaken.end = end;
  shares[share].untaken.exchange(untaken.word());
  if (sleepers.load() > 0)
    wakeAll();
}

bool WorkerPool::runFrom(int share, int chunk, int worker) {
  std::atomic<int> &unfinished = shares[share].unfinished;
  while (true) {
    current->runChunk(worker, share, shares[share], chunk);
    // If this one is the last, nobody else changes the number.
    if (unfinished.load(std::memory_order_acquire) != 1 &&
        unfinished.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return false;
    current->advance(share, shares[share]);
    const int chunks = shares[share].chunks;
    if (chunks == 0)
      break;
    unfinished.store(chunks, std::memory_order_relaxed);
    chunk = 0;
    if (chunks == 1)
      continue;
    // The worker of the share may be late: then this one takes from the far
    // end, too.
    if (share != worker && !isDivided.load(std::memory_order_relaxed)) {
      chunk = chunks - 1;
      publish(share, 0, chunks - 1);
    } else {
      publish(share, 1, chunks);
    }
  }
  return unfinishedShares.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

bool WorkerPool::open(int worker) {
  int begun = 0;
  while (begun == 0) {
    if (!current->openSection()) {
      finished.store(true);
      if (sleepers.load() > 0)
        wakeAll();
      return false;
    }
    for (int share = 0; share < workers; ++share) {
      current->begin(share, shares[share]);
      begun += shares[share].chunks > 0;
    }
  }
  // Before any share is published: its chunks may end at once.
  unfinishedShares.store(begun, std::memory_order_relaxed);
  const int own = shares[worker].chunks;
  begun -= own > 0;
  for (int share = 0; begun > 0; ++share) {
    int chunks = share == worker ? 0 : shares[share].chunks;
    if (chunks == 0)
      continue;
    --begun;
    shares[share].unfinished.store(chunks, std::memory_order_relaxed);
    publish(share, 0, chunks);
  }
  if (own == 0)
    return false;
  shares[worker].unfinished.store(own, std::memory_order_relaxed);
  if (own > 1)
    publish(worker, 1, own);
  return true;
}

void WorkerPool::runAll(int share, int chunk, int worker) {
  while (runFrom(share, chunk, worker) && open(worker)) {
    share = worker;
    chunk = 0;
  }
}

/// The system mostly wakes a thread on the core of its waker. There the two
/// would take turns, milliseconds each, until the system finds a better core; a
/// step takes microseconds.
void WorkerPool::leaveCoreToCaller() {
  int core = sched_getcpu();
  if (core == callerCore)
    return;
  callerCore = core;
  cpu_set_t others = cores;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) >= workers - 1)
    for (std::thread &thread : threads)
      pthread_setaffinity_np(thread.native_handle(), sizeof(others), &others);
}

void WorkerPool::run(SharedWork &work) {
  std::lock_guard<std::mutex> running(runMutex);
  if (workers > 1)
    leaveCoreToCaller();
  current = &work;
  isDivided.store(work.isDivided(), std::memory_order_relaxed);
  finished.store(false, std::memory_order_relaxed);
  if (open(/*worker=*/0))
    runAll(/*share=*/0, /*chunk=*/0, /*worker=*/0);
  while (!finished.load(std::memory_order_acquire))
    takeOrWait(0, [&] { return finished.load(); });
}

namespace {
/// Work of one section with one step.
class OneStep : public SharedWork {
public:
  OneStep(int64_t tasks, int64_t atOnce, int workers)
      : tasks(tasks), atOnce(atOnce), workers(workers) {}

  bool openSection() override { return !std::exchange(isOpen, true); }
  void begin(int number, Share &share) override {
    TaskRange range(tasks, number, workers);
    share.firstTask = range.begin;
    share.endTask = range.end;
    int64_t count = range.end - range.begin;
    share.tasksPerChunk = std::max(atOnce, count / mostChunks + 1);
    share.chunks = (count + share.tasksPerChunk - 1) / share.tasksPerChunk;
  }
  void advance(int, Share &share) override { share.chunks = 0; }

private:
  const int64_t tasks, atOnce;
  const int workers;
  bool isOpen = false;
};

class ForEach : public OneStep {
public:
  ForEach(int64_t tasks, int64_t atOnce, int workers,
          absl::FunctionRef<void(int64_t)> task)
      : OneStep(tasks, atOnce, workers), task(task) {}

  void runChunk(int, int, const Share &share, int chunk) override {
    const int64_t first = share.firstTask + chunk * share.tasksPerChunk;
    const int64_t end = std::min(share.endTask, first + share.tasksPerChunk);
    for (int64_t i = first; i < end; ++i)
      task(i);
  }

private:
  const absl::FunctionRef<void(int64_t)> task;
};

/// A job that every worker runs once.
class Job : public OneStep {
public:
  Job(const std::function<void(int)> &job, int workers)
      : OneStep(workers, 1, workers), job(job) {}

  void runChunk(int worker, int, const Share &, int) override { job(worker); }
  bool isDivided() const override { return true; }

private:
  const std::function<void(int)> &job;
};
} // namespace

void WorkerPool::forEach(int64_t tasks, int64_t atOnce,
                         absl::FunctionRef<void(int64_t)> task) {
  ForEach work(tasks, atOnce, workers, task);
  run(work);
}

void WorkerPool::run(const std::function<void(int)> &job) {
  Job work(job, workers);
  run(work);
}

void WorkerPool::barrier() {
  if (workers == 1)
    return;
  uint64_t current = phase.load(std::memory_order_relaxed);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == workers) {
    arrived.store(0, std::memory_order_relaxed);
    phase.store(current + 1, std::memory_order_release);
    return;
  }
  for (int turn = 0; phase.load(std::memory_order_acquire) == current; ++turn) {
    if (turn < 2000)
      relaxCpu();
    else
      std::this_thread::yield();
  }
}
