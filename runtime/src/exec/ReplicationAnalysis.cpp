//===- ReplicationAnalysis.cpp - Which devices hold the same bits ---------===//

#include "exec/ReplicationAnalysis.h"

#include "backends/cpu/Gemm.h"
#include "base/ReductionTree.h"

#include "absl/algorithm/container.h"

#include <optional>

using namespace shardc::rt;

AxisSet ReplicationAnalysis::setOf(const Mesh &mesh,
                                   absl::Span<const int> axes) {
  // Sizes multiply to less than 2^31, so that at most 30 axes have a bit.
  AxisSet set = 0;
  for (int axis : axes) {
    if (mesh.axes()[axis].size == 1)
      continue;
    int bit = 0;
    for (int before = 0; before < axis; ++before)
      bit += mesh.axes()[before].size > 1;
    set |= AxisSet(1) << bit;
  }
  return set;
}

AxisSet ReplicationAnalysis::allOf(const Mesh &mesh) {
  AxisSet set = 0;
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis)
    set |= setOf(mesh, {static_cast<int>(axis)});
  return set;
}

bool ReplicationAnalysis::widen(uint32_t aliasSet, AxisSet axes) {
  AxisSet before = variesOver[aliasSet];
  variesOver[aliasSet] |= axes;
  return variesOver[aliasSet] != before;
}

/// Whether GEMMs can add up what each process has of every group over `axes`,
/// so that the rest of the tree follows from the sums: the devices of a process
/// have to be a node of it.
static bool canAddInOrder(const PlanSpec &plan, const GemmCommand &gemm,
                          GemmTypes types, const std::vector<int> &axes,
                          const std::vector<DeviceRange> &processes) {
  for (const std::vector<int64_t> &group : plan.mesh.groups(axes)) {
    // By process how many of the group it has.
    std::map<size_t, int64_t> members;
    auto processOf = [&](int64_t member) {
      size_t process = 0;
      while (process < processes.size() &&
             !processes[process].contains(group[member]))
        ++process;
      return process;
    };
    const int64_t size = group.size();
    for (int64_t member = 0; member < size; ++member)
      ++members[processOf(member)];
    if (nodesOfOneOwner({0, size}, processOf).size() != members.size())
      return false;
    for (auto [process, count] : members)
      if (count > 1 && !PreparedGemm::prepareSum(gemm, types, count))
        return false;
  }
  return true;
}

/// Whether the sum of such GEMMs of several devices may be one of them.
static bool canAdd(const ProgramSpec &program, const GemmCommand &gemm) {
  return gemm.batch == 1 && gemm.bias < 0 && gemm.columnSums < 0 &&
         gemm.activation == Activation::None &&
         gemm.precision == Precision::Highest && gemm.a != gemm.c &&
         gemm.b != gemm.c && program.buffers[gemm.c].dtype == DType::F32;
}

namespace {

/// A value that a reduction reads.
struct Reduced {
  const std::vector<int> *axes = nullptr; ///< Of the reduction.
  uint32_t buffer = 0;                    ///< Its operand.
  std::vector<uint32_t> terms;            ///< What computes or adds to it.
  absl::flat_hash_set<uint32_t> buffers;  ///< Its names.
  /// Whether others do no more than clear it: then it is linear in the terms.
  bool isLinear = true;
};

/// The values that sums over devices read, by alias set.
using ReducedValues = absl::flat_hash_map<uint32_t, Reduced>;

} // namespace

static bool isSum(const PlanSpec &plan, const CollectiveStartCommand &start) {
  // A sum over pipeline ranks has operands in several arenas.
  return start.reduction == Reduction::Sum && !plan.isOverRanks(start) &&
         (start.kind == CollectiveKind::AllReduce ||
          start.kind == CollectiveKind::ReduceScatter);
}

