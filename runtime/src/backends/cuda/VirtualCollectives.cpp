//===- VirtualCollectives.cpp - Between parts of one GPU ------------------===//
//
// All devices share a communication stream. A collective is a launch on it for
// each type that it reduces, or one that copies: it starts when all devices
// have reached it and ends for all of them at once.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/BoxCopy.h"
#include "backends/cuda/CollectiveKernels.h"
#include "backends/cuda/Collectives.h"
#include "shardc-rt/HostArray.h"

#include <map>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

namespace {

CUdeviceptr addressOf(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// What a collective reduces and copies, in all groups and tensors.
struct CollectiveBoxes {
  std::map<DType, std::vector<BoxReduction>> reductions;
  std::vector<BoxReduction> copies;
};

class VirtualPlanner {
public:
  VirtualPlanner(const Mesh &mesh, absl::Span<const int64_t> devices,
                 const CollectiveSpec &spec)
      : groups(groupsOf(mesh, devices, spec.axes)),
        shards(mesh.numShards(spec.axes)) {}

  void add(const Mesh &mesh, absl::Span<const int64_t> devices,
           const CollectiveSpec &spec, const CollectiveTensor &tensor);

  CollectiveBoxes boxes;

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
  /// Copies a box of `in` to the same box of tensors of the shape of `out`,
  /// which is the first of `results`.
  void copy(const BoxOf &in, const BoxOf &out, absl::Span<const int64_t> extent,
            DType dtype, absl::Span<const CUdeviceptr> results);

  const std::vector<Group> groups;
  const int64_t shards;
};

} // namespace

std::vector<VirtualPlanner::Group>
VirtualPlanner::groupsOf(const Mesh &mesh, absl::Span<const int64_t> devices,
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

/// A thread reads an element of all operands before it writes the results: they
/// may lie in place.
void VirtualPlanner::allReduce(const CollectiveTensor &tensor,
                               const Group &group) {
  uint64_t bytes = numElements(tensor.inShape) * byteSize(tensor.dtype);
  BoxReduction &box = boxes.reductions[tensor.dtype].emplace_back();
  box = {bytes, 1, bytes, bytes, {}, {}};
  for (int64_t device : group) {
    box.operands.push_back(addressOf(tensor.in[device]));
    box.results.push_back(addressOf(tensor.out[device]));
  }
}

void VirtualPlanner::reduceScatter(const CollectiveTensor &tensor,
                                   const Group &group) {
  uint64_t outer = 1, inner = byteSize(tensor.dtype);
  for (int dim = 0; dim < static_cast<int>(tensor.inShape.size()); ++dim)
    if (dim != tensor.dim)
      (dim < tensor.dim ? outer : inner) *= tensor.inShape[dim];
  uint64_t inPitch = tensor.inShape[tensor.dim] * inner;
  uint64_t outPitch = tensor.outShape[tensor.dim] * inner;
  for (int64_t member = 0; member < shards; ++member) {
    auto [start, count] = rows(tensor.inShape[tensor.dim], member);
    BoxReduction &box = boxes.reductions[tensor.dtype].emplace_back();
    box = {count * inner, outer, inPitch, outPitch, {}, {}};
    for (int64_t device : group)
      box.operands.push_back(addressOf(tensor.in[device]) + start * inner);
    box.results.push_back(addressOf(tensor.out[group[member]]));
  }
}

void VirtualPlanner::copy(const BoxOf &in, const BoxOf &out,
                          absl::Span<const int64_t> extent, DType dtype,
                          absl::Span<const CUdeviceptr> results) {
  for (const Copy2D &part : copyBox(in, out, extent, byteSize(dtype))) {
    BoxReduction &box = boxes.copies.emplace_back();
    box = {part.width, part.height, part.inPitch, part.outPitch, {part.in}, {}};
    for (CUdeviceptr result : results)
      box.results.push_back(part.out - out.address + result);
  }
}

/// A shard is read once and written to all members.
void VirtualPlanner::allGather(const CollectiveTensor &tensor,
                               const Group &group) {
  std::vector<CUdeviceptr> results;
  for (int64_t device : group)
    results.push_back(addressOf(tensor.out[device]));
  for (int64_t peer = 0; peer < shards; ++peer) {
    auto [start, count] = rows(tensor.outShape[tensor.dim], peer);
    std::vector<int64_t> extent = tensor.outShape;
    extent[tensor.dim] = count;
    BoxOf in{addressOf(tensor.in[group[peer]]), tensor.inShape,
             std::vector<int64_t>(extent.size())};
    BoxOf out{results[0], tensor.outShape, std::vector<int64_t>(extent.size())};
    out.start[tensor.dim] = start;
    copy(in, out, extent, tensor.dtype, results);
  }
}

void VirtualPlanner::allToAll(const CollectiveTensor &tensor,
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
      copy(in, out, extent, tensor.dtype, {out.address});
    }
}

void VirtualPlanner::permute(const Mesh &mesh,
                             absl::Span<const int64_t> devices,
                             const CollectiveSpec &spec,
                             const CollectiveTensor &tensor,
                             const Group &group) {
  uint64_t bytes = numElements(tensor.inShape) * byteSize(tensor.dtype);
  for (int64_t to : group) {
    int64_t from = group[spec.sourceOf(mesh, devices[to])];
    boxes.copies.push_back({bytes,
                            1,
                            bytes,
                            bytes,
                            {addressOf(tensor.in[from])},
                            {addressOf(tensor.out[to])}});
  }
}

void VirtualPlanner::add(const Mesh &mesh, absl::Span<const int64_t> devices,
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

/// Launches, one after the other.
class VirtualCollective : public DeviceCollective {
public:
  explicit VirtualCollective(std::vector<BoxLaunch> launches)
      : launches(std::move(launches)) {}

  absl::Status
  issue(absl::Span<const cuda::Stream *const> streams) const override {
    for (const BoxLaunch &launch : launches)
      if (absl::Status s = launch.issue(*streams[0]); !s.ok())
        return s;
    return absl::OkStatus();
  }

private:
  std::vector<BoxLaunch> launches;
};

class VirtualCollectives : public DeviceCollectives {
public:
  VirtualCollectives(CollectiveKernels kernels, int64_t devices)
      : kernels(std::move(kernels)), devices(devices) {}

  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepareTransfers(const Mesh &, absl::Span<const int64_t>, int,
                   absl::Span<const DeviceTransfer> transfers) override {
    CollectiveBoxes boxes;
    for (const DeviceTransfer &one : transfers)
      boxes.copies.push_back(
          {one.bytes, 1, one.bytes, one.bytes, {one.in}, {one.out}});
    return launch(boxes, Reduction::Sum);
  }

  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepare(const Mesh &mesh, absl::Span<const int64_t> devices,
          const CollectiveSpec &spec) override {
    VirtualPlanner planner(mesh, devices, spec);
    for (const CollectiveTensor &tensor : spec.tensors) {
      if (absl::Status s = checkReduction(spec, tensor); !s.ok())
        return s;
      planner.add(mesh, devices, spec, tensor);
    }
    return launch(planner.boxes, spec.reduction);
  }

  uint64_t scratchBytes() const override {
    return (tableBytes + devices - 1) / devices;
  }

private:
  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  launch(const CollectiveBoxes &boxes, Reduction reduction) {
    std::vector<BoxLaunch> launches;
    auto add = [&](absl::StatusOr<BoxLaunch> made) {
      if (made.ok()) {
        tableBytes += made->bytes();
        launches.push_back(*std::move(made));
      }
      return made.status();
    };
    for (const auto &[dtype, list] : boxes.reductions)
      if (absl::Status s =
              add(kernels.prepareReductions(dtype, reduction, list));
          !s.ok())
        return s;
    if (absl::Status s = add(kernels.prepareCopies(boxes.copies)); !s.ok())
      return s;
    return std::make_unique<VirtualCollective>(std::move(launches));
  }

  CollectiveKernels kernels;
  const int64_t devices;
  uint64_t tableBytes = 0; ///< Of all devices.
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
shardc::rt::cuda::createVirtualCollectives(const cuda::Context &context,
                                           int64_t devices,
                                           absl::Duration deadline) {
  absl::StatusOr<CollectiveKernels> kernels =
      CollectiveKernels::load(context, deadline);
  if (!kernels.ok())
    return kernels.status();
  return std::make_unique<VirtualCollectives>(*std::move(kernels), devices);
}
