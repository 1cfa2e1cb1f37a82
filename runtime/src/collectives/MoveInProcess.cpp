//===- MoveInProcess.cpp - Moves between virtual devices ------------------===//

#include "collectives/InProcess.h"
#include "shardc-rt/HostArray.h"

#include <cstring>
#include <tuple>

using namespace shardc::rt;

namespace {

/// The collectives that copy.
class Moves : public InProcessBase {
public:
  using InProcessBase::InProcessBase;

  bool visitAccesses(int64_t begin, int64_t end,
                     VisitBytes visit) const override {
    if (!isListed)
      return false;
    for (int64_t i = firstOf(begin); i < firstOf(end); ++i) {
      visit(copies[i].from, copies[i].bytes, false);
      visit(copies[i].to, copies[i].bytes, true);
    }
    return true;
  }
  bool isShort() const override { return isListed; }

protected:
  using Visit =
      absl::FunctionRef<void(char *to, const char *from, int64_t bytes)>;

  virtual void forEachCopy(const Task &task, Visit visit) const = 0;

  void run(const Task &task) override {
    forEachCopy(task, [](char *to, const char *from, int64_t bytes) {
      std::memcpy(to, from, bytes);
    });
  }
  void list(const Task &task) override {
    forEachCopy(task, [this](char *to, const char *from, int64_t bytes) {
      copies.push_back({to, from, bytes});
    });
  }
  int64_t listed() const override { return copies.size(); }
  uint64_t bytesReadByList() const override {
    uint64_t sum = 0;
    for (const Copy &copy : copies)
      sum += copy.bytes;
    return sum;
  }
  void dropList() override { copies = {}; }
  void runList(int64_t begin, int64_t end) override {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(copies[i].to, copies[i].from, copies[i].bytes);
  }

private:
  struct Copy {
    char *to;
    const char *from;
    int64_t bytes;
  };
  std::vector<Copy> copies;
};

/// A task gathers some bytes of one member's result.
class AllGather : public Moves {
public:
  AllGather(const Mesh &mesh, CollectiveSpec s) : Moves(mesh, std::move(s)) {
    const int64_t block = blockOf(bytes(), 1 << 11, 1 << 16);
    cut(block, [](const CollectiveTensor &tensor, int64_t) {
      return numElements(tensor.outShape) * byteSize(tensor.dtype);
    });
  }

private:
  void forEachCopy(const Task &task, Visit visit) const override {
    const CollectiveTensor &tensor = spec.tensors[task.tensor];
    const std::vector<int64_t> &group = groups[task.group];
    Around in(tensor.inShape, tensor.dim), out(tensor.outShape, tensor.dim);
    int64_t rowBytes = out.inner * byteSize(tensor.dtype);
    // The result is slices, each the rows of peer after peer.
    int64_t sliceBytes = out.size * rowBytes;
    int64_t peerBytes = rows(out.size, 0).second * rowBytes;
    char *result = static_cast<char *>(tensor.out[group[task.member]]);
    int64_t outer = task.begin / sliceBytes, place = task.begin % sliceBytes;
    int64_t peer = place / peerBytes;
    for (int64_t at = task.begin; at < task.end;) {
      int64_t peerEnd = std::min((peer + 1) * peerBytes, sliceBytes);
      int64_t count = std::min(peerEnd - place, task.end - at);
      visit(result + at,
            static_cast<const char *>(tensor.in[group[peer]]) +
                outer * in.size * rowBytes + place - peer * peerBytes,
            count);
      at += count;
      place += count;
      ++peer;
      if (place == sliceBytes) {
        ++outer;
        place = peer = 0;
      }
    }
  }
};

/// A task assembles one member's result from all peers.
class AllToAll : public Moves {
public:
  AllToAll(const Mesh &mesh, CollectiveSpec s) : Moves(mesh, std::move(s)) {
    cut(1, [](const CollectiveTensor &, int64_t) { return 1; });
  }

private:
  void forEachCopy(const Task &task, Visit visit) const override {
    const CollectiveTensor &tensor = spec.tensors[task.tensor];
    const std::vector<int64_t> &group = groups[task.group];
    for (int64_t peer = 0; peer < shards; ++peer)
      copyFromPeer(tensor, tensor.in[group[peer]],
                   tensor.out[group[task.member]], peer, task.member, visit);
  }

