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

/// Finds the GEMMs whose results only a reduction reads.
void ReplicationAnalysis::findSums(const PlanSpec &plan,
                                   const AliasSets &aliasSets,
                                   const Sharing &sharing) {
  for (size_t program = 0; program < plan.programs.size(); ++program) {
    const ProgramSpec &spec = plan.programs[program];
    std::vector<BufferUse> uses = usesOf(spec);
    absl::flat_hash_map<uint32_t, const std::vector<int> *> reduced;
    size_t loopEnd = 0;
    auto forEachOutsideLoops = [&](auto visit) {
      loopEnd = 0;
      for (size_t i = 0; i < spec.commands.size(); ++i) {
        if (auto *loop = std::get_if<LoopCommand>(&spec.commands[i].operation))
          loopEnd = i + loop->commands + 1;
        else if (i >= loopEnd)
          visit(i, spec.commands[i]);
      }
    };
    forEachOutsideLoops([&](uint32_t, const Command &command) {
      auto *start = std::get_if<CollectiveStartCommand>(&command.operation);
      // A sum over pipeline ranks has operands in several arenas.
      bool isSum = start && start->reduction == Reduction::Sum &&
                   !plan.isOverRanks(*start) &&
                   (start->kind == CollectiveKind::AllReduce ||
                    start->kind == CollectiveKind::ReduceScatter);
      for (size_t i = 0; isSum && i < start->items.size(); ++i)
        reduced[start->items[i].in] = &start->axes;
    });
    forEachOutsideLoops([&](uint32_t number, const Command &command) {
      auto *gemm = std::get_if<GemmCommand>(&command.operation);
      if (!gemm || gemm->batch != 1 || gemm->bias >= 0 || gemm->accumulate ||
          gemm->columnSums >= 0 || gemm->activation != Activation::None ||
          gemm->precision != Precision::Highest ||
          spec.buffers[gemm->c].dtype != DType::F32)
        return;
      const BufferUse &use = uses[gemm->c];
      auto found = reduced.find(gemm->c);
      if (found == reduced.end() || use.numReads != 1 || use.numWrites != 1 ||
          aliasSets.numMembers(aliasSets.ofBuffer(program, gemm->c)) != 1)
        return;
      const std::vector<int> &axes = *found->second;
      if (setOf(plan.mesh, axes) == 0 ||
          (sharing.addsInOrder &&
           !canAddInOrder(plan, *gemm, spec.typesOf(*gemm), axes,
                          sharing.processes)))
        return;
      sums[program][number] = axes;
      summed[program].insert(gemm->c);
    });
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
    changed |=
        propagateLocal(aliasSets, program, operandsOf(*launch, part),
                       setOf(plan.mesh, part.coordinateAxes), /*summedOver=*/0);
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
