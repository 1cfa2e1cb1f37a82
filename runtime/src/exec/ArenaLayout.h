//===- ArenaLayout.h - Where the devices' buffers are -----------*- C++ -*-===//
//
// One allocation holds the arenas of all virtual devices, alias set by alias
// set. The copies of a set are contiguous, so that neighbouring devices' rows
// of the batch form one matrix if their bytes are a multiple of the plan's
// alignment. A set has as many copies as there are devices with different bits.
// Sets whose bytes of the plan's arena are disjoint stay disjoint: each byte of
// the plan's arena gets as many bytes here as the largest number of copies
// among the sets that it serves one after the other. The devices of a pipeline
// rank have a layout of their own. Of several processes each has a layout of
// its own devices alone: they share what they have in common, and copies of
// other processes take no memory.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_ARENALAYOUT_H
#define SHARDC_RT_SRC_EXEC_ARENALAYOUT_H

#include "exec/ReplicationAnalysis.h"
#include "plan/CheckPipeline.h"

#include "absl/status/statusor.h"

#include <map>
#include <memory>
#include <optional>

namespace shardc::rt {

struct LayoutOptions {
  /// Replicas share their memory.
  bool share = true;
  /// Sums over devices are added in the order of a tree. Those of several
  /// processes are in any case.
  bool ordersSums = false;
  /// Which of how many processes this is.
  int process = 0, processes = 1;
};

/// Places in the common allocation of the devices of one pipeline rank; without
/// a pipeline, of all devices of the process. Immutable; borrows the plan.
class ArenaLayout {
public:
  /// Layouts by rank. `orders` are those of the programs, if there is a
  /// pipeline. ResourceExhausted if the bytes of all devices cannot be counted.
  static absl::StatusOr<std::vector<ArenaLayout>>
  create(const PlanSpec &plan, LayoutOptions options,
         absl::Span<const PipelineOrder> orders = {});
  static absl::StatusOr<std::vector<ArenaLayout>>
  create(const PlanSpec &plan, bool share,
         absl::Span<const PipelineOrder> orders = {}) {
    LayoutOptions options;
    options.share = share;
    return create(plan, options, orders);
  }

  /// Of all devices together.
  uint64_t bytes() const { return numBytes; }

  /// The devices that have places; none on ranks of other processes.
  DeviceRange devices() const { return local; }

  uint64_t offsetOfTensor(size_t tensor, int64_t device) const {
    return offsetIn(aliasSets.ofTensor(tensor), device,
                    plan->tensors[tensor].offset);
  }
  /// In run `run` of the loop that the buffer is used in.
  uint64_t offsetOf(size_t program, uint32_t buffer, int64_t device,
                    int64_t run = 0) const {
    const BufferSpec &spec = plan->programs[program].buffers[buffer];
    return offsetIn(aliasSets.ofBuffer(program, buffer), device, spec.offset) +
           run * spec.stride;
  }

  uint32_t aliasSetOfTensor(size_t tensor) const {
    return aliasSets.ofTensor(tensor);
  }
  uint32_t aliasSetOf(size_t program, uint32_t buffer) const {
    return aliasSets.ofBuffer(program, buffer);
  }
  /// The tensors and buffers of an alias set.
  size_t numMembers(uint32_t aliasSet) const {
    return aliasSets.numMembers(aliasSet);
  }

  /// One device for every copy of a tensor or a buffer: the first.
  std::vector<int64_t> holdersOfTensor(size_t tensor) const {
    return firstDevices(replication.varies(aliasSets.ofTensor(tensor)));
  }
  std::vector<int64_t> holdersOf(size_t program, uint32_t buffer) const {
    return firstDevices(
        replication.varies(aliasSets.ofBuffer(program, buffer)));
  }
  /// The devices that a local command, or a part of a launch, has to run for:
  /// one for every copy of the results among `operands`.
  std::vector<int64_t> devicesFor(size_t program,
                                  const std::vector<Operand> &operands) const {
    return devicesFor(program, operands, local);
  }
  /// As above, in a process that has these devices of the rank.
  std::vector<int64_t> devicesFor(size_t program,
                                  const std::vector<Operand> &operands,
                                  DeviceRange devices) const;

  /// Whether a GEMM or launch computes a sum over devices.
  bool addsUp(size_t program, uint32_t command) const {
    return !replication.axesOfSum(program, command).empty();
  }
  /// For each of `devices`, in order, the devices whose results command
  /// `command` adds up, in the order of their group: itself alone unless the
  /// command computes a sum over devices.
  std::vector<std::vector<int64_t>>
  termsOf(size_t program, uint32_t command,
          absl::Span<const int64_t> devices) const;
  bool isSummed(size_t program, uint32_t buffer) const {
    return replication.isSummed(program, buffer);
  }
  /// Whether devices share what they have in common.
  bool sharesReplicas() const { return sharing.share; }
  /// Whether such a sum is added in the order of a tree over the group.
  bool addsInOrder() const { return sharing.addsInOrder; }

private:
  /// The copies of values that differ along some axes, in memory for copies
  /// that differ along these and maybe more.
  struct Copies {
    int64_t count;
    /// By device, from the first of `local` on.
    std::vector<int64_t> ofDevice;
  };
  /// Of an alias set: the offset of its first copy, the distance of copies, and
  /// which of them each device has.
  struct Place {
    uint64_t base;
    uint64_t stride;
    const Copies *copies;
  };

  ArenaLayout(const PlanSpec &plan, Sharing how, DeviceRange local)
      : plan(&plan), sharing(std::move(how)), aliasSets(plan),
        replication(plan, aliasSets, sharing), local(local) {}

  static bool receiveAll(std::vector<ArenaLayout> &layouts,
                         const PipelineOrder &order, size_t program);
  void place();
  std::vector<AxisSet> findSpreads() const;
  std::vector<int> orderAxes() const;
  const Copies &copiesOf(AxisSet varies, AxisSet spread);
  std::vector<int64_t> firstDevices(AxisSet axes) const {
    return firstDevices(axes, local);
  }
  std::vector<int64_t> firstDevices(AxisSet axes, DeviceRange devices) const;
  uint64_t offsetIn(uint32_t aliasSet, int64_t device,
                    uint64_t arenaOffset) const;

  const PlanSpec *plan;
  Sharing sharing;
  AliasSets aliasSets;
  ReplicationAnalysis replication;
  DeviceRange local;
  /// By the axes along which values differ, and those of their memory. Few, and
  /// they stay where they are.
  std::map<std::pair<AxisSet, AxisSet>, std::shared_ptr<Copies>> copies;
  std::vector<int> axisOrder; ///< Of copies, major to minor.
  std::vector<Place> places;  ///< By alias set.
  uint64_t numBytes = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_ARENALAYOUT_H
