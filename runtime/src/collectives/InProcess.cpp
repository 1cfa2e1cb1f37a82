//===- InProcess.cpp - Collectives between virtual devices ----------------===//
//
// Peers' buffers are read where they are. Work is cut into tasks by shape
// alone, and every element is reduced in the order of its group, so that the
// bits do not depend on the number of workers. A result that devices share is
// computed once.
//
//===----------------------------------------------------------------------===//

#include "collectives/Reduce.h"
#include "shardc-rt/Collectives.h"
#include "shardc-rt/HostArray.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt;

namespace {

/// A row-major tensor as [outer, size, inner] around one dimension.
struct Around {
  int64_t outer = 1, size = 1, inner = 1;

  Around(absl::Span<const int64_t> shape, int dim) {
    for (int i = 0; i < static_cast<int>(shape.size()); ++i)
      (i < dim ? outer : i == dim ? size : inner) *= shape[i];
  }
};

/// What all kinds share: the spec and its groups, expanded.
class InProcessBase : public PreparedCollective {
public:
  InProcessBase(const Mesh &mesh, CollectiveSpec spec)
      : spec(std::move(spec)), groups(mesh.groups(this->spec.axes)),
        shards(mesh.numShards(this->spec.axes)) {}

  int64_t numTasks() const override { return tasks.size(); }

  absl::Status runTask(int64_t task) override {
    run(tasks[task]);
    return absl::OkStatus();
  }

protected:
  struct Task {
    int32_t tensor, group;
    int32_t member;     ///< Whose result, where a task serves one member.
    int64_t begin, end; ///< Elements or rows, as the kind understands them.
  };

  virtual void run(const Task &task) = 0;

  /// Tasks for blocks of `block` of [0, size).
  void cutBlocks(size_t tensor, size_t group, int64_t member, int64_t size,
                 int64_t block) {
    for (int64_t begin = 0; begin < size; begin += block)
      tasks.push_back(
          {static_cast<int32_t>(tensor), static_cast<int32_t>(group),
           static_cast<int32_t>(member), begin, std::min(size, begin + block)});
  }

  /// One task per tensor, result and `block` of `extent(tensor, member)`.
  template <typename Extent>
  void cut(int64_t block, Extent extent) {
    for (size_t tensor = 0; tensor < spec.tensors.size(); ++tensor) {
      absl::flat_hash_set<void *> served;
      for (size_t group = 0; group < groups.size(); ++group)
        for (int64_t member = 0; member < shards; ++member)
          if (served.insert(spec.tensors[tensor].out[groups[group][member]])
                  .second)
            cutBlocks(tensor, group, member,
                      extent(spec.tensors[tensor], member), block);
    }
  }

  /// What is reduced for the members of a group, in order.
  std::vector<const void *> operands(const CollectiveTensor &tensor,
                                     const std::vector<int64_t> &group) const {
    std::vector<const void *> result;
    for (int64_t device : group)
      result.push_back(tensor.in[device]);
    if (tensor.isReduced)
      result.resize(1);
    return result;
  }

  /// First row and number of rows of member `member` of a dimension.
  std::pair<int64_t, int64_t> rows(int64_t size, int64_t member) const {
    int64_t shard = (size + shards - 1) / shards;
    int64_t start = std::min(member * shard, size);
    return {start, std::min(shard, size - start)};
  }

  CollectiveSpec spec;
  std::vector<std::vector<int64_t>> groups;
  int64_t shards;
  std::vector<Task> tasks;
};

/// Each block is reduced once and written to every result.
class AllReduce : public InProcessBase {
public:
  AllReduce(const Mesh &mesh, CollectiveSpec s)
      : InProcessBase(mesh, std::move(s)) {
    places.resize(spec.tensors.size() * groups.size());
    for (size_t i = 0; i < spec.tensors.size(); ++i) {
      const CollectiveTensor &tensor = spec.tensors[i];
      absl::flat_hash_set<void *> served;
      for (size_t group = 0; group < groups.size(); ++group) {
        Places &ofGroup = places[i * groups.size() + group];
        ofGroup.sources = operands(tensor, groups[group]);
        // What is in its place needs no moving.
        if (ofGroup.sources.size() == 1)
          served.insert(const_cast<void *>(ofGroup.sources[0]));
        for (int64_t device : groups[group])
          if (served.insert(tensor.out[device]).second)
            ofGroup.results.push_back(static_cast<char *>(tensor.out[device]));
        if (!ofGroup.results.empty())
          cutBlocks(i, group, /*member=*/0, numElements(tensor.inShape),
                    maxReduceBlock);
      }
    }
  }

private:
  struct Places {
    std::vector<const void *> sources;
    std::vector<char *> results;
  };

