//===- CopyShards.cpp - A tensor of a checkpoint in one pass --------------===//
//
// Threads take pieces of the tensor, as it lies in the file. Of a piece they
// read one block after the other, which the caches hold then: its checksums are
// computed, and what is still missing is copied to the devices. A shard is
// row-major, so what a piece has of it is contiguous in the shard, and the
// checksums of pieces are joined in their order.
//
// A block is read where it is to be (preadv) unless the places have its bytes
// in short runs, as narrow columns are, or not all of them: then it goes
// through a buffer.
//
//===----------------------------------------------------------------------===//

#include "checkpoint/CopyShards.h"

#include "base/CopyToMemory.h"
#include "base/Crc32.h"
#include "base/UsableCpus.h"

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"

#include <algorithm>
#include <atomic>
#include <mutex>

using namespace shardc::rt;

/// So much that a call of the system takes little of the time, and that caches
/// of the second level hold it.
static constexpr int64_t blockBytes = int64_t(1) << 17;
/// Threads stay so close together that the system, which sees one file being
/// read, reads ahead of all of them: advice on top of that (WILLNEED) made them
/// wait.
static constexpr int64_t pieceBytes = int64_t(1) << 20;
/// Runs of at least so many bytes are read in place.
static constexpr int64_t longRun = int64_t(1) << 10;
/// Holes of less are read with what is around them.
static constexpr int64_t smallHole = int64_t(1) << 14;

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

/// Bytes [begin, end) of a tensor; `data`: where they are to be or are, if
/// anywhere.
struct Range {
  int64_t begin, end;
  char *data = nullptr;
};

/// One call of `copyShards`.
class Copying {
public:
  Copying(const TensorType &type, StoredTensor tensor,
          absl::Span<const ManifestShard *const> shards,
          absl::Span<const ShardPlace> places);

  int64_t numPieces() const { return pieces; }
  void work(int worker, const std::function<void()> &onProgress);
  absl::StatusOr<std::vector<uint32_t>> sums() const;

private:
  /// What one thread needs for a block.
  struct Block {
    int64_t from = 0, to = 0;
    std::vector<Range> wanted; ///< Runs of places, ascending.
    std::vector<Range> read;   ///< Ascending and disjoint.
    std::unique_ptr<char[]> buffer;
  };

  absl::Status copyPiece(int64_t piece, Block &block);
  bool findLongRuns(Block &block) const;
  absl::Status readInPlace(Block &block) const;
  absl::Status readToBuffer(Block &block) const;
  void addToSums(int64_t piece, const Block &block);

  const TensorType &type;
  const StoredTensor tensor;
  const int64_t bytes;
  const absl::Span<const ShardPlace> places;
  std::vector<Box> checked, filled; ///< Of shards and of places.
  const int64_t pieces;
  std::vector<PartialSum> partial; ///< By piece, then shard.
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  absl::Status firstError;
};
} // namespace

Copying::Copying(const TensorType &type, StoredTensor tensor,
                 absl::Span<const ManifestShard *const> shards,
                 absl::Span<const ShardPlace> places)
    : type(type), tensor(tensor), bytes(type.bytes()), places(places),
      pieces((bytes + pieceBytes - 1) / pieceBytes),
      partial(pieces * shards.size()) {
  for (const ManifestShard *shard : shards)
    checked.emplace_back(type, Shard{shard->start, shard->shape, shard->shape});
  for (const ShardPlace &place : places)
    filled.emplace_back(type, place.shard);
}

/// Visits the part of `ranges`, ascending and disjoint, that lies within
/// [begin, end): begin, end and data of each.
static void
forEachPart(const std::vector<Range> &ranges, int64_t begin, int64_t end,
            absl::FunctionRef<void(int64_t, int64_t, const char *)> visit) {
  auto range = std::upper_bound(
      ranges.begin(), ranges.end(), begin,
      [](int64_t at, const Range &range) { return at < range.end; });
  for (; range != ranges.end() && range->begin < end; ++range) {
    int64_t first = std::max(begin, range->begin);
    visit(first, std::min(end, range->end),
          range->data + (first - range->begin));
  }
}

/// Finds the runs that places have of a block. Returns whether they are long
/// and leave none of its bytes out.
bool Copying::findLongRuns(Block &block) const {
  block.wanted.clear();
  bool areLong = true;
  for (size_t i = 0; i < filled.size() && areLong; ++i)
    if (filled[i].touches(block.from, block.to))
      forEachRunWithin(
          filled[i].shard, type.dtype, type.shape, block.from, block.to,
          [&](int64_t at, int64_t local, int64_t count) {
            // The block may cut a long one short.
            areLong &=
                count >= longRun || at == block.from || at + count == block.to;
            block.wanted.push_back({at, at + count, places[i].data + local});
          });
  if (!areLong)
    return false;
  absl::c_stable_sort(block.wanted, [](const Range &a, const Range &b) {
    return a.begin < b.begin;
  });
  int64_t end = block.from;
  for (const Range &run : block.wanted)
    if (run.begin <= end)
      end = std::max(end, run.end);
  return end == block.to;
}

