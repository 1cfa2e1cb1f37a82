//===- Regions.h - Buffers that are names for the same memory ---*- C++ -*-===//
//
// A plan's programs name bytes of the arena by buffers, and the same bytes by
// different buffers at different times. Where a value passes from one name to
// another in memory (a tensor, the buffer of its new value; rows of the batch
// and the slices that a loop takes of them; operand and result of a kernel that
// works in place), they have to keep their distance wherever they are put: they
// form a region. Buffers that merely follow one another do not.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_REGIONS_H
#define SHARDC_RT_SRC_EXEC_REGIONS_H

#include "plan/Accesses.h"
#include "plan/PlanSpec.h"

#include <vector>

namespace shardc::rt {

/// A buffer that a command reads or writes.
struct Operand {
  uint32_t buffer;
  bool isWrite;
};

/// What a command reads and writes, sums that it adds to included.
std::vector<Operand> operandsOf(const Command &command);
/// The same of a part of a launch.
std::vector<Operand> operandsOf(const LaunchCommand &launch,
                                const LaunchPart &part);

/// Whether the collective's result takes the place of its operand.
bool isInPlace(const ProgramSpec &program, const CollectiveItem &item);

/// How a program uses one of its buffers, by command numbers.
struct BufferUse {
  static constexpr int64_t never = -1;
  int64_t firstRead = never, firstWrite = never;
  /// With loops as one: when the last read may be, and the first write.
  int64_t readUntil = never, writtenFrom = never;
  int64_t numReads = 0, numWrites = 0;
  /// The bytes in all runs of the loop it is used in.
  ByteRange bytes{0, 0};

  bool isUsed() const { return numReads + numWrites > 0; }
  /// Whether it has a value before the program writes it. What a product adds
  /// to is read by the command that writes it first.
  bool isIncoming() const {
    return numReads > 0 && (firstWrite == never || firstRead <= firstWrite);
  }
};

std::vector<BufferUse> usesOf(const ProgramSpec &program);

/// The regions of a plan, numbered in the order of their first names: tensors,
/// then the buffers of program after program. Immutable.
class Regions {
public:
  explicit Regions(const PlanSpec &plan);

  size_t size() const { return ranges.size(); }
  /// The bytes of the arena that its names cover together.
  ByteRange bytes(uint32_t region) const { return ranges[region]; }
  uint32_t ofTensor(size_t tensor) const { return regionOf[tensor]; }
  uint32_t ofBuffer(size_t program, uint32_t buffer) const {
    return regionOf[firstNode[program] + buffer];
  }
  /// How many names it has.
  size_t numNames(uint32_t region) const { return names[region]; }

private:
  uint32_t find(uint32_t node);
  void link(uint32_t a, uint32_t b);
  void linkTensors(const PlanSpec &plan);
  void linkIncoming(const PlanSpec &plan, size_t program);
  void linkInPlace(const ProgramSpec &spec, size_t program);
  void number();

  /// Of each program the node of its buffer 0; tensors come first.
  std::vector<uint32_t> firstNode;
  std::vector<std::vector<BufferUse>> uses;
  /// Of each node the bytes and another of its region, itself for one of them.
  std::vector<ByteRange> nodeBytes;
  std::vector<uint32_t> parent;
  std::vector<uint32_t> regionOf;
  std::vector<ByteRange> ranges;
  std::vector<size_t> names;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_REGIONS_H
