//===- Replicas.cpp - Which devices hold the same bits --------------------===//

#include "exec/Replicas.h"

#include <optional>

using namespace shardc::rt;

AxisSet Replicas::setOf(const Mesh &mesh, absl::Span<const int> axes) {
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

AxisSet Replicas::allOf(const Mesh &mesh) {
  AxisSet set = 0;
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis)
    set |= setOf(mesh, {static_cast<int>(axis)});
  return set;
}

bool Replicas::widen(uint32_t region, AxisSet axes) {
  AxisSet before = variesOver[region];
  variesOver[region] |= axes;
  return variesOver[region] != before;
}

/// Finds products whose results only a reduction reads.
void Replicas::findSums(const PlanSpec &plan, const Regions &regions) {
  for (size_t program = 0; program < plan.programs.size(); ++program) {
    const ProgramSpec &spec = plan.programs[program];
    std::vector<BufferUse> uses = usesOf(spec);
    absl::flat_hash_map<uint32_t, AxisSet> reduced;
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
      bool isSum = start && start->reduction == Reduction::Sum &&
                   (start->kind == CollectiveKind::AllReduce ||
                    start->kind == CollectiveKind::ReduceScatter);
      for (size_t i = 0; isSum && i < start->items.size(); ++i)
        reduced[start->items[i].in] = setOf(plan.mesh, start->axes);
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
      if (found == reduced.end() || found->second == 0 || use.numReads != 1 ||
          use.numWrites != 1 ||
          regions.numNames(regions.ofBuffer(program, gemm->c)) != 1)
        return;
      sums[program][number] = found->second;
      summed[program][gemm->c] = found->second;
    });
  }
}

bool Replicas::propagateCollective(const PlanSpec &plan, const Regions &regions,
                                   size_t program,
                                   const CollectiveStartCommand &start) {
  AxisSet over = setOf(plan.mesh, start.axes);
  bool changed = false;
  for (const CollectiveItem &item : start.items) {
    AxisSet out = variesOver[regions.ofBuffer(program, item.in)];
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
    uint32_t result = regions.ofBuffer(program, item.out);
    changed |= widen(result, out);
    // A result in its operand's place takes the place of an operand that is its
    // own.
    if (isInPlace(plan.programs[program], item))
      changed |= widen(regions.ofBuffer(program, item.in), variesOver[result]);
  }
  return changed;
}

bool Replicas::propagateCommand(const PlanSpec &plan, const Regions &regions,
                                size_t program, uint32_t number) {
  const Command &command = plan.programs[program].commands[number];
  if (auto *start = std::get_if<CollectiveStartCommand>(&command.operation))
    return propagateCollective(plan, regions, program, *start);
  auto *launch = std::get_if<LaunchCommand>(&command.operation);
  if (!launch)
    return propagateLocal(regions, program, operandsOf(command), /*axes=*/0,
                          sumsOver(program, number));
  bool changed = false;
  for (const LaunchPart &part : launch->parts)
    changed |=
        propagateLocal(regions, program, operandsOf(*launch, part),
                       setOf(plan.mesh, part.coordinateAxes), /*summed=*/0);
  return changed;
}

/// Results differ along `axes`, and along those of the operands but for
/// `summedOver`.
bool Replicas::propagateLocal(const Regions &regions, size_t program,
                              const std::vector<Operand> &operands,
                              AxisSet axes, AxisSet summedOver) {
  for (const Operand &operand : operands)
    if (!operand.isWrite)
      axes |= variesOver[regions.ofBuffer(program, operand.buffer)];
  axes &= ~summedOver;
  // All results differ alike: who computes one copy of one computes one copy of
  // each.
  for (const Operand &operand : operands)
    if (operand.isWrite)
      axes |= variesOver[regions.ofBuffer(program, operand.buffer)];
  bool changed = false;
  for (const Operand &operand : operands)
    if (operand.isWrite)
      changed |= widen(regions.ofBuffer(program, operand.buffer), axes);
  return changed;
}

bool Replicas::propagate(const PlanSpec &plan, const Regions &regions) {
  bool changed = false;
  for (size_t program = 0; program < plan.programs.size(); ++program)
    for (uint32_t i = 0; i < plan.programs[program].commands.size(); ++i)
      changed |= propagateCommand(plan, regions, program, i);
  return changed;
}

Replicas::Replicas(const PlanSpec &plan, const Regions &regions, bool share)
    : variesOver(regions.size()), sums(plan.programs.size()),
      summed(plan.programs.size()) {
  if (!share) {
    variesOver.assign(regions.size(), allOf(plan.mesh));
    return;
  }
  for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor)
    for (const std::vector<int> &axes : plan.tensors[tensor].sharding.dims)
      widen(regions.ofTensor(tensor), setOf(plan.mesh, axes));
  findSums(plan, regions);
  // Sets only grow.
  while (propagate(plan, regions)) {
  }
}
