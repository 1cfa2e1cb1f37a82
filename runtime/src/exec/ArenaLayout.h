//===- ArenaLayout.h - Where the devices' buffers are -----------*- C++ -*-===//
//
// One allocation holds the arenas of all virtual devices, region by region: the
// copies of a region lie one behind the other, so that what devices hold side
// by side, rows of the batch above all, is one matrix if its bytes are a
// multiple of the plan's alignment. A region needs as many copies as there are
// devices that hold other bits. Regions whose bytes of the plan's arena are
// disjoint stay disjoint: each byte of the plan's arena gets as many bytes here
// as the largest number of copies among the regions that it serves one after
// the other.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_ARENALAYOUT_H
#define SHARDC_RT_SRC_EXEC_ARENALAYOUT_H

#include "exec/Replicas.h"

#include "absl/status/statusor.h"

namespace shardc::rt {

/// Places in the common allocation. Immutable; borrows the plan.
class ArenaLayout {
public:
  /// `share`: replicas share their memory. ResourceExhausted if the bytes of
  /// all devices cannot be counted.
  static absl::StatusOr<ArenaLayout> create(const PlanSpec &plan, bool share);

  /// Of all devices together.
  uint64_t bytes() const { return numBytes; }

  uint64_t offsetOfTensor(size_t tensor, int64_t device) const {
    return offsetIn(regions.ofTensor(tensor), device,
                    plan->tensors[tensor].offset);
  }
  /// In run `run` of the loop that the buffer is used in.
  uint64_t offsetOf(size_t program, uint32_t buffer, int64_t device,
                    int64_t run = 0) const {
    const BufferSpec &spec = plan->programs[program].buffers[buffer];
    return offsetIn(regions.ofBuffer(program, buffer), device, spec.offset) +
           run * spec.stride;
  }

  /// One device for every copy of a tensor or a buffer: the first.
  std::vector<int64_t> holdersOfTensor(size_t tensor) const {
    return firstDevices(replicas.varies(regions.ofTensor(tensor)));
  }
  std::vector<int64_t> holdersOf(size_t program, uint32_t buffer) const {
    return firstDevices(replicas.varies(regions.ofBuffer(program, buffer)));
  }
  /// The devices that a local command, or a part of a launch, has to run for:
  /// one for every copy of what it writes of `operands`.
  std::vector<int64_t> devicesFor(size_t program,
                                  const std::vector<Operand> &operands) const;

  /// For each of `devices` those whose products product `command` adds up, in
  /// order: itself alone unless it is a sum.
  std::vector<std::vector<int64_t>>
  termsOf(size_t program, uint32_t command,
          absl::Span<const int64_t> devices) const;
  bool isSummed(size_t program, uint32_t buffer) const {
    return replicas.isSummed(program, buffer);
  }

private:
  /// Of a region: where its first copy is, and how far apart copies are along
  /// each mesh axis, in bytes; 0 where devices share a copy.
  struct Place {
    uint64_t base;
    std::vector<uint64_t> strides;
  };

  ArenaLayout(const PlanSpec &plan, bool share)
      : plan(&plan), regions(plan), replicas(plan, regions, share) {}

  void place();
  std::vector<AxisSet> findSpreads() const;
  std::vector<int> orderAxes() const;
  int64_t copies(AxisSet axes) const;
  std::vector<int64_t> firstDevices(AxisSet axes) const;
  uint64_t offsetIn(uint32_t region, int64_t device,
                    uint64_t arenaOffset) const;

  const PlanSpec *plan;
  Regions regions;
  Replicas replicas;
  std::vector<Place> places;
  uint64_t numBytes = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_ARENALAYOUT_H
