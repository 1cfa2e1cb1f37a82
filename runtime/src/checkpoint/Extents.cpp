//===- Extents.cpp - Parts of a file that one process writes --------------===//

#include "checkpoint/Extents.h"

#include <algorithm>

using namespace shardc::rt;

void Extents::add(uint64_t begin, uint64_t bytes) {
  if (bytes == 0)
    return;
  // Runs of a shard that holds whole rows touch.
  if (!extents.empty() && extents.back().begin + extents.back().bytes == begin)
    extents.back().bytes += bytes;
  else
    extents.push_back({begin, bytes, 0});
}

uint64_t Extents::pack(uint64_t place) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent &a, const Extent &b) { return a.begin < b.begin; });
  size_t joined = 0;
  for (size_t i = 1; i < extents.size(); ++i) {
    Extent &last = extents[joined];
    if (last.begin + last.bytes == extents[i].begin)
      last.bytes += extents[i].bytes;
    else
      extents[++joined] = extents[i];
  }
  extents.resize(std::min(extents.size(), joined + 1));
  extents.shrink_to_fit();
  for (Extent &extent : extents) {
    extent.place = place;
    place += extent.bytes;
  }
  return place;
}

bool Extents::areShort() const {
  // A call takes 2 to 5 us, a page that is mapped 1 us.
  constexpr uint64_t longEnough = uint64_t(1) << 15;
  uint64_t bytes = 0;
  for (const Extent &extent : extents)
    bytes += extent.bytes;
  return extents.size() > 1 && bytes < longEnough * extents.size();
}

uint64_t Extents::placeOf(uint64_t at, size_t &hint) const {
  auto isIn = [&](size_t number) {
    return number < extents.size() && at >= extents[number].begin &&
           at - extents[number].begin < extents[number].bytes;
  };
  if (!isIn(hint) && !isIn(++hint))
    hint = std::upper_bound(
               extents.begin(), extents.end(), at,
               [](uint64_t at, const Extent &e) { return at < e.begin; }) -
           extents.begin() - 1;
  return extents[hint].place + (at - extents[hint].begin);
}
