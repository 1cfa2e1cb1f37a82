//===- MeetingPoints.h - Where workers wait for one another -----*- C++ -*-===//
//
// Workers go through a program's steps side by side, each with its own share of
// every step. They have to meet before a step in which one of them touches
// bytes that another has touched since they last met, unless both only read
// them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_MEETINGPOINTS_H
#define SHARDC_RT_SRC_EXEC_MEETINGPOINTS_H

#include <cstdint>
#include <vector>

namespace shardc::rt {

/// The tasks of `worker` out of `tasks`, [begin, end): neighbours, in order,
/// and what is left over with the first workers.
struct TaskRange {
  int64_t begin, end;
  TaskRange(int64_t tasks, int worker, int workers)
      : begin((tasks * worker + workers - 1) / workers),
        end((tasks * (worker + 1) + workers - 1) / workers) {}
};

/// Follows the workers through the steps of a program, in order. Not
/// thread-safe.
class MeetingPoints {
public:
  explicit MeetingPoints(int workers) : workers(workers) {}

  /// Bytes that a worker touches in the next step.
  void touches(int worker, const void *bytes, uint64_t count, bool isWrite);
  /// Ends the step: whether workers have to meet before it.
  bool endStep();

  /// A step before which they meet in any case, and which may touch anything.
  void touchesAll() { sinceMeeting.clear(), mustMeet = true; }
  /// They have met by other means.
  void met() { sinceMeeting.clear(), mustMeet = false; }

private:
  struct Touch {
    uintptr_t begin, end;
    int worker;
    bool isWrite;
  };

  const int workers;
  std::vector<Touch> step, sinceMeeting;
  bool mustMeet = false;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_MEETINGPOINTS_H
