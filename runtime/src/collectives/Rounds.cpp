//===- Rounds.cpp - The parts of a collective between processes -----------===//

#include "collectives/Rounds.h"

#include "collectives/Reduce.h"

#include "absl/container/inlined_vector.h"

#include <cstring>

using namespace shardc::rt;

/// Bytes that a task copies.
static constexpr int64_t copyBlock = 64 << 10;

absl::Status MessageRound::runTask(int64_t /*task*/) {
  if (part == Open)
    return exchange->open();
  if (part != Finish)
    if (absl::Status status = exchange->start(); !status.ok())
      return status;
  return part == Start ? absl::OkStatus() : exchange->finish();
}

WorkRound::WorkRound(std::shared_ptr<Exchange> exchange, Reduction reduction,
                     std::vector<Work> works)
    : exchange(std::move(exchange)), reduction(reduction),
      works(std::move(works)) {
  for (size_t i = 0; i < this->works.size(); ++i) {
    const Work &work = this->works[i];
    int64_t block = work.sources.size() > 1 ? maxReduceBlock
                                            : copyBlock / byteSize(work.dtype);
    int64_t elements = work.box.numElements();
    for (int64_t begin = 0; begin < elements; begin += block)
      tasks.push_back({i, begin, std::min(elements, begin + block)});
  }
}

absl::Status WorkRound::runTask(int64_t number) {
  const Task &task = tasks[number];
  const Work &work = works[task.work];
  int64_t width = byteSize(work.dtype);
  absl::InlinedVector<ReduceOperand, 8> sources(work.sources.size());
  for (size_t i = 0; i < work.leaves.size(); ++i)
    sources[i].leaves = work.leaves[i];
  for (int64_t element = task.begin; element < task.end;) {
    int64_t outer = element / work.box.run, within = element % work.box.run;
    int64_t count = std::min(work.box.run - within, task.end - element);
    std::array<int64_t, 3> index;
    for (int loop = 3; loop-- > 0;) {
      index[loop] = outer % work.box.extents[loop];
      outer /= work.box.extents[loop];
    }
    auto at = [&](const Place &place) {
      return exchange->at(place) + (place.elementOf(index) + within) * width;
    };
    char *first = at(work.results[0]);
    if (sources.size() > 1) {
      for (size_t i = 0; i < sources.size(); ++i)
        sources[i].data = at(work.sources[i]);
      reduceBlock(work.dtype, reduction, sources, 0, count, first);
    } else if (char *source = at(work.sources[0]); source != first) {
      std::memcpy(first, source, count * width);
    }
    for (size_t i = 1; i < work.results.size(); ++i)
      std::memcpy(at(work.results[i]), first, count * width);
    element += count;
  }
  return absl::OkStatus();
}
