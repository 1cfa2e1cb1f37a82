//===- GatheredFactors.cpp - All-gathers that need no copy ----------------===//

#include "exec/GatheredFactors.h"

#include "collectives/InProcess.h"
#include "exec/MergeGemms.h"

#include "absl/algorithm/container.h"

#include <algorithm>

using namespace shardc::rt;

static const CollectiveStartCommand *gatherOf(const Command &command) {
  auto *start = std::get_if<CollectiveStartCommand>(&command.operation);
  return start && start->kind == CollectiveKind::AllGather ? start : nullptr;
}

GatheredFactors::GatheredFactors(const ProgramBuffers &buffers,
                                 PreparedSteps &prepared)
    : buffers(&buffers), prepared(&prepared) {
  const std::vector<Command> &commands = buffers.program().commands;
  if (!absl::c_any_of(commands, gatherOf))
    return;
  ProgramUses uses(buffers);
  for (uint32_t i = 0; i < commands.size(); ++i)
    if (auto *gather = gatherOf(commands[i]))
      for (size_t item = 0; item < gather->items.size(); ++item)
        add(uses, i, item);
}

/// How a matrix of rows of `columns` is cut that is gathered from shards along
/// one dimension; whole if these are not blocks of its rows or columns.
static MatrixPieces piecesOf(const Around &shard, const Around &gathered,
                             int64_t columns) {
  const int64_t elements = shard.size * shard.inner;
  if (gathered.outer == 1 && elements % columns == 0)
    return {elements / columns, /*areRows=*/true, columns};
  if (gathered.size * gathered.inner == columns)
    return {elements, /*areRows=*/false, elements};
  return {};
}

void GatheredFactors::add(const ProgramUses &uses, uint32_t start,
                          size_t item) {
  const ProgramSpec &program = buffers->program();
  const CollectiveStartCommand &gather = *gatherOf(program.commands[start]);
  auto [in, out, dim, splitDim] = gather.items[item];
  const BufferSpec &from = program.buffers[in], &to = program.buffers[out];
  if (to.dtype != DType::F32 || to.bytes == 0 || from.stride > 0 ||
      buffers->places.count(in) || !uses.isOwnValue(out))
    return;
  const Readers readers = readersOf(uses, start, out);
  if (!readers.canRead || uses.isWritten(in, start + 1, readers.last))
    return;
  const Around shard(from.shape, dim), gathered(to.shape, dim);
  Factor factor{piecesOf(shard, gathered, readers.columns)};
  if (factor.pieces.isWhole())
    return;
  // The last shards may be empty.
  factor.numPieces = (gathered.size + shard.size - 1) / shard.size;
  factor.bytesOfPiece = from.bytes;
  bool areAdjacent = factor.pieces.areRows || factor.numPieces == 1;
  std::vector<std::vector<void *>> lists;
  for (const std::vector<int64_t> &group :
       buffers->devices().plan.mesh.groups(gather.axes)) {
    std::vector<void *> &list = lists.emplace_back();
    for (int64_t i = 0; i < factor.numPieces; ++i) {
      char *piece = buffers->address(group[i], in);
      areAdjacent &=
          i == 0 || piece == static_cast<char *>(list.back()) + from.bytes;
      list.push_back(piece);
    }
    for (int64_t device : group)
      factor.addresses.try_emplace(buffers->address(device, out), list);
  }
  if (areAdjacent) {
    factor.pieces = {};
    factor.numPieces = 1;
    factor.bytesOfPiece = to.bytes;
  } else if (factor.pieces.extent < minExtent) {
    return;
  }
  absl::c_move(lists, std::back_inserter(prepared->pieces));
  factors.emplace(out, std::move(factor));
  inPlace.insert({start, item});
}

/// Whether a GEMM reads `buffer` as factors, whose pieces suffice.
bool GatheredFactors::canRead(uint32_t command, uint32_t buffer) const {
  const ProgramSpec &program = buffers->program();
  auto *gemm = std::get_if<GemmCommand>(&program.commands[command].operation);
  if (!gemm || gemm->batch != 1 || program.typesOf(*gemm).factors != DType::F32)
    return false;
  const bool isA = gemm->a == buffer, isB = gemm->b == buffer;
  // Both may divide its elements into rows of their own.
  if (isA && isB)
    return false;
  if (gemm->bias == static_cast<int32_t>(buffer) || gemm->c == buffer ||
      (gemm->columnSums >= 0 && (gemm->columnSumsOf == Summed::A ? isA : isB)))
    return false;
  // Rather than to merge what is apart, nothing is copied.
  const GemmCommand merged =
      bindGemms(*buffers, command, {false, false}).command;
  return merged.k == gemm->k && (!isA || merged.m == gemm->m);
}

GatheredFactors::Readers GatheredFactors::readersOf(const ProgramUses &uses,
                                                    uint32_t start,
                                                    uint32_t buffer) const {
  const ProgramUses::Reads reads = uses.readsOf(buffer, start);
  Readers readers;
  readers.last = reads.last;
  for (uint32_t command : reads.commands) {
    if (command <= start || !canRead(command, buffer))
      return {};
    auto &gemm =
        std::get<GemmCommand>(buffers->program().commands[command].operation);
    const int64_t columns = gemm.a == buffer ? gemm.transposeA ? gemm.m : gemm.k
                            : gemm.transposeB ? gemm.k
                                              : gemm.n;
    if (readers.canRead && readers.columns != columns)
      return {};
    readers.columns = columns;
    readers.canRead = true;
  }
  return readers;
}
