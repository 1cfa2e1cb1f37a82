//===- CopyShards.cpp - A tensor of a checkpoint in one pass --------------===//
//
// Threads take pieces of the tensor, as it lies in the file. Of a piece they
// take one block after the other, which the caches hold: its checksums are
// computed, then it is copied to the devices. A shard is row-major, so what a
// piece has of it is contiguous in the shard, and the checksums of pieces are
// joined in their order.
//
//===----------------------------------------------------------------------===//

#include "checkpoint/CopyShards.h"

#include "base/CopyToMemory.h"
#include "base/Crc32.h"
#include "base/UsableCpus.h"

#include <algorithm>
#include <atomic>

using namespace shardc::rt;

static constexpr int64_t blockBytes = int64_t(1) << 16;
static constexpr int64_t pieceBytes = int64_t(1) << 20;
/// What the disk reads while pieces before it are copied.
static constexpr int64_t piecesAhead = 32;

std::unique_ptr<WorkerPool> shardc::rt::makeReaders(uint64_t bytes) {
  // A few threads are as fast as memory is.
  constexpr int most = 8;
  int threads = bytes <= uint64_t(pieceBytes) ? 1 : findUsableCpus().count();
  return std::make_unique<WorkerPool>(std::min(threads, most));
}

namespace {
/// A part of a tensor, and the bytes of the tensor that it lies within.
struct Box {
  Box(const TensorType &type, Shard part) : shard(std::move(part)) {
    int64_t width = byteSize(type.dtype), last = 0;
    bytes = numElements(shard.valid) * width;
    for (size_t dim = 0; dim < type.shape.size(); ++dim) {
      begin = begin * type.shape[dim] + shard.start[dim];
      last = last * type.shape[dim] + shard.start[dim] + shard.valid[dim] - 1;
    }
    begin *= width;
    end = (last + 1) * width;
  }

  bool touches(int64_t from, int64_t to) const {
    return bytes > 0 && begin < to && from < end;
  }

  Shard shard;
  int64_t begin = 0, end = 0;
  int64_t bytes; ///< Of the part itself.
};

/// What a piece has of a shard.
struct PartialSum {
  uint32_t checksum = 0;
  int64_t bytes = 0;
};

/// One call of `copyShards`.
class Copying {
public:
  Copying(const TensorType &type, absl::string_view tensor,
          absl::Span<const ManifestShard *const> shards,
          absl::Span<const ShardPlace> places);

  int64_t numPieces() const { return pieces; }
  void work(int worker, const std::function<void()> &onProgress);
  std::vector<uint32_t> sums() const;

private:
  void copyPiece(int64_t piece);
  void askFor(int64_t piece) const;

  const TensorType &type;
  const absl::string_view tensor;
  const absl::Span<const ShardPlace> places;
  std::vector<Box> checked, filled; ///< Of shards and of places.
  const int64_t pieces;
  std::vector<PartialSum> partial; ///< By piece, then shard.
  std::atomic<int64_t> next{0};
};
} // namespace

Copying::Copying(const TensorType &type, absl::string_view tensor,
                 absl::Span<const ManifestShard *const> shards,
                 absl::Span<const ShardPlace> places)
    : type(type), tensor(tensor), places(places),
      pieces((int64_t(tensor.size()) + pieceBytes - 1) / pieceBytes),
      partial(pieces * shards.size()) {
  for (const ManifestShard *shard : shards)
    checked.emplace_back(type, Shard{shard->start, shard->shape, shard->shape});
  for (const ShardPlace &place : places)
    filled.emplace_back(type, place.shard);
}

/// Asks the system for a piece of which at least a half is needed.
void Copying::askFor(int64_t piece) const {
  const int64_t from = piece * pieceBytes;
  if (from >= int64_t(tensor.size()))
    return;
  for (const std::vector<Box> *boxes : {&checked, &filled}) {
    double share = 0;
    for (const Box &box : *boxes)
      if (box.touches(from, from + pieceBytes))
        share += double(box.bytes) / double(box.end - box.begin);
    if (share >= 0.5)
      return readAhead(tensor.substr(from, pieceBytes));
  }
}

void Copying::copyPiece(int64_t piece) {
  const int64_t end =
      std::min<int64_t>((piece + 1) * pieceBytes, tensor.size());
  for (int64_t from = piece * pieceBytes; from < end; from += blockBytes) {
    const int64_t to = std::min(from + blockBytes, end);
    for (size_t i = 0; i < checked.size(); ++i) {
      if (!checked[i].touches(from, to))
        continue;
      PartialSum &sum = partial[piece * checked.size() + i];
      forEachRunWithin(checked[i].shard, type.dtype, type.shape, from, to,
                       [&](int64_t at, int64_t, int64_t bytes) {
                         sum.checksum = extendCrc32(sum.checksum,
                                                    tensor.substr(at, bytes));
                         sum.bytes += bytes;
                       });
    }
    for (size_t i = 0; i < filled.size(); ++i)
      if (filled[i].touches(from, to))
        forEachRunWithin(filled[i].shard, type.dtype, type.shape, from, to,
                         [&](int64_t at, int64_t local, int64_t bytes) {
                           copyToMemory(places[i].data + local,
                                        tensor.data() + at, bytes);
                         });
  }
}

void Copying::work(int worker, const std::function<void()> &onProgress) {
  for (int64_t piece; (piece = next++) < pieces;) {
    for (int64_t other = piece == 0 ? 0 : piece + piecesAhead;
         pieces > 1 && other <= piece + piecesAhead; ++other)
      askFor(other);
    copyPiece(piece);
    if (worker == 0 && onProgress)
      onProgress();
  }
  endCopiesToMemory();
}

std::vector<uint32_t> Copying::sums() const {
  std::vector<uint32_t> sums(checked.size());
  for (size_t i = 0; i < partial.size(); ++i) {
    uint32_t &sum = sums[i % sums.size()];
    if (partial[i].bytes > 0)
      sum = joinCrc32(sum, partial[i].checksum, partial[i].bytes);
  }
  return sums;
}

std::vector<uint32_t>
shardc::rt::copyShards(const TensorType &type, absl::string_view tensor,
                       absl::Span<const ManifestShard *const> checked,
                       absl::Span<const ShardPlace> places, WorkerPool &readers,
                       const std::function<void()> &onProgress) {
  Copying copying(type, tensor, checked, places);
  if (copying.numPieces() > 1)
    readers.run([&](int worker) { copying.work(worker, onProgress); });
  else
    copying.work(0, nullptr);
  if (onProgress)
    onProgress();
  return copying.sums();
}

bool shardc::rt::holdAll(absl::Span<const ShardPlace> places,
                         const ManifestShard &shard) {
  int64_t held = 0;
  for (const ShardPlace &place : places) {
    int64_t common = 1;
    for (size_t dim = 0; dim < shard.shape.size(); ++dim)
      common *= std::max<int64_t>(
          0, std::min(shard.start[dim] + shard.shape[dim],
                      place.shard.start[dim] + place.shard.valid[dim]) -
                 std::max(shard.start[dim], place.shard.start[dim]));
    held += common;
  }
  return held == numElements(shard.shape);
}
