//===- BoxTable.cpp - The boxes of a launch -------------------------------===//

#include "backends/cuda/BoxTable.h"

#include <algorithm>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

namespace {

/// A box in units.
struct Piece {
  BoxReduction box;
  uint64_t unit; ///< Bytes.

  uint64_t units() const { return box.width / unit * box.height; }
};

} // namespace

/// The largest power of two up to a vector that divides all addresses, and the
/// pitches if there are several rows.
static uint64_t alignmentOf(const BoxReduction &box) {
  uint64_t bits = vectorBytes;
  if (box.height > 1)
    bits |= box.inPitch | box.outPitch;
  for (CUdeviceptr address : box.operands)
    bits |= address;
  for (CUdeviceptr address : box.results)
    bits |= address;
  return bits & -bits;
}

/// Adds the pieces of a box that have the largest units.
static void addPieces(BoxReduction box, uint64_t elementBytes,
                      std::vector<Piece> &pieces) {
  if (box.inPitch == box.width && box.outPitch == box.width) {
    box.width *= box.height;
    box.height = 1;
  }
  while (box.width > 0 && box.height > 0) {
    uint64_t unit = alignmentOf(box);
    if (unit > box.width)
      unit = box.width & -box.width;
    if (elementBytes > 0 && unit < vectorBytes)
      unit = elementBytes;
    Piece piece{box, unit};
    piece.box.width -= box.width % unit;
    pieces.push_back(piece);
    for (CUdeviceptr &address : box.operands)
      address += piece.box.width;
    for (CUdeviceptr &address : box.results)
      address += piece.box.width;
    box.width -= piece.box.width;
  }
}

static uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

template <typename T>
static void append(std::vector<char> &bytes, const T *data, size_t count) {
  const char *begin = reinterpret_cast<const char *>(data);
  bytes.insert(bytes.end(), begin, begin + count * sizeof(T));
}

BoxTable shardc::rt::cuda::makeBoxTable(absl::Span<const BoxReduction> boxes,
                                        uint64_t elementBytes, uint64_t threads,
                                        uint64_t maxBlocks) {
  std::vector<Piece> pieces;
  for (const BoxReduction &box : boxes)
    addPieces(box, elementBytes, pieces);
  // A turn is a unit for each thread of a block.
  uint64_t turns = 0;
  for (const Piece &piece : pieces)
    turns += ceilDiv(piece.units(), threads);
  const uint64_t turnsOfBlock =
      std::max<uint64_t>(ceilDiv(turns, maxBlocks), 1);
  BoxTable table;
  for (const Piece &piece : pieces) {
    const BoxReduction &box = piece.box;
    const uint64_t blocks = ceilDiv(piece.units(), threads * turnsOfBlock);
    const uint64_t step = blocks * threads, width = box.width / piece.unit;
    BoxEntry entry{};
    entry.width = width;
    entry.height = box.height;
    entry.inPitch = box.inPitch;
    entry.outPitch = box.outPitch;
    entry.rowStep = step / width;
    entry.columnStep = step % width;
    entry.firstBlock = table.entryOfBlock.size();
    while (uint64_t(1) << entry.unitShift < piece.unit)
      ++entry.unitShift;
    append(table.entries, &entry, 1);
    append(table.entries, box.operands.data(), box.operands.size());
    append(table.entries, box.results.data(), box.results.size());
    table.entryOfBlock.insert(table.entryOfBlock.end(), blocks,
                              &piece - pieces.data());
  }
  return table;
}