/// Notes what command `number` does with `operand`, a name of `value`.
static void noteUse(const PlanSpec &plan, const ProgramSpec &program,
                    uint32_t number, Operand operand, Reduced &value) {
  const auto &operation = program.commands[number].operation;
  const BufferSpec &name = program.buffers[operand.buffer];
  const BufferSpec &read = program.buffers[value.buffer];
  value.buffers.insert(operand.buffer);
  value.isLinear &= name.stride == 0 && name.offset == read.offset &&
                    name.bytes == read.bytes;
  if (auto *gemm = std::get_if<GemmCommand>(&operation)) {
    value.isLinear &= operand.buffer == gemm->c && canAdd(program, *gemm);
    if (operand.isWrite)
      value.terms.push_back(number);
  } else if (auto *launch = std::get_if<LaunchCommand>(&operation)) {
    // It computes the value, and nothing else does: see `canAddUp`.
    value.isLinear &= operand.isWrite && launch->canAddUp();
    value.terms.push_back(number);
  } else if (auto *start = std::get_if<CollectiveStartCommand>(&operation)) {
    value.isLinear &= !operand.isWrite && isSum(plan, *start);
  } else {
    value.isLinear &= std::holds_alternative<ClearCommand>(operation);
  }
}

static ReducedValues findReduced(const PlanSpec &plan,
                                 const AliasSets &aliasSets, size_t program) {
  const ProgramSpec &spec = plan.programs[program];
  ReducedValues values;
  for (const Command &command : spec.commands)
    if (auto *start = std::get_if<CollectiveStartCommand>(&command.operation);
        start && isSum(plan, *start))
      for (const CollectiveItem &item : start->items) {
        Reduced &value = values[aliasSets.ofBuffer(program, item.in)];
        value.isLinear &= !value.axes;
        value.axes = &start->axes;
        value.buffer = item.in;
      }
  if (values.empty())
    return values;
  auto find = [&](uint32_t buffer) {
    return values.find(aliasSets.ofBuffer(program, buffer));
  };
  for (uint32_t i = 0; i < spec.commands.size(); ++i)
    for (const Operand &operand : operandsOf(spec, spec.commands[i]))
      if (auto value = find(operand.buffer); value != values.end())
        noteUse(plan, spec, i, operand, value->second);
  for (const ResultSpec &result : spec.results)
    if (auto value = find(result.buffer); value != values.end())
      value->second.isLinear = false;
  return values;
}

/// Whether a process has all devices of each group over `axes`, if any.
static bool hasWholeGroups(const PlanSpec &plan, const std::vector<int> &axes,
                           const std::vector<DeviceRange> &processes) {
  auto isWhole = [&](const std::vector<int64_t> &group) {
    return processes.empty() ||
           absl::c_any_of(processes, [&](DeviceRange process) {
             return process.contains(group.front()) &&
                    process.contains(group.back());
           });
  };
  return absl::c_all_of(plan.mesh.groups(axes), isWhole);
}

/// Whether the terms of a value can add up those of all devices that a process
/// has of a group over `axes`: GEMMs, or one launch with code for that.
static bool canAddUp(const PlanSpec &plan, const ProgramSpec &program,
                     const Reduced &value, const Sharing &sharing) {
  const std::vector<int> &axes = *value.axes;
  return absl::c_all_of(value.terms, [&](uint32_t number) {
    const auto &operation = program.commands[number].operation;
    if (auto *launch = std::get_if<LaunchCommand>(&operation))
      return value.terms.size() == 1 &&
             plan.mesh.numShards(axes) == launch->groupDevices &&
             hasWholeGroups(plan, axes, sharing.processes);
    auto &gemm = std::get<GemmCommand>(operation);
    return !sharing.addsInOrder ||
           canAddInOrder(plan, gemm, program.typesOf(gemm), axes,
                         sharing.processes);
  });
}

/// Finds the commands whose results, or the values that they add to, only a
/// reduction reads.
void ReplicationAnalysis::findSums(const PlanSpec &plan,
                                   const AliasSets &aliasSets,
                                   const Sharing &sharing) {
  for (size_t program = 0; program < plan.programs.size(); ++program) {
    const ProgramSpec &spec = plan.programs[program];
    for (const auto &[set, value] : findReduced(plan, aliasSets, program)) {
      // No tensor has the value, and no other program.
      if (!value.isLinear || value.terms.empty() ||
          value.buffers.size() != aliasSets.numMembers(set) ||
          setOf(plan.mesh, *value.axes) == 0 ||
          !canAddUp(plan, spec, value, sharing))
        continue;
      for (uint32_t term : value.terms)
        sums[program][term] = *value.axes;
      summed[program].insert(value.buffer);
    }
  }
}