/// Reads each byte of a block to the first place that wants it, and copies it
/// to the others from there.
absl::Status Copying::readInPlace(Block &block) const {
  int64_t end = block.from;
  std::vector<iovec> parts;
  for (const Range &run : block.wanted) {
    if (run.end <= end)
      continue;
    char *data = run.data + (end - run.begin);
    block.read.push_back({end, run.end, data});
    parts.push_back({data, size_t(run.end - end)});
    end = run.end;
  }
  absl::Status status =
      tensor.file.readTo(tensor.begin + block.from, std::move(parts));
  if (!status.ok())
    return status;
  for (const Range &run : block.wanted)
    forEachPart(block.read, run.begin, run.end,
                [&](int64_t first, int64_t last, const char *data) {
                  char *to = run.data + (first - run.begin);
                  if (to != data)
                    copyToMemory(to, data, last - first);
                });
  return absl::OkStatus();
}

/// Reads what is needed of a block, and small holes, and copies it to all that
/// want it.
absl::Status Copying::readToBuffer(Block &block) const {
  std::vector<Range> needed;
  for (const std::vector<Box> *boxes : {&checked, &filled})
    for (const Box &box : *boxes) {
      if (!box.touches(block.from, block.to))
        continue;
      const size_t first = needed.size();
      forEachRunWithin(box.shard, type.dtype, type.shape, block.from, block.to,
                       [&](int64_t at, int64_t, int64_t count) {
                         if (needed.size() == first ||
                             at - needed.back().end >= smallHole)
                           needed.push_back({at, at + count});
                         else
                           needed.back().end = at + count;
                       });
    }
  absl::c_sort(
      needed, [](const Range &a, const Range &b) { return a.begin < b.begin; });
  if (!block.buffer)
    block.buffer.reset(new char[std::min(blockBytes, bytes)]);
  for (size_t i = 0; i < needed.size();) {
    const int64_t begin = needed[i].begin;
    int64_t end = needed[i].end;
    for (++i; i < needed.size() && needed[i].begin - end < smallHole; ++i)
      end = std::max(end, needed[i].end);
    char *data = block.buffer.get() + (begin - block.from);
    block.read.push_back({begin, end, data});
    if (absl::Status status =
            tensor.file.read(tensor.begin + begin, data, end - begin);
        !status.ok())
      return status;
  }
  for (size_t i = 0; i < filled.size(); ++i)
    if (filled[i].touches(block.from, block.to))
      forEachRunWithin(filled[i].shard, type.dtype, type.shape, block.from,
                       block.to, [&](int64_t at, int64_t local, int64_t count) {
                         copyToMemory(places[i].data + local,
                                      block.buffer.get() + (at - block.from),
                                      count);
                       });
  return absl::OkStatus();
}

void Copying::addToSums(int64_t piece, const Block &block) {
  for (size_t i = 0; i < checked.size(); ++i) {
    if (!checked[i].touches(block.from, block.to))
      continue;
    PartialSum &sum = partial[piece * checked.size() + i];
    forEachRunWithin(checked[i].shard, type.dtype, type.shape, block.from,
                     block.to, [&](int64_t at, int64_t, int64_t count) {
                       forEachPart(
                           block.read, at, at + count,
                           [&](int64_t first, int64_t last, const char *data) {
                             sum.checksum = extendCrc32(
                                 sum.checksum, {data, size_t(last - first)});
                             sum.bytes += last - first;
                           });
                     });
  }
}

absl::Status Copying::copyPiece(int64_t piece, Block &block) {
  const int64_t end = std::min((piece + 1) * pieceBytes, bytes);
  for (int64_t from = piece * pieceBytes; from < end; from += blockBytes) {
    block.from = from;
    block.to = std::min(from + blockBytes, end);
    block.read.clear();
    if (absl::Status status =
            findLongRuns(block) ? readInPlace(block) : readToBuffer(block);
        !status.ok())
      return status;
    addToSums(piece, block);
  }
  return absl::OkStatus();
}

void Copying::work(int worker, const std::function<void()> &onProgress) {
  Block block;
  for (int64_t piece; (piece = next++) < pieces;) {
    if (absl::Status fault = copyPiece(piece, block); !fault.ok()) {
      std::lock_guard<std::mutex> guard(mutex);
      firstError.Update(fault);
      next = pieces;
    }
    if (worker == 0 && onProgress)
      onProgress();
  }
  endCopiesToMemory();
}

absl::StatusOr<std::vector<uint32_t>> Copying::sums() const {
  if (!firstError.ok())
    return firstError;
  std::vector<uint32_t> sums(checked.size());
  for (size_t i = 0; i < partial.size(); ++i) {
    uint32_t &sum = sums[i % sums.size()];
    if (partial[i].bytes > 0)
      sum = joinCrc32(sum, partial[i].checksum, partial[i].bytes);
  }
  return sums;
}

absl::StatusOr<std::vector<uint32_t>>
shardc::rt::copyShards(const TensorType &type, StoredTensor tensor,
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
