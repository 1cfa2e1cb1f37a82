//===- NcclPlanner.h - The copies and calls of a collective -----*- C++ -*-===//
//
// A collective is copies into scratch memory, calls of NCCL in one group, and
// copies out of it. An all-reduce needs no copies; an all-gather or
// reduce-scatter none where the dimension is the outermost and divides evenly.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_NCCLPLANNER_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_NCCLPLANNER_H

#include "backends/cuda/BoxCopy.h"
#include "collectives/Collectives.h"
#include "shardc-rt/HostArray.h"

#include <algorithm>

namespace shardc::rt::cuda {

/// An address, or an offset in scratch memory.
struct Place {
  bool isScratch = false;
  CUdeviceptr at = 0;

  CUdeviceptr resolve(CUdeviceptr scratch) const {
    return isScratch ? scratch + at : at;
  }
};

struct Move {
  Copy2D copy;
  bool fromScratch, toScratch;
};

struct Call {
  enum Kind { AllReduce, AllGather, ReduceScatter, Send, Receive };
  Kind kind;
  Place in, out;
  uint64_t count; ///< Elements: of an operand, or if scattered of a result.
  int peer = 0;
};

/// The copies and calls of a device for one tensor.
struct Work {
  std::vector<Move> before, after;
  std::vector<std::pair<Call, int>> calls; ///< With their type.
};

/// Adds the work of one collective for one device.
class NcclPlanner {
public:
  NcclPlanner(const Mesh &mesh, const CollectiveSpec &spec, int64_t device,
              Work &work, uint64_t &scratchBytes)
      : mesh(mesh), spec(spec), device(device),
        me(mesh.index(device, spec.axes)), shards(mesh.numShards(spec.axes)),
        work(work), scratchBytes(scratchBytes) {}

  void add(const CollectiveTensor &tensor, size_t place);

private:
  using Shape = std::vector<int64_t>;

  /// First row and number of rows of member `member` of a dimension.
  std::pair<int64_t, int64_t> rows(int64_t size, int64_t member) const {
    int64_t shard = (size + shards - 1) / shards;
    int64_t start = std::min(member * shard, size);
    return {start, std::min(shard, size - start)};
  }
  Place take(uint64_t bytes) {
    Place place{true, scratchBytes};
    scratchBytes += (bytes + 255) / 256 * 256;
    return place;
  }
  uint64_t bytesOf(absl::Span<const int64_t> shape) const {
    return numElements(shape) * byteSize(dtype);
  }
  void call(Call::Kind kind, Place in, Place out, uint64_t count,
            int64_t peer = 0);
  void move(std::vector<Move> &list, Place in, const Shape &inShape,
            const Shape &inStart, Place out, const Shape &outShape,
            const Shape &outStart, const Shape &extent) {
    for (const Copy2D &copy :
         copyBox({in.at, inShape, inStart}, {out.at, outShape, outStart},
                 extent, byteSize(dtype)))
      list.push_back({copy, in.isScratch, out.isScratch});
  }
  /// Whether the members' parts of `whole` along `dim` have shape `part` and
  /// are contiguous.
  bool areBehindEachOther(const Shape &whole, const Shape &part,
                          int dim) const {
    return numElements(absl::MakeSpan(whole).subspan(0, dim)) == 1 &&
           whole[dim] == shards * part[dim];
  }

  void allGather(const CollectiveTensor &tensor, Place in, Place out);
  void reduceScatter(const CollectiveTensor &tensor, Place in, Place out);
  void allToAll(const CollectiveTensor &tensor, Place in, Place out);
  void permute(const CollectiveTensor &tensor, Place in, Place out);

  const Mesh &mesh;
  const CollectiveSpec &spec;
  const int64_t device, me, shards;
  DType dtype = DType::F32;
  Work &work;
  uint64_t &scratchBytes;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_NCCLPLANNER_H
