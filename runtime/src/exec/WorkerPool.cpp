//===- WorkerPool.cpp - Threads that run one job together -----------------===//

#include "exec/WorkerPool.h"

#include <pthread.h>

using namespace shardc::rt;

/// Turns of the spinning wait before a thread gives up its core, and before an
/// idle one sleeps. A turn is some tens of nanoseconds.
static constexpr int spinsBeforeYield = 2000;
static constexpr int yieldsBeforeSleep = 200;

static void relaxCpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

WorkerPool::WorkerPool(int workers) : workers(workers) {
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof(cores), &cores);
  for (int worker = 1; worker < workers; ++worker)
    threads.emplace_back([this, worker] { work(worker); });
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard<std::mutex> lock(sleepMutex);
    ending = true;
  }
  wake.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

uint64_t WorkerPool::waitForJob(uint64_t last) {
  auto ready = [&] { return ending || jobNumber.load() != last; };
  for (int turn = 0; turn < spinsBeforeYield && !ready(); ++turn)
    relaxCpu();
  for (int turn = 0; turn < yieldsBeforeSleep && !ready(); ++turn)
    std::this_thread::yield();
  if (!ready()) {
    std::unique_lock<std::mutex> lock(sleepMutex);
    wake.wait(lock, ready);
  }
  return ending ? 0 : jobNumber.load();
}

void WorkerPool::work(int worker) {
  uint64_t number = 0;
  while ((number = waitForJob(number)) != 0) {
    (*job)(worker);
    barrier();
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

void WorkerPool::run(const std::function<void(int)> &newJob) {
  std::lock_guard<std::mutex> running(runMutex);
  if (workers > 1) {
    leaveCoreToCaller();
    {
      std::lock_guard<std::mutex> lock(sleepMutex);
      job = &newJob;
      jobNumber.fetch_add(1);
    }
    wake.notify_all();
  }
  newJob(0);
  if (workers > 1)
    barrier();
}

void WorkerPool::barrier(absl::FunctionRef<void()> meanwhile) {
  if (workers == 1)
    return;
  uint64_t current = phase.load(std::memory_order_relaxed);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == workers) {
    arrived.store(0, std::memory_order_relaxed);
    phase.store(current + 1, std::memory_order_release);
    return;
  }
  for (int turn = 0; phase.load(std::memory_order_acquire) == current; ++turn) {
    meanwhile();
    if (turn < spinsBeforeYield)
      relaxCpu();
    else
      std::this_thread::yield();
  }
}
