//===- Accesses.h - The memory that commands read and write -----*- C++ -*-===//
//
// `operandsOf` is the only place that knows the buffers of each kind of
// command. The checks of a plan, the alias sets and the barriers of an executor
// all build on it. Pure functions; thread-safe.
//
//===----------------------------------------------------------------------===//

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

/// The least range that has both.
inline ByteRange hull(ByteRange a, ByteRange b) {
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// The bytes that a buffer covers in `runs` runs of its loop, together.
inline ByteRange bytesOf(const BufferSpec &buffer, int64_t runs) {
  uint64_t end = buffer.offset;
  if (buffer.bytes > 0)
    end += buffer.bytes + (runs - 1) * buffer.stride;
  return {buffer.offset, end};
}

/// A buffer that a command reads or writes.
struct Operand {
  uint32_t buffer;
  bool isWrite;
};

/// The buffers that `command` of `program` reads and writes. A buffer that it
/// updates is there twice. A collective has for each tensor its operand, then
/// its result.
std::vector<Operand> operandsOf(const ProgramSpec &program,
                                const Command &command);
/// The buffers that a part of a launch reads and writes.
std::vector<Operand> operandsOf(const LaunchCommand &launch,
                                const LaunchPart &part);

/// A range of the arena that a command reads or writes.
struct Access {
  ByteRange bytes;
  bool isWrite;
  int64_t buffer; ///< Of the program; negative: the host's side of a tensor.
};

/// "buffer 3", with the tensor whose place it takes, if any.
std::string describe(const PlanSpec &plan, const Access &access);

/// The bytes that `command` of `program` accesses in `runs` runs of its loop,
/// together: those of its operands, in the same order, and of the input that an
/// upload writes. The ranges of a collective include the padding up to the
/// plan's alignment, since neighbours are moved as one region.
std::vector<Access> accessesOf(const PlanSpec &plan, const ProgramSpec &program,
                               const Command &command, int64_t runs);

/// Whether the command starts a collective, a send or a receive.
inline bool isCommunication(const Command &command) {
  return std::holds_alternative<CollectiveStartCommand>(command.operation) ||
         std::holds_alternative<SendCommand>(command.operation) ||
         std::holds_alternative<ReceiveCommand>(command.operation);
}

/// "launch", "gemm", "all_reduce", ...
absl::string_view nameOf(const Command &command);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_PLAN_ACCESSES_H
