//===- Parts.h - Work that threads of its own divide ------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_PARTS_H
#define SHARDC_RT_SRC_BASE_PARTS_H

#include "absl/functional/function_ref.h"

#include <cstdint>

namespace shardc::rt {

/// Threads for a large copy: no more than there are CPUs for them, nor than the
/// memory of a host is fast enough for.
int copyThreads();

/// Runs `run(part, begin, end)` for each of at most `threads` parts of
/// [0, count), one behind the other from part 0 on. This thread runs one of
/// them, new threads the others. There is one part only if two would have less
/// than `least` each.
void forEachPart(
    int64_t count, int64_t least, int threads,
    absl::FunctionRef<void(int64_t part, int64_t begin, int64_t end)> run);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_PARTS_H
