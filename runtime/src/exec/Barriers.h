//===- Barriers.h - Where workers wait for one another ----------*- C++ -*-===//
//
// All workers go through the steps of a program, each with its own share of
// every step. A barrier is needed before a step in which a worker accesses
// bytes that another worker has accessed since the last barrier, unless both
// only read them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_BARRIERS_H
#define SHARDC_RT_SRC_EXEC_BARRIERS_H

#include <cstdint>
#include <map>
#include <vector>

namespace shardc::rt {

/// The tasks [begin, end) of `worker` out of `tasks`: consecutive tasks, in the
/// order of workers; the first workers take the remainder.
struct TaskRange {
  int64_t begin, end;
  TaskRange(int64_t tasks, int worker, int workers) {
    // Without a division, which small steps would notice.
    if (tasks == 1) {
      begin = worker > 0;
      end = 1;
      return;
    }
    // The last tasks are more, for the last of all is often a small one.
    begin = tasks * worker / workers;
    end = tasks * (worker + 1) / workers;
  }
};

/// Places barriers while it follows the workers through the steps of a program,
/// in order. Not thread-safe.
class Barriers {
public:
  explicit Barriers(int workers) : workers(workers) {}

  /// A worker accesses these bytes in the next step.
  void access(int worker, const void *bytes, uint64_t count, bool isWrite);
  /// Whether the next step needs a barrier before it, with the accesses so far.
  bool isNeeded() const;
  /// Forgets the accesses of the next step.
  void dropStep() { step.clear(), areTooMany = false; }
  /// Ends the step and returns whether it needs a barrier before it.
  bool endStep();

  /// The step has a barrier before it in any case and may access any bytes.
  void accessAll() { sinceBarrier.clear(), mustWait = true; }

private:
  struct Access {
    uintptr_t begin, end;
    int worker;
    bool isWrite;
  };
  static constexpr int nobody = -1, several = -2;
  /// Bytes up to `end`, with the worker that has accessed them, and the one
  /// that has written them.
  struct Segment {
    uintptr_t end;
    int user = nobody, writer = nobody;
  };

  /// Whether another worker has accessed these bytes since the last barrier,
  /// and one of the two writes them.
  bool meetsOther(const Access &access) const;
  /// Makes `place` the begin of a segment, or of bytes without one.
  void splitAt(uintptr_t place);
  void note(const Access &access);

  const int workers;
  /// Of a step. With more there are barriers before and behind it: to compare
  /// them would take longer.
  static constexpr uint64_t mostAccesses = 4096;

  std::vector<Access> step;
  bool areTooMany = false;
  /// By their begins; they are disjoint.
  std::map<uintptr_t, Segment> sinceBarrier;
  bool mustWait = false;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_BARRIERS_H