  void run(const Task &task) override {
    const CollectiveTensor &tensor = spec.tensors[task.tensor];
    const Places &place = places[task.tensor * groups.size() + task.group];
    int64_t width = byteSize(tensor.dtype), start = task.begin * width;
    char *first = place.results[0] + start;
    reduceBlock(tensor.dtype, spec.reduction, place.sources, task.begin,
                task.end - task.begin, first);
    for (size_t i = 1; i < place.results.size(); ++i)
      std::memcpy(place.results[i] + start, first,
                  (task.end - task.begin) * width);
  }

  /// By tensor, then group.
  std::vector<Places> places;
};

/// A task gathers one member's result, some outer rows of it.
class AllGather : public InProcessBase {
public:
  AllGather(const Mesh &mesh, CollectiveSpec s)
      : InProcessBase(mesh, std::move(s)) {
    cut(1024, [](const CollectiveTensor &tensor, int64_t) {
      return Around(tensor.outShape, tensor.dim).outer;
    });
  }

private:
  void run(const Task &task) override {
    const CollectiveTensor &tensor = spec.tensors[task.tensor];
    const std::vector<int64_t> &group = groups[task.group];
    Around in(tensor.inShape, tensor.dim), out(tensor.outShape, tensor.dim);
    int64_t rowBytes = out.inner * byteSize(tensor.dtype);
    char *result = static_cast<char *>(tensor.out[group[task.member]]);
    for (int64_t outer = task.begin; outer < task.end; ++outer)
      for (int64_t peer = 0; peer < shards; ++peer) {
        auto [start, count] = rows(out.size, peer);
        if (count > 0)
          std::memcpy(result + (outer * out.size + start) * rowBytes,
                      static_cast<const char *>(tensor.in[group[peer]]) +
                          outer * in.size * rowBytes,
                      count * rowBytes);
      }
  }
};

/// A task reduces a run of one member's result.
class ReduceScatter : public InProcessBase {
public:
  ReduceScatter(const Mesh &mesh, CollectiveSpec s)
      : InProcessBase(mesh, std::move(s)) {
    // The elements of a member's result, row by row of the outer dimensions.
    cut(maxReduceBlock, [this](const CollectiveTensor &tensor, int64_t member) {
      Around in(tensor.inShape, tensor.dim);
      return in.outer * rows(in.size, member).second * in.inner;
    });
  }

private:
  void run(const Task &task) override {
    const CollectiveTensor &tensor = spec.tensors[task.tensor];
    const std::vector<int64_t> &group = groups[task.group];
    Around in(tensor.inShape, tensor.dim), out(tensor.outShape, tensor.dim);
    auto [start, count] = rows(in.size, task.member);
    int64_t runLength = count * in.inner; // contiguous elements per outer row
    char *result = static_cast<char *>(tensor.out[group[task.member]]);
    std::vector<const void *> sources = operands(tensor, group);
    for (int64_t element = task.begin; element < task.end;) {
      int64_t outer = element / runLength, within = element % runLength;
      int64_t length = std::min(runLength - within, task.end - element);
      reduceBlock(tensor.dtype, spec.reduction, sources,
                  (outer * in.size + start) * in.inner + within, length,
                  result + (outer * out.size * out.inner + within) *
                               byteSize(tensor.dtype));
      element += length;
    }
  }
};

/// A task assembles one member's result from all peers.
class AllToAll : public InProcessBase {
public:
  AllToAll(const Mesh &mesh, CollectiveSpec s)
      : InProcessBase(mesh, std::move(s)) {
    cut(1, [](const CollectiveTensor &, int64_t) { return 1; });
  }

private:
  void run(const Task &task) override {
    const CollectiveTensor &tensor = spec.tensors[task.tensor];
    const std::vector<int64_t> &group = groups[task.group];
    for (int64_t peer = 0; peer < shards; ++peer)
      copyFromPeer(tensor, tensor.in[group[peer]],
                   tensor.out[group[task.member]], peer, task.member);
  }

