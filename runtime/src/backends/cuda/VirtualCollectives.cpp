//===- VirtualCollectives.cpp - Between parts of one GPU ------------------===//
//
// All devices share a communication stream. A collective is a sequence of work
// on it: it starts when all devices have reached it and ends for all of them at
// once.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/BoxCopy.h"
#include "backends/cuda/Collectives.h"
#include "backends/cuda/ReduceKernels.h"
#include "shardc-rt/HostArray.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

namespace {

struct Reduce {
  DType dtype;
  ReduceParameters parameters;
};

CUdeviceptr addressOf(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// Reductions, then copies.
class VirtualCollective : public DeviceCollective {
public:
  VirtualCollective(const ReduceKernels &kernels, const Mesh &mesh,
                    absl::Span<const int64_t> devices,
                    const CollectiveSpec &spec)
      : kernels(kernels), reduction(spec.reduction),
        groups(groupsOf(mesh, devices, spec.axes)),
        shards(mesh.numShards(spec.axes)) {}

  void add(const Mesh &mesh, absl::Span<const int64_t> devices,
           const CollectiveSpec &spec, const CollectiveTensor &tensor);

  absl::Status
  issue(absl::Span<const cuda::Stream *const> streams) const override {
    const cuda::Stream &stream = *streams[0];
    for (const Reduce &reduce : reduces)
      if (absl::Status s =
              kernels.issue(reduce.dtype, reduction, reduce.parameters, stream);
          !s.ok())
        return s;
    for (const Copy2D &copy : copies)
      if (absl::Status s = cuda::issue(copy, stream); !s.ok())
        return s;
    return absl::OkStatus();
  }

private:
  /// As indices into the list of devices.
  using Group = std::vector<int64_t>;

  static std::vector<Group> groupsOf(const Mesh &mesh,
                                     absl::Span<const int64_t> devices,
                                     absl::Span<const int> axes);

  /// First row and number of rows of member `member` of a dimension.
  std::pair<int64_t, int64_t> rows(int64_t size, int64_t member) const {
    int64_t shard = (size + shards - 1) / shards;
    int64_t start = std::min(member * shard, size);
    return {start, std::min(shard, size - start)};
  }

  void allReduce(const CollectiveTensor &tensor, const Group &group);
  void reduceScatter(const CollectiveTensor &tensor, const Group &group);
  void allGather(const CollectiveTensor &tensor, const Group &group);
  void allToAll(const CollectiveTensor &tensor, const Group &group);
  void permute(const Mesh &mesh, absl::Span<const int64_t> devices,
               const CollectiveSpec &spec, const CollectiveTensor &tensor,
               const Group &group);
  void append(std::vector<Copy2D> added) {
    copies.insert(copies.end(), added.begin(), added.end());
  }

  const ReduceKernels &kernels;
  const Reduction reduction;
  const std::vector<Group> groups;
  const int64_t shards;
  std::vector<Reduce> reduces;
  std::vector<Copy2D> copies;
};

} // namespace

std::vector<VirtualCollective::Group>
VirtualCollective::groupsOf(const Mesh &mesh, absl::Span<const int64_t> devices,
                            absl::Span<const int> axes) {
  std::vector<int64_t> places(mesh.numDevices(), -1);
  for (size_t i = 0; i < devices.size(); ++i)
    places[devices[i]] = i;
  std::vector<Group> groups;
  for (const std::vector<int64_t> &all : mesh.groups(axes)) {
    if (places[all[0]] < 0)
      continue;
    Group &group = groups.emplace_back();
    for (int64_t device : all)
      group.push_back(places[device]);
  }
  return groups;
}

/// One kernel reads all operands and writes all results: an element that lies
/// in place is read before it is written, by the same thread.
void VirtualCollective::allReduce(const CollectiveTensor &tensor,
                                  const Group &group) {
  Reduce &reduce = reduces.emplace_back();
  reduce.dtype = tensor.dtype;
  uint64_t elements = numElements(tensor.inShape);
  uint32_t size = group.size();
  reduce.parameters = {elements, 1, elements, elements, size, size, {}};
  for (uint32_t i = 0; i < size; ++i) {
    reduce.parameters.addresses[i] = addressOf(tensor.in[group[i]]);
    reduce.parameters.addresses[size + i] = addressOf(tensor.out[group[i]]);
  }
}

void VirtualCollective::reduceScatter(const CollectiveTensor &tensor,
                                      const Group &group) {
  uint64_t outer = 1, inner = 1;
  for (int dim = 0; dim < static_cast<int>(tensor.inShape.size()); ++dim)
    if (dim != tensor.dim)
      (dim < tensor.dim ? outer : inner) *= tensor.inShape[dim];
  uint64_t inPitch = tensor.inShape[tensor.dim] * inner;
  uint64_t outPitch = tensor.outShape[tensor.dim] * inner;
  for (int64_t member = 0; member < shards; ++member) {
    auto [start, count] = rows(tensor.inShape[tensor.dim], member);
    uint32_t size = group.size();
    Reduce &reduce = reduces.emplace_back();
    reduce.dtype = tensor.dtype;
    reduce.parameters = {count * inner, outer, inPitch, outPitch, size, 1, {}};
    for (uint32_t i = 0; i < size; ++i)
      reduce.parameters.addresses[i] = addressOf(tensor.in[group[i]]) +
                                       start * inner * byteSize(tensor.dtype);
    reduce.parameters.addresses[size] = addressOf(tensor.out[group[member]]);
  }
}

void VirtualCollective::allGather(const CollectiveTensor &tensor,
                                  const Group &group) {
  for (int64_t device : group)
    for (int64_t peer = 0; peer < shards; ++peer) {
      auto [start, count] = rows(tensor.outShape[tensor.dim], peer);
      std::vector<int64_t> extent = tensor.outShape;
      extent[tensor.dim] = count;
      BoxOf in{addressOf(tensor.in[group[peer]]), tensor.inShape,
               std::vector<int64_t>(extent.size())};
      BoxOf out{addressOf(tensor.out[device]), tensor.outShape,
                std::vector<int64_t>(extent.size())};
      out.start[tensor.dim] = start;
      append(copyBox(in, out, extent, byteSize(tensor.dtype)));
    }
}

void VirtualCollective::allToAll(const CollectiveTensor &tensor,
                                 const Group &group) {
  for (int64_t member = 0; member < shards; ++member)
    for (int64_t peer = 0; peer < shards; ++peer) {
      auto [splitStart, splitCount] =
          rows(tensor.inShape[tensor.splitDim], member);
      auto [joinStart, joinCount] = rows(tensor.outShape[tensor.dim], peer);
      std::vector<int64_t> extent = tensor.inShape;
      extent[tensor.splitDim] = splitCount;
      extent[tensor.dim] = joinCount;
      BoxOf in{addressOf(tensor.in[group[peer]]), tensor.inShape,
               std::vector<int64_t>(extent.size())};
      in.start[tensor.splitDim] = splitStart;
      BoxOf out{addressOf(tensor.out[group[member]]), tensor.outShape,
                std::vector<int64_t>(extent.size())};
      out.start[tensor.dim] = joinStart;
      append(copyBox(in, out, extent, byteSize(tensor.dtype)));
    }
}

void VirtualCollective::permute(const Mesh &mesh,
                                absl::Span<const int64_t> devices,
                                const CollectiveSpec &spec,
                                const CollectiveTensor &tensor,
                                const Group &group) {
  uint64_t bytes = numElements(tensor.inShape) * byteSize(tensor.dtype);
  for (int64_t to : group) {
    int64_t from = group[spec.sourceOf(mesh, devices[to])];
    if (bytes > 0)
      copies.push_back({addressOf(tensor.in[from]), addressOf(tensor.out[to]),
                        bytes, 1, bytes, bytes});
  }
}

void VirtualCollective::add(const Mesh &mesh, absl::Span<const int64_t> devices,
                            const CollectiveSpec &spec,
                            const CollectiveTensor &tensor) {
  for (const Group &group : groups)
    switch (spec.kind) {
    case CollectiveKind::AllReduce:
      allReduce(tensor, group);
      break;
    case CollectiveKind::ReduceScatter:
      reduceScatter(tensor, group);
      break;
    case CollectiveKind::AllGather:
      allGather(tensor, group);
      break;
    case CollectiveKind::AllToAll:
      allToAll(tensor, group);
      break;
    case CollectiveKind::CollectivePermute:
      permute(mesh, devices, spec, tensor, group);
      break;
    }
}

namespace {

/// Copies in the memory of one GPU.
class VirtualTransfers : public DeviceCollective {
public:
  explicit VirtualTransfers(absl::Span<const DeviceTransfer> transfers) {
    for (const DeviceTransfer &one : transfers)
      copies.push_back({one.in, one.out, one.bytes, 1, one.bytes, one.bytes});
  }