  /// The part of `peer`'s operand that `member` gets: its rows of the split
  /// dimension, which become the peer's rows of the concatenated one.
  void copyFromPeer(const CollectiveTensor &tensor, const void *in, void *out,
                    int64_t peer, int64_t member, Visit visit) const {
    int64_t splitStart, splitCount, concatStart, concatCount;
    std::tie(splitStart, splitCount) =
        rows(tensor.inShape[tensor.splitDim], member);
    std::tie(concatStart, concatCount) =
        rows(tensor.outShape[tensor.dim], peer);
    int rank = tensor.inShape.size();
    std::vector<int64_t> extent(tensor.inShape), index(rank);
    extent[tensor.splitDim] = splitCount;
    extent[tensor.dim] = concatCount;
    if (numElements(extent) == 0)
      return;
    // Dimensions after both move as one run.
    int last = std::max(tensor.splitDim, tensor.dim);
    int64_t run = byteSize(tensor.dtype);
    for (int dim = last + 1; dim < rank; ++dim)
      run *= extent[dim];
    run *= extent[last];
    auto offset = [&](absl::Span<const int64_t> shape, bool isIn) {
      int64_t linear = 0;
      for (int dim = 0; dim <= last; ++dim) {
        int64_t start = isIn && dim == tensor.splitDim ? splitStart
                        : !isIn && dim == tensor.dim   ? concatStart
                                                       : 0;
        linear = linear * shape[dim] + index[dim] + start;
      }
      for (int dim = last + 1; dim < rank; ++dim)
        linear *= shape[dim];
      return linear * byteSize(tensor.dtype);
    };
    for (;;) {
      visit(static_cast<char *>(out) + offset(tensor.outShape, false),
            static_cast<const char *>(in) + offset(tensor.inShape, true), run);
      int dim = last - 1;
      while (dim >= 0 && ++index[dim] == extent[dim])
        index[dim--] = 0;
      if (dim < 0)
        return;
    }
  }
};

/// A task copies some bytes of one device's result.
class CollectivePermute : public Moves {
public:
  CollectivePermute(const Mesh &mesh, CollectiveSpec s)
      : Moves(mesh, std::move(s)) {
    sourceOf.resize(mesh.numDevices());
    for (const std::vector<int64_t> &group : groups)
      for (int64_t device : group)
        sourceOf[device] = group[spec.sourceOf(mesh, device)];
    const int64_t block = blockOf(bytes(), 1 << 11, 1 << 16);
    cut(block, [](const CollectiveTensor &tensor, int64_t) {
      return numElements(tensor.inShape) * byteSize(tensor.dtype);
    });
  }

private:
  void forEachCopy(const Task &task, Visit visit) const override {
    const CollectiveTensor &tensor = spec.tensors[task.tensor];
    int64_t device = groups[task.group][task.member];
    visit(static_cast<char *>(tensor.out[device]) + task.begin,
          static_cast<const char *>(tensor.in[sourceOf[device]]) + task.begin,
          task.end - task.begin);
  }

  std::vector<int64_t> sourceOf;
};

} // namespace

std::unique_ptr<PreparedCollective>
shardc::rt::prepareAllGather(const Mesh &mesh, CollectiveSpec spec) {
  auto prepared = std::make_unique<AllGather>(mesh, std::move(spec));
  prepared->listIfFew();
  return prepared;
}

std::unique_ptr<PreparedCollective>
shardc::rt::prepareAllToAll(const Mesh &mesh, CollectiveSpec spec) {
  auto prepared = std::make_unique<AllToAll>(mesh, std::move(spec));
  prepared->listIfFew();
  return prepared;
}

std::unique_ptr<PreparedCollective>
shardc::rt::prepareCollectivePermute(const Mesh &mesh, CollectiveSpec spec) {
  auto prepared = std::make_unique<CollectivePermute>(mesh, std::move(spec));
  prepared->listIfFew();
  return prepared;
}
