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

#include <cstdint>

namespace shardc::rt {

/// A step of a share.
struct SharedStep {
  uint32_t number = 0; ///< The work's own, less than `SharedWork::mostSteps`.
  int chunks = 0;      ///< 0: there is none; the share is at its end.
};

/// `firstStep` and `stepAfter` of one share, and calls of `openSection`, follow
/// one another, though on different threads; only `runChunk` is called by
/// several at a time.
class SharedWork {
public:
  /// The most chunks of a step in one share.
  static constexpr int mostChunks = (1 << 12) - 1;
  static constexpr uint32_t mostSteps = uint32_t(1) << 27;

  virtual ~SharedWork() = default;

  /// Goes on to the next section, at first to the first one. False: there are
  /// no more.
  virtual bool openSection() = 0;
  /// The first step of a share in the section.
  virtual SharedStep firstStep(int share) = 0;
  /// The one that follows step `number` of the share in the section.
  virtual SharedStep stepAfter(int share, uint32_t number) = 0;
  /// Runs a chunk of step `number` of a share on a worker.
  virtual void runChunk(int worker, int share, uint32_t number, int chunk) = 0;

  /// Whether every worker takes chunks of its own share alone.
  virtual bool isDivided() const { return false; }
  /// Worker 0, which is the caller's thread, calls it again and again while it
  /// waits. True: it has to go on so, and must not sleep.
  virtual bool whileCallerWaits() { return false; }
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_SHAREDWORK_H
