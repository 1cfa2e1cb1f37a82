//===- WorkerPool.h - Threads that run one job together ---------*- C++ -*-===//
//
// The caller is worker 0; the others wait, first spinning (waking a thread
// takes as long as a small step), then asleep. Within a job the workers
// synchronise at barriers. If there are enough cores, the others stay off the
// core of the caller at the start of a job; the caller's affinity is not
// changed.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_WORKERPOOL_H
#define SHARDC_RT_SRC_EXEC_WORKERPOOL_H

#include "absl/functional/function_ref.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <sched.h>
#include <thread>
#include <vector>

namespace shardc::rt {

class WorkerPool {
public:
  explicit WorkerPool(int workers);
  ~WorkerPool();

  int size() const { return workers; }

  /// Runs `job(worker)` on every worker and returns when all have finished.
  /// One job at a time: a second caller waits.
  void run(const std::function<void(int)> &job);

  /// A barrier: waits for all workers. Only within a job.
  void barrier() {
    barrier([] {});
  }
  /// The same; calls `meanwhile` again and again while it waits.
  void barrier(absl::FunctionRef<void()> meanwhile);

private:
  void work(int worker);
  /// Keeps the others off the core that the caller is on, as far as the system
  /// lets them.
  void leaveCoreToCaller();
  /// The number of the next job, once it is there; 0 when the pool ends.
  uint64_t waitForJob(uint64_t last);

  const int workers;
  /// The affinity of the thread that made the pool, whose cores the workers
  /// use.
  cpu_set_t cores;
  /// The core that `threads` last stay off; -1: none.
  int callerCore = -1;
  std::vector<std::thread> threads;
  std::mutex runMutex;

  std::mutex sleepMutex;
  std::condition_variable wake;
  std::atomic<uint64_t> jobNumber{0};
  std::atomic<bool> ending{false};
  const std::function<void(int)> *job = nullptr;

  alignas(64) std::atomic<int> arrived{0};
  alignas(64) std::atomic<uint64_t> phase{0};
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_WORKERPOOL_H
