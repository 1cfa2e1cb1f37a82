//===- StreamEvents.h - Waits between streams -------------------*- C++ -*-===//
//
// Streams of a GPU run at the same time. The memory plan gives the same bytes
// to buffers whose lifetimes, in the order of the commands, do not meet: so a
// command waits for commands of other streams that read what it writes or wrote
// what it reads, be it the same tensor or one that was there before. Where
// another event and the order of a stream say so already there is none.
// Pure functions: thread-safe.
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

/// What the order of a command depends on.
struct StreamCommand {
  unsigned stream = 0;
  /// In all runs of the loop it is in.
  llvm::SmallVector<ByteRange> reads, writes;
  /// Of a loop, whose body is the next `commands` commands.
  int64_t runs = 1;
  uint32_t commands = 0;
};

/// For each command the commands of other streams that it waits for, ascending.
/// Meant is their latest issue: a number that is greater than the command's own
/// is that of the run before of the loop that both are in.
std::vector<std::vector<uint32_t>>
findStreamEvents(llvm::ArrayRef<StreamCommand> commands);

} // namespace shardc

#endif // SHARDC_TARGET_PLAN_STREAMEVENTS_H
