//===- AliasSets.cpp - Buffers that name the same memory ------------------===//

#include "exec/AliasSets.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace shardc::rt;

bool shardc::rt::isInPlace(const ProgramSpec &program,
                           const CollectiveItem &item) {
  const BufferSpec &in = program.buffers[item.in];
  const BufferSpec &out = program.buffers[item.out];
  return in.offset == out.offset && in.bytes == out.bytes &&
         in.stride == out.stride;
}

/// Calls `visit(i, loop, runs, operand)` for each operand of each command i;
/// `loop` has the first and the last command of the loop around it, outside of
/// loops itself.
template <typename Visit>
static void forEachOperand(const ProgramSpec &program, Visit visit) {
  std::pair<int64_t, int64_t> around = {0, -1};
  int64_t runs = 1;
  for (int64_t i = 0; i < static_cast<int64_t>(program.commands.size()); ++i) {
    if (i > around.second)
      around = {i, i}, runs = 1;
    const Command &command = program.commands[i];
    if (auto *loop = std::get_if<LoopCommand>(&command.operation)) {
      around.second = i + loop->commands;
      runs = loop->runs;
    }
    for (const Operand &operand : operandsOf(program, command))
      visit(i, around, runs, operand);
  }
}

std::vector<BufferUse> shardc::rt::usesOf(const ProgramSpec &program) {
  std::vector<BufferUse> uses(program.buffers.size());
  using Loop = std::pair<int64_t, int64_t>;
  forEachOperand(
      program, [&](int64_t i, Loop loop, int64_t runs, const Operand &operand) {
        auto [first, last] = loop;
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
      });
  forEachOperand(
      program, [&](int64_t i, Loop loop, int64_t, const Operand &operand) {
        BufferUse &use = uses[operand.buffer];
        // Each run writes it anew, and before it is read.
        bool isOfRun = !use.isIncoming() && use.writtenFrom == loop.first &&
                       program.buffers[operand.buffer].stride == 0;
        if (use.liveFrom == BufferUse::never)
          use.liveFrom = isOfRun ? i : loop.first;
        use.liveUntil = std::max(use.liveUntil, isOfRun ? i : loop.second);
      });
  for (const ResultSpec &result : program.results) {
    BufferUse &use = uses[result.buffer];
    const BufferSpec &spec = program.buffers[result.buffer];
    int64_t end = program.commands.size();
    if (use.numReads++ == 0)
      use.firstRead = end;
    use.readUntil = use.liveUntil = end;
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
    if (isFed(plan.tensors[tensor].role))
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

/// Links sets of which one is written while the other lives, in bytes that both
/// have. Returns whether there were any: then sets have grown.
bool AliasSets::linkLiving(const PlanSpec &plan, size_t program) {
  const ProgramSpec &spec = plan.programs[program];
  int64_t end = spec.commands.size();
  struct Life {
    int64_t from, until;
    ByteRange bytes;
    uint32_t set;
  };
  // By root, its life in this program; the bytes are those of all members.
  std::map<uint32_t, Life> ofSet;
  auto live = [&](uint32_t node, int64_t from, int64_t until) {
    uint32_t set = find(node);
    auto [it, isNew] = ofSet.try_emplace(set, Life{from, until, {0, 0}, set});
    Life &life = it->second;
    life.from = std::min(life.from, from);
    life.until = std::max(life.until, until);
  };
  for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    live(tensor, -1, isFed(plan.tensors[tensor].role) ? -1 : end);
  }
  for (size_t i = 0; i < uses[program].size(); ++i)
    if (const BufferUse &use = uses[program][i]; use.isUsed())
      live(firstNode[program] + i, use.isIncoming() ? -1 : use.liveFrom,
           use.liveUntil);
  for (uint32_t node = 0; node < nodeBytes.size(); ++node) {
    auto found = ofSet.find(find(node));
    ByteRange bytes = nodeBytes[node];
    if (found == ofSet.end() || bytes.begin == bytes.end)
      continue;
    ByteRange &all = found->second.bytes;
    all = all.begin == all.end ? bytes
                               : ByteRange{std::min(all.begin, bytes.begin),
                                           std::max(all.end, bytes.end)};
  }
  std::vector<Life> lives;
  for (const auto &[set, life] : ofSet)
    if (life.bytes.begin != life.bytes.end)
      lives.push_back(life);
  std::stable_sort(
      lives.begin(), lives.end(),
      [](const Life &a, const Life &b) { return a.from < b.from; });
  // An in-place collective takes care of its operands and results.
  auto isInPlaceAt = [&](const Life &in, const Life &out) {
    if (out.from < 0 || out.from >= end)
      return false;
    auto *start =
        std::get_if<CollectiveStartCommand>(&spec.commands[out.from].operation);
    for (size_t i = 0; start && i < start->items.size(); ++i)
      if (isInPlace(spec, start->items[i]) &&
          find(firstNode[program] + start->items[i].in) == in.set &&
          find(firstNode[program] + start->items[i].out) == out.set)
        return true;
    return false;
  };
  bool changed = false;
  // By first byte, sets with disjoint bytes: the last ones that had them.
  std::map<uint64_t, Life> last;
  for (const Life &life : lives) {
    auto it = last.upper_bound(life.bytes.begin);
    if (it != last.begin() &&
        std::prev(it)->second.bytes.end > life.bytes.begin)
      --it;
    while (it != last.end() && it->first < life.bytes.end) {
      const Life &other = it->second;
      bool isDead = other.until < life.from ||
                    (other.until == life.from && isInPlaceAt(other, life));
      if (!isDead) {
        link(other.set, life.set);
        changed = true;
      }
      it = last.erase(it);
    }
    last.emplace(life.bytes.begin, life);
  }
  return changed;
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
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t program = 0; program < plan.programs.size(); ++program)
      changed |= linkLiving(plan, program);
  }
  number();
}
