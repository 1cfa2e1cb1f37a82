//===- SharedWork.h - Work that workers take as they go ---------*- C++ -*-===//
//
// Work is a sequence of sections. A section has a share for each worker, a
// share is a sequence of steps, and a step is cut into chunks, which may run at
// the same time. The next step of a share begins when all chunks of its step
// before have ended, the next section when all shares have. What a chunk
// computes does not depend on who runs it.
//
// A worker begins with the chunks of its own share and then takes those of
// others from their far end. So neighbouring chunks stay on one worker while
// nobody is late, and nobody waits for a worker that has no chunk.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_SHAREDWORK_H
#define SHARDC_RT_SRC_EXEC_SHAREDWORK_H

#include <atomic>
#include <cstdint>

namespace shardc::rt {

/// Where a share is, and which of its chunks are left. A cache line that passes
/// from worker to worker has all of it.
struct alignas(64) Share {
  /// The chunks of the step that nobody has taken: [next, end) in one word,
  /// with a number that no other step has, so that nobody takes a chunk of a
  /// step by what it read before. The pool's, as is the next one.
  std::atomic<uint64_t> untaken{0};
  std::atomic<int> unfinished{0}; ///< Chunks of the step that have not ended.

  /// The rest is the work's. The step, which other threads may look at.
  std::atomic<uint32_t> step{0};
  uint32_t endStep = 0; ///< Of the section.
  int chunks = 0;       ///< Of the step; 0: the share is at its end.
  int64_t run = 0;      ///< Of the loop around it.
  int64_t firstTask = 0, endTask = 0;
  int64_t tasksPerChunk = 1;
};
static_assert(sizeof(Share) == 64);

/// The calls for one share, and those of `openSection`, follow one another,
/// though on different threads; only `runChunk` is called by several at a time.
class SharedWork {
public:
  /// The most chunks of a step in one share.
  static constexpr int mostChunks = 4095;

  virtual ~SharedWork() = default;

  /// Goes on to the next section, at first to the first one. False: there are
  /// no more.
  virtual bool openSection() = 0;
  /// Goes to the first step of a share in the section, and sets its `chunks`.
  virtual void begin(int number, Share &share) = 0;
  /// The same for its next step.
  virtual void advance(int number, Share &share) = 0;
  /// Runs a chunk of share `number` on a worker.
  virtual void runChunk(int worker, int number, const Share &share,
                        int chunk) = 0;

  /// Whether every worker takes chunks of its own share alone.
  virtual bool isDivided() const { return false; }
  /// Worker 0, which is the caller's thread, calls it again and again while it
  /// waits. True: it has to go on so, and must not sleep.
  virtual bool whileCallerWaits() { return false; }
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_SHAREDWORK_H
