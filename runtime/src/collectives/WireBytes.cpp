//===- WireBytes.cpp - The bytes that a collective sends ------------------===//

#include "collectives/Collectives.h"
#include "shardc-rt/HostArray.h"

#include "absl/algorithm/container.h"

using namespace shardc::rt;

/// Elements of a shape with `dim` padded to a multiple of `shards`.
static int64_t paddedElements(std::vector<int64_t> shape, int dim,
                              int64_t shards) {
  if (dim >= 0)
    shape[dim] = (shape[dim] + shards - 1) / shards * shards;
  return numElements(shape);
}

uint64_t shardc::rt::wireBytes(const Mesh &mesh, const CollectiveSpec &spec) {
  int64_t shards = mesh.numShards(spec.axes);
  if (shards == 1)
    return 0;
  uint64_t bytes = 0;
  for (const CollectiveTensor &tensor : spec.tensors) {
    int64_t elements = 0;
    switch (spec.kind) {
    case CollectiveKind::AllReduce:
    case CollectiveKind::CollectivePermute:
      elements = numElements(tensor.inShape);
      break;
    case CollectiveKind::AllGather:
      elements = paddedElements(tensor.outShape, tensor.dim, shards);
      break;
    case CollectiveKind::ReduceScatter:
      elements = paddedElements(tensor.inShape, tensor.dim, shards);
      break;
    case CollectiveKind::AllToAll:
      elements = paddedElements(tensor.inShape, tensor.splitDim, shards);
      break;
    }
    bytes += elements * byteSize(tensor.dtype);
  }
  uint64_t others = shards - 1;
  switch (spec.kind) {
  case CollectiveKind::AllReduce:
    return (2 * others * bytes + others) / shards;
  case CollectiveKind::CollectivePermute:
    // The maximum over devices: 0 only if all send to themselves.
    return spec.axes == spec.targetAxes && absl::c_is_sorted(spec.sources)
               ? 0
               : bytes;
  default:
    return (others * bytes + others) / shards;
  }
}
