//===- AliasSets.cpp - Buffers that name the same memory ------------------===//

#include "exec/AliasSets.h"

#include <algorithm>
#include <numeric>

using namespace shardc::rt;

bool shardc::rt::isInPlace(const ProgramSpec &program,
                           const CollectiveItem &item) {
  const BufferSpec &in = program.buffers[item.in];
  const BufferSpec &out = program.buffers[item.out];
  return in.offset == out.offset && in.bytes == out.bytes &&
         in.stride == out.stride;
}

std::vector<BufferUse> shardc::rt::usesOf(const ProgramSpec &program) {
  std::vector<BufferUse> uses(program.buffers.size());
  // The loop that a command is in; outside of loops, itself.
  int64_t first = 0, last = -1, runs = 1;
  for (int64_t i = 0; i < static_cast<int64_t>(program.commands.size()); ++i) {
    bool isInLoop = i <= last;
    if (!isInLoop)
      first = last = i, runs = 1;
    const Command &command = program.commands[i];
    if (auto *loop = std::get_if<LoopCommand>(&command.operation)) {
      last = i + loop->commands;
      runs = loop->runs;
    }
    for (const Operand &operand : operandsOf(program, command)) {
      BufferUse &use = uses[operand.buffer];
      ByteRange bytes = bytesOf(program.buffers[operand.buffer], runs);
      use.bytes = {bytes.begin, std::max(use.bytes.end, bytes.end)};
      if (operand.isWrite) {
        if (use.numWrites++ == 0)
          use.firstWrite = i, use.writtenFrom = first;
      } else {
        if (use.numReads++ == 0)
          use.firstRead = i;
        use.readUntil = last;
      }
    }
  }
  for (const ResultSpec &result : program.results) {
    BufferUse &use = uses[result.buffer];
    const BufferSpec &spec = program.buffers[result.buffer];
    int64_t end = program.commands.size();
    if (use.numReads++ == 0)
      use.firstRead = end;
    use.readUntil = end;
    if (spec.bytes > 0 && use.numReads + use.numWrites == 1)
      use.bytes = {spec.offset, spec.offset + spec.bytes};
  }
  return uses;
}

uint32_t AliasSets::find(uint32_t node) {
  while (parent[node] != node)
    node = parent[node] = parent[parent[node]];
  return node;
}

void AliasSets::link(uint32_t a, uint32_t b) {
  a = find(a), b = find(b);
  parent[std::max(a, b)] = std::min(a, b);
}

/// Parameters, copies and states stay from run to run, in all programs.
void AliasSets::linkTensors(const PlanSpec &plan) {
  for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    Role role = plan.tensors[tensor].role;
    if (role == Role::Input || role == Role::Label)
      continue;
    for (size_t program = 0; program < uses.size(); ++program)
      for (size_t i = 0; i < uses[program].size(); ++i)
        if (uses[program][i].isUsed() &&
            overlap(uses[program][i].bytes, nodeBytes[tensor]))
          link(tensor, firstNode[program] + i);
  }
}

/// A buffer that is read before it is written under its own name has been
/// written under another one: that of a tensor, or of a buffer written before
/// in the program.
void AliasSets::linkIncoming(const PlanSpec &plan, size_t program) {
  const std::vector<BufferUse> &ofProgram = uses[program];
  for (size_t i = 0; i < ofProgram.size(); ++i) {
    const BufferUse &use = ofProgram[i];
    if (!use.isIncoming())
      continue;
    bool isKnown = false;
    for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor)
      if (overlap(nodeBytes[tensor], use.bytes)) {
        link(tensor, firstNode[program] + i);
        isKnown = true;
      }
    for (size_t j = 0; j < ofProgram.size(); ++j)
      if (j != i && ofProgram[j].numWrites > 0 &&
          ofProgram[j].writtenFrom < use.readUntil &&
          overlap(ofProgram[j].bytes, use.bytes)) {
        link(firstNode[program] + j, firstNode[program] + i);
        isKnown = true;
      }
    // Then the last value there, of any program.
    for (size_t node = 0; !isKnown && node < nodeBytes.size(); ++node)
      if (overlap(nodeBytes[node], use.bytes))
        link(node, firstNode[program] + i);
  }
}

void AliasSets::linkInPlace(const ProgramSpec &spec, size_t program) {
  for (const Command &command : spec.commands) {
    // An in-place all-reduce reads all copies of a block before it writes the
    // results of that block.
    auto *start = std::get_if<CollectiveStartCommand>(&command.operation);
    auto isExcepted = [&](uint32_t read, uint32_t written) {
      if (!start)
        return false;
      for (const CollectiveItem &item : start->items)
        if (item.in == read && item.out == written)
          return isInPlace(spec, item);
      return false;
    };
    std::vector<Operand> operands = operandsOf(spec, command);
    for (const Operand &written : operands)
      for (const Operand &other : operands)
        if (written.isWrite && other.buffer != written.buffer &&
            overlap(uses[program][written.buffer].bytes,
                    uses[program][other.buffer].bytes) &&
            !isExcepted(other.buffer, written.buffer))
          link(firstNode[program] + written.buffer,
               firstNode[program] + other.buffer);
  }
}

void AliasSets::number() {
  setOf.resize(parent.size());
  for (uint32_t node = 0; node < parent.size(); ++node) {
    uint32_t root = find(node);
    if (root == node) {
      setOf[node] = ranges.size();
      ranges.push_back(nodeBytes[node]);
      members.push_back(1);
      continue;
    }
    uint32_t set = setOf[node] = setOf[root];
    ++members[set];
    if (nodeBytes[node].begin == nodeBytes[node].end)
      continue;
    ByteRange &range = ranges[set];
    if (range.begin == range.end)
      range = nodeBytes[node];
    range = {std::min(range.begin, nodeBytes[node].begin),
             std::max(range.end, nodeBytes[node].end)};
  }
}

AliasSets::AliasSets(const PlanSpec &plan) {
  for (const TensorSpec &tensor : plan.tensors)
    nodeBytes.push_back({tensor.offset, tensor.offset + tensor.bytes});
  for (const ProgramSpec &program : plan.programs) {
    firstNode.push_back(nodeBytes.size());
    uses.push_back(usesOf(program));
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const BufferSpec &spec = program.buffers[i];
      nodeBytes.push_back(
          uses.back()[i].isUsed()
              ? uses.back()[i].bytes
              : ByteRange{spec.offset, spec.offset + spec.bytes});
    }
  }
  parent.resize(nodeBytes.size());
  std::iota(parent.begin(), parent.end(), 0);
  linkTensors(plan);
  for (size_t program = 0; program < plan.programs.size(); ++program) {
    linkIncoming(plan, program);
    linkInPlace(plan.programs[program], program);
  }
  number();
}
