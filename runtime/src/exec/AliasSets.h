//===- AliasSets.h - Buffers that name the same memory ----------*- C++ -*-===//
//
// The programs of a plan name bytes of the arena by buffers, and the same bytes
// by different buffers at different times. Two buffers alias if a value passes
// from one to the other in memory: a tensor and the buffer of its new value,
// rows of the batch and the slices that a loop takes of them, operand and
// result of a kernel that works in place. Buffers that alias keep their
// distance wherever they are placed. Buffers that only follow one another in
// the same bytes do not alias, if the bytes of all members of their sets do:
// copies of a set for several devices lie side by side, so that a buffer in the
// bytes of a part that is dead would lie in the living part of another copy.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_ALIASSETS_H
#define SHARDC_RT_SRC_EXEC_ALIASSETS_H

#include "plan/Accesses.h"
#include "plan/PlanSpec.h"

#include <vector>

namespace shardc::rt {

/// Whether the collective works in place.
bool isInPlace(const ProgramSpec &program, const CollectiveItem &item);

/// How a program uses one of its buffers, by command numbers.
struct BufferUse {
  static constexpr int64_t never = -1;
  int64_t firstRead = never, firstWrite = never;
  /// The last read and the first write, with a loop as one command.
  int64_t readUntil = never, writtenFrom = never;
  int64_t numReads = 0, numWrites = 0;
  /// The commands from the first use to the last. A buffer that goes through
  /// a loop, or from one run of it to the next, lives in all of the loop.
  int64_t liveFrom = never, liveUntil = never;
  /// The bytes in all runs of the loop it is used in.
  ByteRange bytes{0, 0};

  bool isUsed() const { return numReads + numWrites > 0; }
  /// Whether it has a value before the program writes it. The command that
  /// first writes an accumulator also reads it.
  bool isIncoming() const {
    return numReads > 0 && (firstWrite == never || firstRead <= firstWrite);
  }
};

std::vector<BufferUse> usesOf(const ProgramSpec &program);

/// The equivalence classes of "aliases", found by union-find. They are numbered
/// by their first members: tensors, then the buffers of program after program.
/// Immutable, and so safe to share between threads.
class AliasSets {
public:
  explicit AliasSets(const PlanSpec &plan);

  size_t size() const { return ranges.size(); }
  /// The bytes of the arena that its members cover together.
  ByteRange bytes(uint32_t set) const { return ranges[set]; }
  uint32_t ofTensor(size_t tensor) const { return setOf[tensor]; }
  uint32_t ofBuffer(size_t program, uint32_t buffer) const {
    return setOf[firstNode[program] + buffer];
  }
  size_t numMembers(uint32_t set) const { return members[set]; }

private:
  uint32_t find(uint32_t node);
  void link(uint32_t a, uint32_t b);
  void linkTensors(const PlanSpec &plan);
  void linkIncoming(const PlanSpec &plan, size_t program);
  void linkInPlace(const ProgramSpec &spec, size_t program);
  bool linkLiving(const PlanSpec &plan, size_t program);
  void number();

  /// Nodes are tensors, then buffers: by program, the node of its buffer 0.
  std::vector<uint32_t> firstNode;
  std::vector<std::vector<BufferUse>> uses;
  /// By node, its bytes, its parent in the union-find forest, and its set.
  std::vector<ByteRange> nodeBytes;
  std::vector<uint32_t> parent;
  std::vector<uint32_t> setOf;
  /// By set.
  std::vector<ByteRange> ranges;
  std::vector<size_t> members;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_ALIASSETS_H
