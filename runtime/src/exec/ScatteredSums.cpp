//===- ScatteredSums.cpp - Reduce-scatters that need no copy --------------===//

#include "exec/ScatteredSums.h"

#include "collectives/InProcess.h"
#include "exec/MergeGemms.h"

#include "absl/algorithm/container.h"

using namespace shardc::rt;

static const CollectiveStartCommand *scatterOf(const Command &command) {
  auto *start = std::get_if<CollectiveStartCommand>(&command.operation);
  return start && start->kind == CollectiveKind::ReduceScatter ? start
                                                               : nullptr;
}

ScatteredSums::ScatteredSums(ProgramBuffers &buffers) {
  const std::vector<Command> &commands = buffers.program().commands;
  if (!absl::c_any_of(commands, scatterOf))
    return;
  ProgramUses uses(buffers);
  for (uint32_t i = 0; i < commands.size(); ++i)
    if (auto *scatter = scatterOf(commands[i]))
      for (size_t item = 0; item < scatter->items.size(); ++item)
        add(uses, buffers, i, item);
}

bool ScatteredSums::storeInBlocks(const ProgramBuffers &buffers, uint32_t sum,
                                  int64_t columns, int64_t ofBlock) {
  if (ofBlock % GemmPieces::columnsOfPanels != 0)
    return false;
  const ProgramSpec &program = buffers.program();
  const ArenaLayout &layout = buffers.devices().layout;
  const uint32_t set = layout.aliasSetOf(buffers.number, sum);
  std::vector<uint32_t> names;
  // GEMMs alone write a sum, or add to it, or one kernel, whose rows are whole
  // (ReplicationAnalysis.h).
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    auto *gemm = std::get_if<GemmCommand>(&program.commands[i].operation);
    if (!gemm || layout.aliasSetOf(buffers.number, gemm->c) != set)
      continue;
    if (gemm->n != columns || gemm->k == 0 ||
        bindGemms(buffers, i).command.m != gemm->m ||
        program.typesOf(*gemm).factors != DType::F32)
      return false;
    names.push_back(gemm->c);
  }
  for (uint32_t name : names)
    blocks[name] = ofBlock;
  return !names.empty();
}

void ScatteredSums::add(const ProgramUses &uses, ProgramBuffers &buffers,
                        uint32_t start, size_t item) {
  const ProgramSpec &program = buffers.program();
  const DeviceSet &devices = buffers.devices();
  const CollectiveStartCommand &scatter = *scatterOf(program.commands[start]);
  auto [in, out, dim, splitDim] = scatter.items[item];
  const BufferSpec &sum = program.buffers[in], &shard = program.buffers[out];
  const int64_t shards = devices.plan.mesh.numShards(scatter.axes);
  if (!devices.layout.isSummed(buffers.number, in) || sum.stride > 0 ||
      sum.bytes != shards * shard.bytes || shard.bytes == 0 ||
      shard.bytes % devices.plan.alignment != 0 || !uses.isOwnValue(out))
    return;
  const ProgramUses::Reads reads = uses.readsOf(out, start);
  auto cannotRead = [&](uint32_t command) {
    return command <= start || std::holds_alternative<GemmCommand>(
                                   program.commands[command].operation);
  };
  if (reads.commands.empty() || absl::c_any_of(reads.commands, cannotRead) ||
      uses.isWritten(in, start + 1, reads.last))
    return;
  const Around whole(sum.shape, dim), part(shard.shape, dim);
  if (whole.outer > 1) {
    const int64_t columns = whole.size * whole.inner;
    if (!storeInBlocks(buffers, in, columns, part.size * part.inner))
      return;
  }
  inPlace.insert({start, item});
  std::vector<char *> &places = buffers.places[out];
  places.resize(devices.plan.mesh.numDevices());
  for (const std::vector<int64_t> &group :
       devices.plan.mesh.groups(scatter.axes))
    for (size_t i = 0; i < group.size(); ++i)
      places[group[i]] = buffers.address(group[i], in) + i * shard.bytes;
}
