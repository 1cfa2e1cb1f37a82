//===- WorkerPool.h - Threads that share work -------------------*- C++ -*-===//
//
// The caller is worker 0. Workers that find nothing to do wait, first spinning
// (waking a thread takes as long as a small step), then asleep, so that others
// can have their cores. Work begins and ends without a worker that has not
// taken a part of it: one whose core has other work to do.
//
// If there are enough cores, the others stay off the core of the caller at the
// start of a job; the caller's affinity is not changed.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_WORKERPOOL_H
#define SHARDC_RT_SRC_EXEC_WORKERPOOL_H

#include "exec/SharedWork.h"

#include "absl/functional/function_ref.h"

#include <atomic>
#include <cstdint>
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

  /// Runs all sections of `work`. One call at a time: a second caller waits.
  void run(SharedWork &work);

  /// Runs `task(i)` for every i in [0, tasks), on any workers, of which each
  /// takes so many tasks at once.
  void forEach(int64_t tasks, int64_t atOnce,
               absl::FunctionRef<void(int64_t)> task);
  /// Where the shares of the work are; from any thread.
  const std::vector<Share> &progress() const { return shares; }

  /// Runs `job(worker)` on every worker and returns when all have finished.
  void run(const std::function<void(int)> &job);

  /// A barrier: waits for all workers. Only within a job.
  void barrier();

private:
  void work(int worker);
  /// Runs a chunk of a share and what follows it, if there is one to take.
  bool takeFrom(int share, int worker);
  /// The same, of any other worker's share.
  bool takeAny(int worker);
  /// Whether there may be something to take.
  bool seesWork(int worker) const;
  /// Takes something, or waits until it did or `done` is true.
  template <typename Done>
  void takeOrWait(int worker, Done done);
  /// Runs a chunk, and all that follows it as long as this worker has ended the
  /// step or the section.
  void runAll(int share, int chunk, int worker);
  /// The same within a section; returns whether it has ended.
  bool runFrom(int share, int chunk, int worker);
  /// Lets workers take the chunks [next, end) of a share's step.
  void publish(int share, int next, int end);
  /// Opens the next section, or ends the work. True: the first chunk of
  /// `worker`'s own share is taken for it.
  bool open(int worker);
  void wakeAll();
  /// Keeps the others off the core that the caller is on, as far as the system
  /// lets them.
  void leaveCoreToCaller();

  const int workers;
  /// The affinity of the thread that made the pool, whose cores the workers
  /// use.
  cpu_set_t cores;
  /// The core that `threads` last stay off; -1: none.
  int callerCore = -1;
  std::vector<std::thread> threads;
  std::mutex runMutex;

  std::vector<Share> shares; ///< By worker.
  /// Who has a chunk may use it: the work does not end meanwhile.
  SharedWork *current = nullptr;
  std::atomic<bool> isDivided{false};
  alignas(64) std::atomic<int> unfinishedShares{0};
  alignas(64) std::atomic<bool> finished{true};
  std::atomic<bool> ending{false};

  /// Changes to wake those who sleep.
  alignas(64) std::atomic<uint32_t> wakeups{0};
  std::atomic<int> sleepers{0};

  alignas(64) std::atomic<int> arrived{0};
  alignas(64) std::atomic<uint64_t> phase{0};
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_WORKERPOOL_H
