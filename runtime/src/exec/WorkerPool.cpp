//===- WorkerPool.cpp - Threads that share work ---------------------------===//

#include "exec/WorkerPool.h"

#include "base/UsableCpus.h"
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
/// Turns between two looks at the shares of others, whose workers need the same
/// cache lines. In the first ones a worker waits for its own share alone, which
/// mostly begins in a moment: who took another one meanwhile would need what
/// lies in the caches of that share's worker.
static constexpr int turnsForOwn = 16;

static void relaxCpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void futex(std::atomic<uint32_t> &word, int operation, uint32_t value) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

/// Bits of the numbers of chunks in a state.
static constexpr int chunkBits = 12;
static constexpr uint64_t chunkMask = (1 << chunkBits) - 1;
static_assert(chunkMask == SharedWork::mostChunks);
static_assert(uint64_t(SharedWork::mostSteps) << (3 * chunkBits + 1) == 0,
              "a state is full");

WorkerPool::State::State(uint64_t word)
    : isDivided(word >> 63),
      step(word >> (3 * chunkBits) & (SharedWork::mostSteps - 1)),
      unfinished(word >> (2 * chunkBits) & chunkMask),
      next(word >> chunkBits & chunkMask), end(word & chunkMask) {}

uint64_t WorkerPool::State::word() const {
  return uint64_t(isDivided) << 63 | uint64_t(step) << (3 * chunkBits) |
         uint64_t(unfinished) << (2 * chunkBits) | uint64_t(next) << chunkBits |
         uint64_t(end);
}

WorkerPool::WorkerPool(int workers)
    : workers(workers), usable(findUsableCpus().count()), shares(workers),
      firstSteps(workers), asleep(workers) {
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof(cores), &cores);
  for (int worker = 1; worker < workers; ++worker)
    threads.emplace_back([this, worker] { work(worker); });
}

WorkerPool::~WorkerPool() {
  ending = true;
  wakeAll();
  wakeSpare();
  for (std::thread &thread : threads)
    thread.join();
}

