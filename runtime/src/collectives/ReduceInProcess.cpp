//===- ReduceInProcess.cpp - Sums and maxima over virtual devices ---------===//

#include "collectives/InProcess.h"
#include "shardc-rt/HostArray.h"

#include <cstring>

using namespace shardc::rt;

namespace {

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
        // A value in its place needs no copy.
        if (ofGroup.sources.size() == 1)
          served.insert(const_cast<void *>(ofGroup.sources[0].data));
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
    std::vector<ReduceOperand> sources;
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
    std::vector<ReduceOperand> sources = operands(tensor, group);
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

} // namespace

std::unique_ptr<PreparedCollective>
shardc::rt::prepareAllReduce(const Mesh &mesh, CollectiveSpec spec) {
  return std::make_unique<AllReduce>(mesh, std::move(spec));
}

std::unique_ptr<PreparedCollective>
shardc::rt::prepareReduceScatter(const Mesh &mesh, CollectiveSpec spec) {
  return std::make_unique<ReduceScatter>(mesh, std::move(spec));
}
