//===- Replicas.h - Which devices hold the same bits ------------*- C++ -*-===//
//
// Follows values through a plan's programs: a shard differs along the axes that
// shard it, a kernel's results along the axes of its operands and those whose
// coordinates it reads, and a reduction or a gathering over axes makes devices
// equal along them. Devices that differ in no axis of a region hold the same
// bits there, and one copy serves them all.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_REPLICAS_H
#define SHARDC_RT_SRC_EXEC_REPLICAS_H

#include "exec/Regions.h"

#include "absl/container/flat_hash_map.h"

namespace shardc::rt {

/// Axes of a mesh, bit by bit; those of size 1 never.
using AxisSet = uint64_t;

class Replicas {
public:
  /// Finds what can be shared; with `share` false every device has all of its
  /// memory to itself, and sums are left to collectives.
  Replicas(const PlanSpec &plan, const Regions &regions, bool share);

  /// Axes along which the contents of a region differ.
  AxisSet varies(uint32_t region) const { return variesOver[region]; }

  /// Axes over which product `command` adds up the products of all devices:
  /// its result goes into one reduction over them and nowhere else, so that it
  /// may hold the sum from the start. 0: none.
  AxisSet sumsOver(size_t program, uint32_t command) const {
    auto found = sums[program].find(command);
    return found == sums[program].end() ? 0 : found->second;
  }
  /// Whether the operand of a reduction is the sum already.
  bool isSummed(size_t program, uint32_t buffer) const {
    return summed[program].contains(buffer);
  }

  /// The set of `axes`, of all axes.
  static AxisSet setOf(const Mesh &mesh, absl::Span<const int> axes);
  static AxisSet allOf(const Mesh &mesh);

private:
  void findSums(const PlanSpec &plan, const Regions &regions);
  bool propagate(const PlanSpec &plan, const Regions &regions);
  bool propagateCommand(const PlanSpec &plan, const Regions &regions,
                        size_t program, uint32_t command);
  bool propagateLocal(const Regions &regions, size_t program,
                      const std::vector<Operand> &operands, AxisSet axes,
                      AxisSet summedOver);
  bool propagateCollective(const PlanSpec &plan, const Regions &regions,
                           size_t program, const CollectiveStartCommand &start);
  bool widen(uint32_t region, AxisSet axes);

  std::vector<AxisSet> variesOver;
  /// By program: axes by the command of a product, and its results' buffers.
  std::vector<absl::flat_hash_map<uint32_t, AxisSet>> sums;
  std::vector<absl::flat_hash_map<uint32_t, AxisSet>> summed;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_REPLICAS_H