void WorkerPool::wakeAll() {
  wakeups.fetch_add(1);
  futex(wakeups, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void WorkerPool::wakeSpare() {
  dividedRuns.fetch_add(1);
  futex(dividedRuns, FUTEX_WAKE_PRIVATE, INT_MAX);
}

template <typename Done>
void WorkerPool::takeOrWait(int worker, Done done) {
  Clock::time_point start;
  for (int turn = 0; !done(); ++turn) {
    if (isGuest(worker)) {
      waitAsGuest(worker, done);
      continue;
    }
    if (takeFrom(worker, worker) ||
        (turn % turnsForOwn == turnsForOwn - 1 && takeAny(worker)))
      return;
    const bool mayNotSleep = worker == 0 && current->whileCallerWaits();
    relaxCpu();
    if (turn % turnsPerLook != turnsPerLook - 1)
      continue;
    if (turn < turnsPerLook)
      start = Clock::now();
    // With more workers than CPUs, who is waited for may need this one.
    if (!isDividedRun.load(std::memory_order_relaxed) &&
        Clock::now() - start < spinning)
      continue;
    if (mayNotSleep) {
      std::this_thread::yield();
      continue;
    }
    // Whoever makes something ready either sees that this one sleeps, or did it
    // before this one looks.
    asleep[worker].store(true, std::memory_order_relaxed);
    sleepers.fetch_add(1);
    uint32_t before = wakeups.load();
    if (!done() && !seesWork(worker))
      worker == 0 ? lendCore() : yieldCoreToCaller();
    if (!done() && !seesWork(worker))
      futex(wakeups, FUTEX_WAIT_PRIVATE, before);
    if (worker == 0 && callerCore < 0)
      leaveCoreToCaller();
    sleepers.fetch_sub(1);
    asleep[worker].store(false, std::memory_order_relaxed);
  }
}

template <typename Done>
void WorkerPool::waitAsGuest(int worker, Done done) {
  asleep[worker].store(true, std::memory_order_relaxed);
  sleepers.fetch_add(1);
  uint32_t before = wakeups.load();
  if (!done() && isGuest(worker))
    futex(wakeups, FUTEX_WAIT_PRIVATE, before);
  sleepers.fetch_sub(1);
  asleep[worker].store(false, std::memory_order_relaxed);
}

void WorkerPool::work(int worker) {
  const bool isSpare = worker >= usable;
  while (!ending) {
    const uint32_t before = dividedRuns.load();
    if (isSpare && !isDividedRun.load()) {
      if (!ending)
        futex(dividedRuns, FUTEX_WAIT_PRIVATE, before);
      continue;
    }
    takeOrWait(worker, [&] {
      return ending.load() || (isSpare && !isDividedRun.load());
    });
  }
}

bool WorkerPool::seesWork(int worker) const {
  for (int share = 0; share < workers; ++share) {
    State state(shares[share].state.load());
    if (state.next < state.end && (share == worker || !state.isDivided))
      return true;
  }
  return false;
}

std::optional<uint32_t> WorkerPool::stepOf(int share) const {
  State state(shares[share].state.load(std::memory_order_relaxed));
  if (state.unfinished == 0)
    return std::nullopt;
  return state.step;
}

bool WorkerPool::takeAny(int worker) {
  for (int distance = 1; distance < workers; ++distance)
    if (takeFrom((worker + distance) % workers, worker))
      return true;
  return false;
}

bool WorkerPool::takeFrom(int share, int worker) {
  std::atomic<uint64_t> &state = shares[share].state;
  uint64_t seen = state.load(std::memory_order_relaxed);
  while (true) {
    State now(seen);
    if (now.next >= now.end || (share != worker && now.isDivided))
      return false;
    const int chunk = share == worker ? now.next++ : --now.end;
    if (!state.compare_exchange_weak(seen, now.word(),
                                     std::memory_order_acquire,
                                     std::memory_order_relaxed))
      continue;
    runAll(share, now.step, chunk, /*isLast=*/now.unfinished == 1, worker);
    return true;
  }
}

int WorkerPool::endChunk(int share, int worker, bool &isLast) {
  std::atomic<uint64_t> &state = shares[share].state;
  uint64_t seen = state.load(std::memory_order_acquire);
  while (true) {
    State now(seen);
    isLast = now.unfinished == 1;
    if (isLast) // Nobody else changes the state.
      return -1;
    --now.unfinished;
    const bool takes = share == worker && now.next < now.end;
    const int chunk = takes ? now.next++ : -1;
    if (state.compare_exchange_weak(seen, now.word(), std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      isLast = takes && now.unfinished == 1;
      return chunk;
    }
  }
}

int WorkerPool::beginStep(int share, SharedStep step, int worker) {
  State state;
  state.isDivided = isDivided;
  state.step = step.number;
  state.unfinished = step.chunks;
  int chunk = 0;
  if (share == worker || isDivided) {
    state.next = 1;
    state.end = step.chunks;
  } else {
    // The worker of the share may be late: then this one takes from the far
    // end, too.
    chunk = state.end = step.chunks - 1;
  }
  shares[share].state.store(state.word(), std::memory_order_release);
  // Who falls asleep meanwhile is woken by a later step: this worker runs the
  // chunks itself.
  if (step.chunks > 1 && sleepers.load(std::memory_order_relaxed) > 0)
    wakeAll();
  return chunk;
}

void WorkerPool::offerStep(int share, SharedStep step) {
  State state;
  state.isDivided = isDivided;
  state.step = step.number;
  state.unfinished = state.end = step.chunks;
  // Either this worker sees that the share's sleeps, or that one this step.
  shares[share].state.exchange(state.word());
  if (sleepers.load() > 0)
    wakeAll();
}

bool WorkerPool::runFrom(int share, uint32_t step, int chunk, bool isLast,
                         int worker) {
  while (true) {
    current->runChunk(worker, share, step, chunk);
    if (!isLast) {
      const int next = endChunk(share, worker, isLast);
      if (next >= 0) {
        chunk = next;
        continue;
      }
      if (!isLast)
        return false;
    }
    const SharedStep after = current->stepAfter(share, step);
    if (after.chunks == 0)
      break;
    if (isGuest(worker)) {
      offerStep(share, after);
      return false;
    }
    chunk = beginStep(share, after, worker);
    step = after.number;
    isLast = after.chunks == 1;
  }
  shares[share].state.store(0, std::memory_order_relaxed);
  return unfinishedShares.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

WorkerPool::Begun WorkerPool::open(int worker) {
  int begun = 0, last = 0;
  while (begun == 0) {
    if (!current->openSection()) {
      finished.store(true);
      if (sleepers.load() > 0)
        wakeAll();
      return {};
    }
    for (int share = 0; share < workers; ++share) {
      firstSteps[share] = current->firstStep(share);
      if (firstSteps[share].chunks > 0)
        ++begun, last = share;
    }
  }
  // Before any share begins: its chunks may end at once, and then another
  // worker opens the next section.
  unfinishedShares.store(begun, std::memory_order_relaxed);
  // To hand over one chunk takes longer than many a chunk.
  const bool isOne = begun == 1 && firstSteps[last].chunks == 1 && !isDivided;
  const int own = isGuest(worker) ? -1 : isOne ? last : worker;
  const SharedStep first = own < 0 ? SharedStep{} : firstSteps[own];
  if (first.chunks > 0)
    --begun;
  for (int share = 0; begun > 0; ++share) {
    const SharedStep step = firstSteps[share];
    if (share == own || step.chunks == 0)
      continue;
    --begun;
    offerStep(share, step);
  }
  if (first.chunks > 0)
    beginStep(own, first, worker);
  return {own, first};
}

void WorkerPool::runAll(int share, uint32_t step, int chunk, bool isLast,
                        int worker) {
  while (runFrom(share, step, chunk, isLast, worker)) {
    const Begun begun = open(worker);
    if (begun.step.chunks == 0)
      return;
    share = begun.share;
    step = begun.step.number;
    chunk = 0;
    isLast = begun.step.chunks == 1;
  }
}

/// The system mostly wakes a thread on the core of its waker. There the two
/// would take turns, milliseconds each, until the system finds a better core; a
/// step takes microseconds.
void WorkerPool::leaveCoreToCaller() {
  int core = sched_getcpu();
  if (core == callerCore)
    return;
  const bool wasLent = callerCore < 0;
  callerCore = core;
  cpu_set_t others = cores;
  CPU_CLR(core, &others);
  // Spare workers may use all cores: divided work needs each of them.
  const int active = std::min(workers, usable) - 1;
  if (CPU_COUNT(&others) < active) {
    if (!wasLent)
      return;
    others = cores;
  }
  for (int thread = 0; thread < workers - 1; ++thread)
    pthread_setaffinity_np(threads[thread].native_handle(), sizeof(others),
                           thread < active ? &others : &cores);
  if (guest.exchange(0) != 0)
    wakeAll();
}

/// The nanoseconds for which a thread has had a core; none: it is not known.
static std::optional<int64_t> timeOf(pthread_t thread) {
  clockid_t clock;
  timespec time{};
  if (pthread_getcpuclockid(thread, &clock) != 0 ||
      clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return time.tv_sec * int64_t(1000000000) + time.tv_nsec;
}

/// Time enough for a thread that has a core to get on.
static void waitForProgress() {
  for (int turn = 0; turn < 100; ++turn)
    relaxCpu();
}

/// A thread that waits for a core, with a chunk that all others wait for, gets
/// the one that the caller is about to leave idle: its own affinity excludes
/// that core, and the system may leave it for milliseconds where it is. One
/// that has a core gets on in the microseconds between two looks. Only one:
/// several would take turns.
void WorkerPool::lendCore() {
  const int core = sched_getcpu();
  if (core < 0 || !CPU_ISSET(core, &cores))
    return;
  // Spare workers sleep without being asked.
  const int taking = isDividedRun.load() ? workers : std::min(workers, usable);
  std::vector<std::optional<int64_t>> times;
  for (int i = 0; i < taking - 1; ++i)
    times.push_back(asleep[i + 1].load(std::memory_order_relaxed)
                        ? std::nullopt
                        : timeOf(threads[i].native_handle()));
  waitForProgress();
  for (int i = 0; i < taking - 1; ++i) {
    if (!times[i] || asleep[i + 1].load(std::memory_order_relaxed))
      continue;
    if (timeOf(threads[i].native_handle()) != times[i])
      continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    // The caller takes what the guest leaves, unless it may not.
    if (!isDivided)
      guest.store(i + 1);
    pthread_setaffinity_np(threads[i].native_handle(), sizeof(own), &own);
    callerCore = -1;
    return;
  }
}

/// The caller waits for a core with a chunk, or the next section to open, and
/// this thread has one and nothing to do. The two change places: the other
/// program gets this thread beside it, whose chunks the caller can take.
void WorkerPool::yieldCoreToCaller() {
  Caller::Place in = Caller::Place::Running;
  const int core = sched_getcpu();
  // With spare workers, which are there for their own shares, all need all
  // cores.
  if (caller.place.load() != in || asleep[0].load() || isDividedRun.load() ||
      core < 0 || !CPU_ISSET(core, &cores))
    return;
  cpu_set_t others = cores;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0)
    return;
  // It returns no sooner than the place is another one than `Moving`.
  if (!caller.place.compare_exchange_strong(in, Caller::Place::Moving))
    return;
  auto isOffItsCore = [&] {
    std::optional<int64_t> before = timeOf(caller.thread);
    waitForProgress();
    return before && timeOf(caller.thread) == before &&
           caller.place.load() == Caller::Place::Moving && !asleep[0].load();
  };
  if (!isOffItsCore() ||
      pthread_getaffinity_np(caller.thread, sizeof(caller.cores),
                             &caller.cores) != 0 ||
      !CPU_ISSET(core, &caller.cores)) {
    caller.place.store(Caller::Place::Running);
    return;
  }
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(core, &own);
  pthread_setaffinity_np(caller.thread, sizeof(own), &own);
  // The next run may give this thread other cores from here on.
  pthread_setaffinity_np(pthread_self(), sizeof(others), &others);
  caller.place.store(Caller::Place::Moved);
}

void WorkerPool::endRunOfCaller() {
  Caller::Place in = Caller::Place::Running;
  while (!caller.place.compare_exchange_weak(in, Caller::Place::Away)) {
    if (in == Caller::Place::Moved) {
      pthread_setaffinity_np(caller.thread, sizeof(caller.cores),
                             &caller.cores);
      callerCore = -1;
      caller.place.store(Caller::Place::Away);
      return;
    }
    // Whoever looks whether it is off its core may be off its own.
    sched_yield();
    in = Caller::Place::Running;
  }
}

void WorkerPool::run(SharedWork &work) {
  std::lock_guard<std::mutex> running(runMutex);
  if (workers > 1)
    leaveCoreToCaller();
  current = &work;
  isDivided = work.isDivided();
  if (isDivided && workers > usable) {
    isDividedRun.store(true);
    wakeSpare();
  }
  caller.thread = pthread_self();
  caller.place.store(Caller::Place::Running, std::memory_order_release);
  finished.store(false, std::memory_order_relaxed);
  if (Begun begun = open(/*worker=*/0); begun.step.chunks > 0)
    runAll(begun.share, begun.step.number, /*chunk=*/0,
           /*isLast=*/begun.step.chunks == 1, /*worker=*/0);
  while (!finished.load(std::memory_order_acquire))
    takeOrWait(0, [&] { return finished.load(); });
  endRunOfCaller();
  isDividedRun.store(false, std::memory_order_relaxed);
}

namespace {
/// Work of one section with one step.
class OneStep : public SharedWork {
public:
  OneStep(int64_t tasks, int64_t atOnce, int workers)
      : tasks(tasks), atOnce(atOnce), workers(workers) {}

  bool openSection() override { return !std::exchange(isOpen, true); }
  SharedStep firstStep(int share) override {
    TaskRange range(tasks, share, workers);
    const int64_t count = range.end - range.begin, most = atChunk(range);
    return {0, static_cast<int>((count + most - 1) / most)};
  }
  SharedStep stepAfter(int, uint32_t) override { return {}; }

protected:
  /// The tasks of a chunk.
  TaskRange tasksOf(int share, int chunk) const {
    TaskRange range(tasks, share, workers);
    const int64_t most = atChunk(range);
    range.begin += chunk * most;
    range.end = std::min(range.end, range.begin + most);
    return range;
  }

private:
  int64_t atChunk(const TaskRange &share) const {
    return std::max(atOnce, (share.end - share.begin) / mostChunks + 1);
  }

  const int64_t tasks, atOnce;
  const int workers;
  bool isOpen = false;
};

class ForEach : public OneStep {
public:
  ForEach(int64_t tasks, int64_t atOnce, int workers,
          absl::FunctionRef<void(int64_t)> task)
      : OneStep(tasks, atOnce, workers), task(task) {}

  void runChunk(int, int share, uint32_t, int chunk) override {
    TaskRange range = tasksOf(share, chunk);
    for (int64_t i = range.begin; i < range.end; ++i)
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

  void runChunk(int worker, int, uint32_t, int) override { job(worker); }
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
