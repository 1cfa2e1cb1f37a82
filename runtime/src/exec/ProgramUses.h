//===- ProgramUses.h - Who reads and writes a buffer ------------*- C++ -*-===//
//
// What has to be known of a program before a value can be read in another
// place than its own.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_PROGRAMUSES_H
#define SHARDC_RT_SRC_EXEC_PROGRAMUSES_H

#include "exec/ProgramBuffers.h"

#include <vector>

namespace shardc::rt {

/// The buffers of a program without a pipeline, by number. Immutable; borrows
/// what it is made of.
class ProgramUses {
public:
  explicit ProgramUses(const ProgramBuffers &buffers);

  /// Whether one command writes a buffer of one place for all runs of loops,
  /// and nobody else: neither another buffer nor a tensor has the same value,
  /// and it is no result.
  bool isOwnValue(uint32_t buffer) const;

  struct Reads {
    std::vector<uint32_t> commands; ///< In order, each once.
    /// The command behind which none reads it, in any run of a loop.
    uint32_t last = 0;
  };
  /// Of a value that command `from` writes.
  Reads readsOf(uint32_t buffer, uint32_t from) const;

  /// Whether a command of `from` to `to` may write a byte of the buffer on any
  /// device, be it by another name. One that takes another place is not known.
  bool isWritten(uint32_t buffer, uint32_t from, uint32_t to) const;

private:
  ByteRange bytesOfAll(uint32_t buffer) const;

  const ProgramBuffers *buffers;
  std::vector<BufferUse> uses;
  /// The commands that read a buffer, in order, each once.
  std::vector<std::vector<uint32_t>> readers;
  /// The buffers that a command writes.
  std::vector<std::vector<uint32_t>> written;
  /// Of a buffer, the hull of its bytes on all devices, in all runs.
  std::vector<ByteRange> hulls;
  /// Of a command, the last one of the loop around it, or itself; and the first
  /// one of that loop, or itself.
  std::vector<uint32_t> loopEnds, loopBegins;
  /// Of a command, the one behind which its operands are read no more: the wait
  /// of a collective, or itself.
  std::vector<uint32_t> ends;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_PROGRAMUSES_H