  /// The part of `peer`'s operand that `member` gets: its rows of the split
  /// dimension, which become the peer's rows of the concatenated one.
  void copyFromPeer(const CollectiveTensor &tensor, const void *in, void *out,
                    int64_t peer, int64_t member) const {
    auto [splitStart, splitCount] =
        rows(tensor.inShape[tensor.splitDim], member);
    auto [concatStart, concatCount] = rows(tensor.outShape[tensor.dim], peer);
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
      std::memcpy(static_cast<char *>(out) + offset(tensor.outShape, false),
                  static_cast<const char *>(in) + offset(tensor.inShape, true),
                  run);
      int dim = last - 1;
      while (dim >= 0 && ++index[dim] == extent[dim])
        index[dim--] = 0;
      if (dim < 0)
        return;
    }
  }
};

/// A task copies some bytes of one device's result.
class CollectivePermute : public InProcessBase {
public:
  CollectivePermute(const Mesh &mesh, CollectiveSpec s)
      : InProcessBase(mesh, std::move(s)) {
    sourceOf.resize(mesh.numDevices());
    for (const std::vector<int64_t> &group : groups)
      for (int64_t device : group)
        sourceOf[device] = group[mesh.index(device, spec.targetAxes)];
    cut(int64_t(1) << 16, [](const CollectiveTensor &tensor, int64_t) {
      return numElements(tensor.inShape) * byteSize(tensor.dtype);
    });
  }

private:
  void run(const Task &task) override {
    const CollectiveTensor &tensor = spec.tensors[task.tensor];
    int64_t device = groups[task.group][task.member];
    std::memcpy(static_cast<char *>(tensor.out[device]) + task.begin,
                static_cast<const char *>(tensor.in[sourceOf[device]]) +
                    task.begin,
                task.end - task.begin);
  }

  std::vector<int64_t> sourceOf;
};

class InProcessCollectives : public Collectives {
public:
  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override {
    for (const CollectiveTensor &tensor : spec.tensors) {
      if (tensor.in.size() != static_cast<size_t>(mesh.numDevices()) ||
          tensor.out.size() != tensor.in.size())
        return absl::InvalidArgumentError(
            absl::StrCat("an in-process collective needs the buffers of all ",
                         mesh.numDevices(), " devices"));
      if (tensor.dtype == DType::Bool && spec.reduction == Reduction::Sum &&
          (spec.kind == CollectiveKind::AllReduce ||
           spec.kind == CollectiveKind::ReduceScatter))
        return absl::InvalidArgumentError("booleans cannot be summed");
    }
    switch (spec.kind) {
    case CollectiveKind::AllReduce:
      return std::make_unique<AllReduce>(mesh, std::move(spec));
    case CollectiveKind::AllGather:
      return std::make_unique<AllGather>(mesh, std::move(spec));
    case CollectiveKind::ReduceScatter:
      return std::make_unique<ReduceScatter>(mesh, std::move(spec));
    case CollectiveKind::AllToAll:
      return std::make_unique<AllToAll>(mesh, std::move(spec));
    case CollectiveKind::CollectivePermute:
      return std::make_unique<CollectivePermute>(mesh, std::move(spec));
    }
    return absl::InvalidArgumentError("unknown collective");
  }
};

} // namespace

std::unique_ptr<Collectives> shardc::rt::createInProcessCollectives() {
  return std::make_unique<InProcessCollectives>();
}
