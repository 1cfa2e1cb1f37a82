//===- ProgramUses.cpp - Who reads and writes a buffer --------------------===//

#include "exec/ProgramUses.h"

#include "plan/Accesses.h"

#include "absl/algorithm/container.h"

#include <algorithm>
#include <optional>

using namespace shardc::rt;

ProgramUses::ProgramUses(const ProgramBuffers &own)
    : buffers(&own), uses(usesOf(own.program())) {
  const ProgramSpec &program = buffers->program();
  const uint32_t numCommands = program.commands.size();
  readers.resize(program.buffers.size());
  written.resize(numCommands);
  for (uint32_t i = 0; i < numCommands; ++i) {
    ends.push_back(i);
    loopBegins.push_back(i);
    loopEnds.push_back(i);
  }
  for (uint32_t i = 0; i < numCommands; ++i) {
    const Command &command = program.commands[i];
    if (auto *wait = std::get_if<CollectiveWaitCommand>(&command.operation))
      ends[wait->start] = i;
    if (auto *loop = std::get_if<LoopCommand>(&command.operation))
      for (uint32_t j = i + 1; j <= i + loop->commands; ++j) {
        loopBegins[j] = i;
        loopEnds[j] = i + loop->commands;
      }
    for (const Operand &operand : operandsOf(program, command))
      if (operand.isWrite)
        written[i].push_back(operand.buffer);
      else if (std::vector<uint32_t> &of = readers[operand.buffer];
               of.empty() || of.back() != i)
        of.push_back(i);
  }
  for (uint32_t buffer = 0; buffer < program.buffers.size(); ++buffer)
    hulls.push_back(bytesOfAll(buffer));
}

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
  Reads reads;
  reads.commands = readers[buffer];
  for (uint32_t command : reads.commands) {
    reads.last = std::max(reads.last, ends[command]);
    // All runs of a loop behind the write.
    if (from < loopBegins[command])
      reads.last = std::max(reads.last, loopEnds[command]);
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
  return all.value_or(ByteRange{0, 0});
}

bool ProgramUses::isWritten(uint32_t buffer, uint32_t from, uint32_t to) const {
  const ArenaLayout &layout = buffers->devices().layout;
  const uint32_t set = layout.aliasSetOf(buffers->number, buffer);
  for (uint32_t i = from; i <= to; ++i)
    for (uint32_t other : written[i]) {
      // Buffers of one alias set have the same distance on all devices.
      const bool isSameSet = layout.aliasSetOf(buffers->number, other) == set;
      if (isSameSet ? overlap(uses[other].bytes, uses[buffer].bytes)
                    : overlap(hulls[other], hulls[buffer]))
        return true;
    }
  return false;
}