bool ReplicationAnalysis::propagateCollective(
    const PlanSpec &plan, const AliasSets &aliasSets, size_t program,
    const CollectiveStartCommand &start) {
  AxisSet over = setOf(plan.mesh, start.axes);
  bool changed = false;
  for (const CollectiveItem &item : start.items) {
    AxisSet out = variesOver[aliasSets.ofBuffer(program, item.in)];
    switch (start.kind) {
    case CollectiveKind::AllReduce:
    case CollectiveKind::AllGather:
      out &= ~over;
      break;
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
      out |= over;
      break;
    case CollectiveKind::CollectivePermute:
      // Any of the axes may take the place of any other.
      out |= out & over ? over : 0;
      break;
    }
    uint32_t result = aliasSets.ofBuffer(program, item.out);
    changed |= widen(result, out);
    // The result overwrites its operand, which must not be shared more widely.
    if (isInPlace(plan.programs[program], item))
      changed |=
          widen(aliasSets.ofBuffer(program, item.in), variesOver[result]);
  }
  return changed;
}

bool ReplicationAnalysis::propagateCommand(const PlanSpec &plan,
                                           const AliasSets &aliasSets,
                                           size_t program, uint32_t number) {
  const Command &command = plan.programs[program].commands[number];
  if (auto *start = std::get_if<CollectiveStartCommand>(&command.operation))
    return propagateCollective(plan, aliasSets, program, *start);
  // The sender decides along which axes its buffers differ.
  if (std::holds_alternative<ReceiveCommand>(command.operation))
    return false;
  auto *launch = std::get_if<LaunchCommand>(&command.operation);
  if (!launch)
    return propagateLocal(
        aliasSets, program, operandsOf(plan.programs[program], command),
        /*axes=*/0, setOf(plan.mesh, axesOfSum(program, number)));
  bool changed = false;
  for (const LaunchPart &part : launch->parts)
    changed |= propagateLocal(aliasSets, program, operandsOf(*launch, part),
                              setOf(plan.mesh, part.coordinateAxes),
                              setOf(plan.mesh, axesOfSum(program, number)));
  return changed;
}

/// Results differ along `axes`, and along those of the operands but for
/// `summedOver`.
bool ReplicationAnalysis::propagateLocal(const AliasSets &aliasSets,
                                         size_t program,
                                         const std::vector<Operand> &operands,
                                         AxisSet axes, AxisSet summedOver) {
  for (const Operand &operand : operands)
    if (!operand.isWrite)
      axes |= variesOver[aliasSets.ofBuffer(program, operand.buffer)];
  axes &= ~summedOver;
  // All results differ along the same axes: a device that computes its copy of
  // one result computes its copy of each.
  for (const Operand &operand : operands)
    if (operand.isWrite)
      axes |= variesOver[aliasSets.ofBuffer(program, operand.buffer)];
  bool changed = false;
  for (const Operand &operand : operands)
    if (operand.isWrite)
      changed |= widen(aliasSets.ofBuffer(program, operand.buffer), axes);
  return changed;
}

bool ReplicationAnalysis::propagate(const PlanSpec &plan,
                                    const AliasSets &aliasSets) {
  bool changed = false;
  for (size_t program = 0; program < plan.programs.size(); ++program)
    for (uint32_t i = 0; i < plan.programs[program].commands.size(); ++i)
      changed |= propagateCommand(plan, aliasSets, program, i);
  return changed;
}

ReplicationAnalysis::ReplicationAnalysis(const PlanSpec &plan,
                                         const AliasSets &aliasSets,
                                         const Sharing &sharing)
    : variesOver(aliasSets.size()), sums(plan.programs.size()),
      summed(plan.programs.size()) {
  if (!sharing.share) {
    variesOver.assign(aliasSets.size(), allOf(plan.mesh));
    return;
  }
  for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor)
    for (const std::vector<int> &axes : plan.tensors[tensor].sharding.dims)
      widen(aliasSets.ofTensor(tensor), setOf(plan.mesh, axes));
  findSums(plan, aliasSets, sharing);
  settle(plan, aliasSets);
}

void ReplicationAnalysis::settle(const PlanSpec &plan,
                                 const AliasSets &aliasSets) {
  // Sets only grow.
  while (propagate(plan, aliasSets)) {
  }
}