  absl::Status
  issue(absl::Span<const cuda::Stream *const> streams) const override {
    for (const Copy2D &copy : copies)
      if (absl::Status s = cuda::issue(copy, *streams[0]); !s.ok())
        return s;
    return absl::OkStatus();
  }

private:
  std::vector<Copy2D> copies;
};

class VirtualCollectives : public DeviceCollectives {
public:
  explicit VirtualCollectives(ReduceKernels kernels)
      : kernels(std::move(kernels)) {}

  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepareTransfers(const Mesh &, absl::Span<const int64_t>, int,
                   absl::Span<const DeviceTransfer> transfers) override {
    return std::make_unique<VirtualTransfers>(transfers);
  }

  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepare(const Mesh &mesh, absl::Span<const int64_t> devices,
          const CollectiveSpec &spec) override {
    if (2 * mesh.numShards(spec.axes) > int64_t(maxReducePointers))
      return absl::InvalidArgumentError(absl::StrCat(
          "a collective between ", mesh.numShards(spec.axes),
          " virtual devices of one GPU; at most ", maxReducePointers / 2));
    auto collective =
        std::make_unique<VirtualCollective>(kernels, mesh, devices, spec);
    for (const CollectiveTensor &tensor : spec.tensors) {
      if (absl::Status s = checkReduction(spec, tensor); !s.ok())
        return s;
      collective->add(mesh, devices, spec, tensor);
    }
    return collective;
  }

private:
  ReduceKernels kernels;
};

} // namespace

absl::Status shardc::rt::cuda::checkReduction(const CollectiveSpec &spec,
                                              const CollectiveTensor &tensor) {
  if (tensor.dtype == DType::Bool && spec.reduction == Reduction::Sum &&
      (spec.kind == CollectiveKind::AllReduce ||
       spec.kind == CollectiveKind::ReduceScatter))
    return absl::InvalidArgumentError("booleans cannot be summed");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DeviceCollectives>>
shardc::rt::cuda::createVirtualCollectives(const cuda::Context &context) {
  absl::StatusOr<ReduceKernels> kernels = ReduceKernels::load(context);
  if (!kernels.ok())
    return kernels.status();
  return std::make_unique<VirtualCollectives>(*std::move(kernels));
}
