//===- WorkerPool.h - Threads that share work -------------------*- C++ -*-===//
//
// The caller is worker 0. Workers that find nothing to do wait, first spinning
// (waking a thread takes as long as a small step), then asleep, so that others
// can have their cores. Work begins and ends without a worker that has not
// taken a part of it: one whose core has other work to do.
//
// If there are enough cores, the others stay off the core of the caller at the
// start of a job. While the caller sleeps, one that is late because its own
// core has other work may use that of the caller to end its chunk; and a caller
// that is late may use that of a thread that is about to sleep, with its own
// affinity restored before `run` returns. No more workers take chunks than the
// process had CPUs when the pool was made, but for divided work.
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
#include <optional>
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
  /// The step that a share of the work is in, from any thread; none where it is
  /// at the end of its section.
  std::optional<uint32_t> stepOf(int share) const;

  /// Runs `job(worker)` on every worker and returns when all have finished.
  void run(const std::function<void(int)> &job);

  /// A barrier: waits for all workers. Only within a job.
  void barrier();

private:
  /// Where a share is, and which chunks of its step are left, in one word: a
  /// worker that takes a chunk by it takes what it says, whatever happened
  /// since the worker read it before.
  struct State {
    State() = default;
    explicit State(uint64_t word);
    uint64_t word() const;

    bool isDivided = false; ///< Only the share's worker takes chunks.
    uint32_t step = 0;
    int unfinished = 0;    ///< Chunks of the step that have not ended.
    int next = 0, end = 0; ///< The chunks [next, end) that nobody has taken.
  };
  struct alignas(64) Share {
    std::atomic<uint64_t> state{0};
  };

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
  /// Whether a worker is on the core of the caller, which sleeps.
  bool isGuest(int worker) const {
    return worker != 0 && guest.load(std::memory_order_relaxed) == worker;
  }
  /// Sleeps until the caller is awake, or `done` is true.
  template <typename Done>
  void waitAsGuest(int worker, Done done);
  /// Runs a chunk, and all that follows it as long as this worker has ended the
  /// step or the section. `isLast`: all other chunks of the step have ended.
  void runAll(int share, uint32_t step, int chunk, bool isLast, int worker);
  /// The same within a section; returns whether it has ended.
  bool runFrom(int share, uint32_t step, int chunk, bool isLast, int worker);
  /// Ends a chunk of a share, and takes the next one if it is the worker's own
  /// share: -1 if there is none. `isLast`: as of `runAll`; then the step has
  /// ended if there is no next one.
  int endChunk(int share, int worker, bool &isLast);
  /// Begins a step of a share, of which this worker takes a chunk, and leaves
  /// the others to be taken.
  int beginStep(int share, SharedStep step, int worker);
  /// Begins one of which this worker takes nothing.
  void offerStep(int share, SharedStep step);
  /// A step that a worker begins with, without chunks if there is none.
  struct Begun {
    int share = 0;
    SharedStep step;
  };
  /// Opens the next section, or ends the work. Returns the first step of
  /// `worker`'s own share, or of the only one if that is one chunk; chunk 0 is
  /// taken for it.
  Begun open(int worker);
  void wakeAll();
  /// Keeps the others off the core that the caller is on, as far as the system
  /// lets them.
  void leaveCoreToCaller();
  /// Lets a thread that waits for a core run on that of the caller, which is
  /// about to sleep.
  void lendCore();

  /// Lets the caller, if it waits for a core, run on that of this thread, which
  /// is about to sleep.
  void yieldCoreToCaller();
  /// Gives the caller its affinity back.
  void endRunOfCaller();
  /// Wakes those that only divided work needs.
  void wakeSpare();

  const int workers;
  /// CPUs that could run threads of this process at the same time when the pool
  /// was made; an affinity or quota that changes later is not seen. Other
  /// workers than the first so many are spare: where who takes a chunk does not
  /// matter, they would only take CPUs from those that have one.
  const int usable;
  /// The affinity of the thread that made the pool, whose cores the workers
  /// use.
  cpu_set_t cores;
  /// The core that `threads` last stay off; -1: one of them may use it.
  int callerCore = -1;
  /// The worker that uses the core of the caller, which sleeps meanwhile; 0:
  /// none. It begins nothing there: with both on one core the other program
  /// would have one alone.
  std::atomic<int> guest{0};
  std::vector<std::thread> threads;
  std::mutex runMutex;

  std::vector<Share> shares; ///< By worker.
  /// Who has a chunk may use these: the work does not end meanwhile.
  SharedWork *current = nullptr;
  bool isDivided = false;
  std::vector<SharedStep> firstSteps; ///< Of a section, while it is opened.
  /// Whether each worker sleeps, or is about to.
  std::vector<std::atomic<bool>> asleep;
  alignas(64) std::atomic<int> unfinishedShares{0};
  alignas(64) std::atomic<bool> finished{true};
  std::atomic<bool> ending{false};

  /// Changes to wake those who sleep.
  alignas(64) std::atomic<uint32_t> wakeups{0};
  std::atomic<int> sleepers{0};
  /// The same for the spare ones, and whether they have to work: a divided run
  /// with more workers than CPUs.
  std::atomic<uint32_t> dividedRuns{0};
  std::atomic<bool> isDividedRun{false};

  /// The thread that is in `run`. While it has no core, another thread may
  /// change its affinity; it gets that of before back at the end of `run`.
  struct Caller {
    enum class Place : uint8_t { Away, Running, Moving, Moved };
    std::atomic<Place> place{Place::Away};
    pthread_t thread = {};
    cpu_set_t cores; ///< While it is `Moved`: its own affinity.
  };
  alignas(64) Caller caller;

  alignas(64) std::atomic<int> arrived{0};
  alignas(64) std::atomic<uint64_t> phase{0};
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_WORKERPOOL_H
