//===- NcclPlanner.cpp - The copies and calls of a collective -------------===//

#include "backends/cuda/NcclPlanner.h"

#include "backends/cuda/Nccl.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

static int ncclType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return ncclFloat32;
  case DType::BF16:
    return ncclBfloat16;
  case DType::F64:
    return ncclFloat64;
  case DType::I32:
    return ncclInt32;
  case DType::I64:
    return ncclInt64;
  case DType::Bool:
    return ncclUint8;
  }
  return ncclUint8;
}

void NcclPlanner::call(Call::Kind kind, Place in, Place out, uint64_t count,
                       int64_t peer) {
  bool isBytes = kind == Call::Send || kind == Call::Receive;
  if (count > 0)
    work.calls.push_back({{kind, in, out, count, static_cast<int>(peer)},
                          isBytes ? ncclUint8 : ncclType(dtype)});
}

void NcclPlanner::allGather(const CollectiveTensor &tensor, Place in,
                            Place out) {
  uint64_t count = numElements(tensor.inShape);
  if (areBehindEachOther(tensor.outShape, tensor.inShape, tensor.dim))
    return call(Call::AllGather, in, out, count);
  Place parts = take(shards * bytesOf(tensor.inShape));
  call(Call::AllGather, in, parts, count);
  for (int64_t peer = 0; peer < shards; ++peer) {
    auto [start, size] = rows(tensor.outShape[tensor.dim], peer);
    Shape extent = tensor.outShape, zero(extent.size()), at(extent.size());
    extent[tensor.dim] = size;
    at[tensor.dim] = start;
    move(work.after, {true, parts.at + peer * bytesOf(tensor.inShape)},
         tensor.inShape, zero, out, tensor.outShape, at, extent);
  }
}

/// The padding of the last parts is reduced with its current content.
void NcclPlanner::reduceScatter(const CollectiveTensor &tensor, Place in,
                                Place out) {
  uint64_t count = numElements(tensor.outShape);
  if (areBehindEachOther(tensor.inShape, tensor.outShape, tensor.dim))
    return call(Call::ReduceScatter, in, out, count);
  Place parts = take(shards * bytesOf(tensor.outShape));
  for (int64_t peer = 0; peer < shards; ++peer) {
    auto [start, size] = rows(tensor.inShape[tensor.dim], peer);
    Shape extent = tensor.inShape, zero(extent.size()), at(extent.size());
    extent[tensor.dim] = size;
    at[tensor.dim] = start;
    move(work.before, in, tensor.inShape, at,
         {true, parts.at + peer * bytesOf(tensor.outShape)}, tensor.outShape,
         zero, extent);
  }
  call(Call::ReduceScatter, parts, out, count);
}

void NcclPlanner::allToAll(const CollectiveTensor &tensor, Place in,
                           Place out) {
  auto extentOf = [&](int64_t to, int64_t from) {
    Shape extent = tensor.inShape;
    extent[tensor.splitDim] = rows(tensor.inShape[tensor.splitDim], to).second;
    extent[tensor.dim] = rows(tensor.outShape[tensor.dim], from).second;
    return extent;
  };
  Shape zero(tensor.inShape.size());
  for (int64_t peer = 0; peer < shards; ++peer) {
    Shape inStart = zero, outStart = zero;
    inStart[tensor.splitDim] =
        rows(tensor.inShape[tensor.splitDim], peer).first;
    outStart[tensor.dim] = rows(tensor.outShape[tensor.dim], peer).first;
    Shape sent = extentOf(peer, me), received = extentOf(me, peer);
    if (peer == me) {
      move(work.before, in, tensor.inShape, inStart, out, tensor.outShape,
           outStart, sent);
      continue;
    }
    Place from = take(bytesOf(sent)), to = take(bytesOf(received));
    move(work.before, in, tensor.inShape, inStart, from, sent, zero, sent);
    call(Call::Send, from, {}, bytesOf(sent), peer);
    call(Call::Receive, {}, to, bytesOf(received), peer);
    move(work.after, to, received, zero, out, tensor.outShape, outStart,
         received);
  }
}

void NcclPlanner::permute(const CollectiveTensor &tensor, Place in, Place out) {
  uint64_t bytes = bytesOf(tensor.inShape);
  const Shape zero(tensor.inShape.size());
  for (const std::vector<int64_t> &group : mesh.groups(spec.axes)) {
    if (group[me] != device)
      continue;
    for (int64_t peer = 0; peer < shards; ++peer)
      if (spec.sourceOf(mesh, group[peer]) == me && peer != me)
        call(Call::Send, in, {}, bytes, peer);
    int64_t source = spec.sourceOf(mesh, device);
    if (source != me)
      call(Call::Receive, {}, out, bytes, source);
    else
      move(work.before, in, tensor.inShape, zero, out, tensor.inShape, zero,
           tensor.inShape);
  }
}

void NcclPlanner::add(const CollectiveTensor &tensor, size_t place) {
  dtype = tensor.dtype;
  Place in{false, reinterpret_cast<uintptr_t>(tensor.in[place])};
  Place out{false, reinterpret_cast<uintptr_t>(tensor.out[place])};
  switch (spec.kind) {
  case CollectiveKind::AllReduce:
    return call(Call::AllReduce, in, out, numElements(tensor.inShape));
  case CollectiveKind::AllGather:
    return allGather(tensor, in, out);
  case CollectiveKind::ReduceScatter:
    return reduceScatter(tensor, in, out);
  case CollectiveKind::AllToAll:
    return allToAll(tensor, in, out);
  case CollectiveKind::CollectivePermute:
    return permute(tensor, in, out);
  }
}
