//===- ReplicationAnalysis.h - Which devices hold the same bits -*- C++ -*-===//
//
// A forward dataflow analysis of the programs of a plan. For each alias set it
// finds the mesh axes along which the contents may differ:
//
//   - a tensor differs along the axes that shard it;
//   - the results of a kernel differ along the axes of its operands, and along
//     those whose coordinates it reads;
//   - an all-reduce or all-gather makes devices equal along its axes;
//   - what a pipeline rank receives differs as it does where it is sent, and a
//     sum over ranks as the operands of all of them.
//
// Devices that differ in none of these axes hold the same bits, and one copy
// serves them all.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_REPLICATIONANALYSIS_H
#define SHARDC_RT_SRC_EXEC_REPLICATIONANALYSIS_H

#include "exec/AliasSets.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace shardc::rt {

/// Axes of a mesh, bit by bit; those of size 1 never.
using AxisSet = uint64_t;

/// How devices share memory and work.
struct Sharing {
  /// With false every device has its own memory for all values, and
  /// collectives compute all sums.
  bool share = true;
  /// Whether sums over devices are added in the order of a tree over their
  /// group (ReductionTree.h). Those of several processes are.
  bool addsInOrder = false;
  /// By process its devices. None: one process has all.
  std::vector<DeviceRange> processes = {};
};

/// The result of the analysis. Immutable, and so safe to share between threads.
class ReplicationAnalysis {
public:
  /// `plan` is that of a rank, whose devices `sharing` has.
  ReplicationAnalysis(const PlanSpec &plan, const AliasSets &aliasSets,
                      const Sharing &sharing);

  /// Axes along which the contents of an alias set may differ.
  AxisSet varies(uint32_t aliasSet) const { return variesOver[aliasSet]; }

  /// Axes over which `command`, a GEMM or a launch, adds up the results of the
  /// devices of a process, in the order of the reduction over these axes, which
  /// alone reads its result, or what several GEMMs and the runs of a loop make
  /// of it by adding to it: so that may hold the sum from the start. Empty: it
  /// does not.
  absl::Span<const int> axesOfSum(size_t program, uint32_t command) const {
    auto found = sums[program].find(command);
    return found == sums[program].end() ? absl::Span<const int>()
                                        : found->second;
  }
  /// Whether the operand of a reduction is that sum already.
  bool isSummed(size_t program, uint32_t buffer) const {
    return summed[program].contains(buffer);
  }

  /// Widens the axes along which a buffer differs that has values of another
  /// pipeline rank; returns whether they change. Then `settle` has to follow.
  bool receive(const AliasSets &aliasSets, size_t program, uint32_t buffer,
               AxisSet axes) {
    return widen(aliasSets.ofBuffer(program, buffer), axes);
  }
  /// Widens all that depends on the buffers received.
  void settle(const PlanSpec &plan, const AliasSets &aliasSets);

  /// The set of `axes`, of all axes.
  static AxisSet setOf(const Mesh &mesh, absl::Span<const int> axes);
  static AxisSet allOf(const Mesh &mesh);

private:
  void findSums(const PlanSpec &plan, const AliasSets &aliasSets,
                const Sharing &sharing);
  bool propagate(const PlanSpec &plan, const AliasSets &aliasSets);
  bool propagateCommand(const PlanSpec &plan, const AliasSets &aliasSets,
                        size_t program, uint32_t command);
  bool propagateLocal(const AliasSets &aliasSets, size_t program,
                      const std::vector<Operand> &operands, AxisSet axes,
                      AxisSet summedOver);
  bool propagateCollective(const PlanSpec &plan, const AliasSets &aliasSets,
                           size_t program, const CollectiveStartCommand &start);
  bool widen(uint32_t aliasSet, AxisSet axes);

  std::vector<AxisSet> variesOver; ///< By alias set.
  /// By program: axes by command, and the buffers of results.
  std::vector<absl::flat_hash_map<uint32_t, std::vector<int>>> sums;
  std::vector<absl::flat_hash_set<uint32_t>> summed;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_REPLICATIONANALYSIS_H
