//===- ReshardStepBytes.cpp - Wire bytes of a step ------------------------===//

#include "shardc/Reshard/ReshardSteps.h"

using namespace llvm;
using namespace shardc;

/// Whether the blocks of a dimension of `size` under `longer` tile its blocks
/// under `shorter`; strided ones must divide it.
static bool isAligned(int64_t size, ArrayRef<int> longer, ArrayRef<int> shorter,
                      const MeshAxes &mesh) {
  if (isStrided(longer) || isStrided(shorter))
    return size % mesh.getNumParts(longer) == 0 &&
           size % mesh.getNumParts(shorter) == 0;
  int64_t major = mesh.getNumShards(shorter);
  int64_t minor = mesh.getNumShards(longer) / major;
  return major == 1 ||
         ceilDiv(size, major * minor) * minor == ceilDiv(size, major);
}

CollectiveKind shardc::getCollectiveKind(ReshardStep::Kind kind) {
  switch (kind) {
  case ReshardStep::Slice:
    break;
  case ReshardStep::AllGather:
    return CollectiveKind::AllGather;
  case ReshardStep::ReduceScatter:
    return CollectiveKind::ReduceScatter;
  case ReshardStep::AllReduce:
    return CollectiveKind::AllReduce;
  case ReshardStep::AllToAll:
    return CollectiveKind::AllToAll;
  case ReshardStep::CollectivePermute:
    return CollectiveKind::CollectivePermute;
  }
  llvm_unreachable("a slice is no collective");
}

std::optional<double> shardc::getStepBytes(const ReshardStep &step,
                                           const Layout &from,
                                           ArrayRef<int64_t> shape,
                                           int64_t elementBytes,
                                           const MeshAxes &mesh) {
  auto bytesOf = [&](const Layout &layout) {
    return double(layout.getLocalElements(shape, mesh) * elementBytes);
  };
  double n = mesh.getNumShards(step.axes);
  const Layout &to = step.after;
  switch (step.kind) {
  case ReshardStep::AllReduce:
    return 2 * (n - 1) / n * bytesOf(from);
  case ReshardStep::CollectivePermute:
    for (auto [size, axes] : llvm::zip_equal(shape, from.dims))
      if (isStrided(axes) && size % mesh.getNumParts(axes) != 0)
        return std::nullopt;
    return bytesOf(from);
  case ReshardStep::Slice:
  case ReshardStep::ReduceScatter:
    if (!isAligned(shape[step.dim], to.dims[step.dim], from.dims[step.dim],
                   mesh))
      return std::nullopt;
    return step.kind == ReshardStep::Slice ? 0 : (n - 1) * bytesOf(to);
  case ReshardStep::AllGather:
    if (!isAligned(shape[step.dim], from.dims[step.dim], to.dims[step.dim],
                   mesh))
      return std::nullopt;
    return (n - 1) * bytesOf(from);
  case ReshardStep::AllToAll: {
    if (!isAligned(shape[step.concatDim], from.dims[step.concatDim],
                   to.dims[step.concatDim], mesh) ||
        !isAligned(shape[step.dim], to.dims[step.dim], from.dims[step.dim],
                   mesh))
      return std::nullopt;
    // n equal parts of the split dimension, before they are concatenated.
    Layout parts = from;
    parts.dims[step.dim] = to.dims[step.dim];
    return (n - 1) * bytesOf(parts);
  }
  }
  return std::nullopt;
}
