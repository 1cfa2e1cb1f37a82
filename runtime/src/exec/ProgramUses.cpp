//===- ProgramUses.cpp - Who reads and writes a buffer --------------------===//

#include "exec/ProgramUses.h"

#include "plan/Accesses.h"

#include "absl/algorithm/container.h"

#include <algorithm>
#include <optional>

using namespace shardc::rt;

bool ProgramUses::isOwnValue(uint32_t buffer) const {
  const ProgramSpec &program = buffers->program();
  const ArenaLayout &layout = buffers->devices().layout;
  auto isResult = [&](const ResultSpec &result) {
    return result.buffer == buffer;
  };
  return uses[buffer].numWrites == 1 && !uses[buffer].isIncoming() &&
         program.buffers[buffer].stride == 0 &&
         layout.numMembers(layout.aliasSetOf(buffers->number, buffer)) == 1 &&
         absl::c_none_of(program.results, isResult);
}

ProgramUses::Reads ProgramUses::readsOf(uint32_t buffer, uint32_t from) const {
  const ProgramSpec &program = buffers->program();
  Reads reads;
  uint32_t loop = 0, loopEnd = 0;
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    const Command &command = program.commands[i];
    if (auto *of = std::get_if<LoopCommand>(&command.operation)) {
      loop = i;
      loopEnd = i + 1 + of->commands;
    }
    auto isRead = [&](const Operand &operand) {
      return operand.buffer == buffer && !operand.isWrite;
    };
    if (absl::c_none_of(operandsOf(program, command), isRead))
      continue;
    reads.commands.push_back(i);
    // Collectives read until their wait.
    uint32_t end = i;
    for (uint32_t j = i + 1; j < program.commands.size(); ++j)
      if (auto *wait = std::get_if<CollectiveWaitCommand>(
              &program.commands[j].operation);
          wait && wait->start == i)
        end = j;
    // All runs of a loop behind the write.
    if (i < loopEnd && from < loop)
      end = std::max(end, loopEnd - 1);
    reads.last = std::max(reads.last, end);
  }
  return reads;
}

/// The hull of the bytes that a buffer has on all devices, in all runs.
ByteRange ProgramUses::bytesOfAll(uint32_t buffer) const {
  const ArenaLayout &layout = buffers->devices().layout;
  const uint64_t size = uses[buffer].bytes.end - uses[buffer].bytes.begin;
  std::optional<ByteRange> all;
  for (int64_t device : layout.holdersOf(buffers->number, buffer)) {
    const uint64_t begin = layout.offsetOf(buffers->number, buffer, device);
    const ByteRange bytes{begin, begin + size};
    all = all ? hull(*all, bytes) : bytes;
  }
  return *all;
}

bool ProgramUses::isWritten(uint32_t buffer, uint32_t from, uint32_t to) const {
  const ProgramSpec &program = buffers->program();
  const ArenaLayout &layout = buffers->devices().layout;
  const uint32_t set = layout.aliasSetOf(buffers->number, buffer);
  const ByteRange bytes = bytesOfAll(buffer);
  for (uint32_t i = from; i <= to; ++i)
    for (const Operand &operand : operandsOf(program, program.commands[i])) {
      if (!operand.isWrite)
        continue;
      // Buffers of one alias set have the same distance on all devices.
      const bool isSameSet =
          layout.aliasSetOf(buffers->number, operand.buffer) == set;
      if (isSameSet ? overlap(uses[operand.buffer].bytes, uses[buffer].bytes)
                    : overlap(bytesOfAll(operand.buffer), bytes))
        return true;
    }
  return false;
}
