//===- MeetingPoints.cpp - Where workers wait for one another -------------===//

#include "exec/MeetingPoints.h"

#include <algorithm>

using namespace shardc::rt;

/// With more touches than this since the last meeting they meet anyway: one
/// meeting costs little beside so many steps, and comparing takes time.
static constexpr size_t mostTouches = 2048;

void MeetingPoints::touches(int worker, const void *bytes, uint64_t count,
                            bool isWrite) {
  if (count == 0)
    return;
  uintptr_t begin = reinterpret_cast<uintptr_t>(bytes);
  // Calls for neighbouring devices mostly touch neighbouring bytes.
  if (!step.empty()) {
    Touch &last = step.back();
    if (last.worker == worker && last.isWrite == isWrite &&
        last.begin <= begin && begin <= last.end) {
      last.end = std::max(last.end, begin + count);
      return;
    }
  }
  step.push_back({begin, begin + count, worker, isWrite});
}

bool MeetingPoints::endStep() {
  auto conflicts = [&] {
    for (const Touch &now : step)
      for (const Touch &before : sinceMeeting)
        if (now.worker != before.worker && (now.isWrite || before.isWrite) &&
            now.begin < before.end && before.begin < now.end)
          return true;
    return false;
  };
  bool meet = workers > 1 &&
              (mustMeet || step.size() + sinceMeeting.size() > mostTouches ||
               conflicts());
  if (meet)
    met();
  sinceMeeting.insert(sinceMeeting.end(), step.begin(), step.end());
  step.clear();
  return meet;
}
