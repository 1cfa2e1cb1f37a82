//===- StreamEvents.h - Waits between streams -------------------*- C++ -*-===//
//
// Streams of a GPU run at the same time. The memory plan gives the same bytes
// to buffers whose lifetimes, in the order of the commands, do not overlap. A
// command therefore depends on commands of other streams that read bytes that
// it writes, or wrote bytes that it reads, for the same tensor or an earlier
// one. A dependence that another event and the order of a stream imply gets no
// event. Pure functions: thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TARGET_PLAN_STREAMEVENTS_H
#define SHARDC_TARGET_PLAN_STREAMEVENTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace shardc {

/// Bytes of the arena.
struct ByteRange {
  int64_t begin, end;
};

/// The inputs of a command's order.
struct StreamCommand {
  unsigned stream = 0;
  /// In all runs of the loop it is in.
  llvm::SmallVector<ByteRange> reads, writes;
  /// Of a loop, whose body is the next `commands` commands.
  int64_t runs = 1;
  uint32_t commands = 0;
};

/// For each command the commands of other streams that it depends on, in their
/// latest issue, ascending. A number greater than the command's own means the
/// previous run of the loop that both are in.
std::vector<std::vector<uint32_t>>
findStreamEvents(llvm::ArrayRef<StreamCommand> commands);

} // namespace shardc

#endif // SHARDC_TARGET_PLAN_STREAMEVENTS_H
