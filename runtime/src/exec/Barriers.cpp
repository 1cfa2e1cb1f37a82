//===- Barriers.cpp - Where workers wait for one another ------------------===//

#include "exec/Barriers.h"

#include "absl/algorithm/container.h"

#include <algorithm>
#include <iterator>

using namespace shardc::rt;

void Barriers::access(int worker, const void *bytes, uint64_t count,
                      bool isWrite) {
  if (count == 0 || workers == 1 || areTooMany)
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
  if (step.size() == mostAccesses) {
    dropStep();
    areTooMany = true;
    return;
  }
  step.push_back({begin, begin + count, worker, isWrite});
}

bool Barriers::isNeeded() const {
  if (workers == 1)
    return false;
  return mustWait || areTooMany ||
         absl::c_any_of(
             step, [&](const Access &access) { return meetsOther(access); });
}

bool Barriers::meetsOther(const Access &access) const {
  auto segment = sinceBarrier.upper_bound(access.begin);
  if (segment != sinceBarrier.begin() &&
      std::prev(segment)->second.end > access.begin)
    --segment;
  auto isOther = [&](int worker) {
    return worker != nobody && worker != access.worker;
  };
  for (; segment != sinceBarrier.end() && segment->first < access.end;
       ++segment)
    if (isOther(segment->second.writer) ||
        (access.isWrite && isOther(segment->second.user)))
      return true;
  return false;
}

void Barriers::splitAt(uintptr_t place) {
  auto segment = sinceBarrier.upper_bound(place);
  if (segment == sinceBarrier.begin())
    return;
  --segment;
  Segment behind = segment->second;
  if (segment->first == place || behind.end <= place)
    return;
  segment->second.end = place;
  sinceBarrier.emplace(place, behind);
}

void Barriers::note(const Access &access) {
  splitAt(access.begin);
  splitAt(access.end);
  auto add = [&](int &to, int worker) {
    to = to == nobody || to == worker ? worker : several;
  };
  auto segment = sinceBarrier.lower_bound(access.begin);
  for (uintptr_t place = access.begin; place < access.end; ++segment) {
    if (segment == sinceBarrier.end() || segment->first > place) {
      uintptr_t end = segment == sinceBarrier.end()
                          ? access.end
                          : std::min(access.end, segment->first);
      segment = sinceBarrier.emplace(place, Segment{end}).first;
    }
    add(segment->second.user, access.worker);
    if (access.isWrite)
      add(segment->second.writer, access.worker);
    place = segment->second.end;
  }
}

bool Barriers::endStep() {
  bool needed = isNeeded();
  if (needed)
    sinceBarrier.clear();
  mustWait = areTooMany || (mustWait && !needed);
  absl::c_for_each(step, [&](const Access &access) { note(access); });
  dropStep();
  return needed;
}
