//===- Accesses.h - The bytes that commands read and write ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_PLAN_ACCESSES_H
#define SHARDC_RT_SRC_PLAN_ACCESSES_H

#include "plan/PlanSpec.h"

#include <algorithm>

namespace shardc::rt {

/// Bytes of the arena.
struct ByteRange {
  uint64_t begin, end;
};

inline bool overlap(ByteRange a, ByteRange b) {
  return a.begin < b.end && b.begin < a.end;
}

/// The bytes in both, if they overlap.
inline ByteRange intersection(ByteRange a, ByteRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

struct Access {
  ByteRange bytes;
  bool isWrite;
  int64_t buffer; ///< Of the program; negative: the host's side of a tensor.
};

/// "buffer 3", with the tensor whose place it takes, if any.
std::string describe(const PlanSpec &plan, const Access &access);

/// The bytes that `command` of `program` touches in `runs` runs of its loop,
/// together. Those of a collective include the padding up to the plan's
/// alignment, since neighbours are moved as one region.
std::vector<Access> accessesOf(const PlanSpec &plan, const ProgramSpec &program,
                               const Command &command, int64_t runs);

/// "launch", "gemm", "all_reduce", ...
absl::string_view nameOf(const Command &command);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_PLAN_ACCESSES_H
