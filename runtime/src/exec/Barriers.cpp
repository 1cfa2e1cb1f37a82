//===- Barriers.cpp - Where workers wait for one another ------------------===//

#include "exec/Barriers.h"

#include <algorithm>

using namespace shardc::rt;

/// The most accesses since the last barrier; then there is one in any case. It
/// costs little beside so many steps, and comparing accesses takes time.
static constexpr size_t mostAccesses = 2048;

void Barriers::access(int worker, const void *bytes, uint64_t count,
                      bool isWrite) {
  if (count == 0)
    return;
  uintptr_t begin = reinterpret_cast<uintptr_t>(bytes);
  // Calls for neighbouring devices mostly access neighbouring bytes.
  if (!step.empty()) {
    Access &last = step.back();
    if (last.worker == worker && last.isWrite == isWrite &&
        last.begin <= begin && begin <= last.end) {
      last.end = std::max(last.end, begin + count);
      return;
    }
  }
  step.push_back({begin, begin + count, worker, isWrite});
}

bool Barriers::isNeeded() const {
  if (workers == 1)
    return false;
  if (mustWait || step.size() + sinceBarrier.size() > mostAccesses)
    return true;
  for (const Access &now : step)
    for (const Access &before : sinceBarrier)
      if (now.worker != before.worker && (now.isWrite || before.isWrite) &&
          now.begin < before.end && before.begin < now.end)
        return true;
  return false;
}

bool Barriers::endStep() {
  bool needed = isNeeded();
  if (needed) {
    sinceBarrier.clear();
    mustWait = false;
  }
  sinceBarrier.insert(sinceBarrier.end(), step.begin(), step.end());
  step.clear();
  return needed;
}
