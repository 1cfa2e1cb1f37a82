//===- NcclCollectives.cpp - Between GPUs, by NCCL ------------------------===//
//
// NcclPlanner.h plans the copies and calls. Addresses in scratch memory are
// offsets until a collective is issued: the memory grows while collectives are
// prepared.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Collectives.h"
#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/NcclPlanner.h"
#include "backends/cuda/NcclStatus.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

namespace {

/// Scratch memory of each device of this process; collectives of a device run
/// one after the other.
struct Scratch {
  uint64_t bytes = 0;
  std::vector<DeviceMemory> memory;
};

class NcclCollective : public DeviceCollective {
public:
  /// `places` are the indices of the devices that take part among those of this
  /// process.
  NcclCollective(const Communicators &communicators,
                 const CommunicatorList *list, std::vector<size_t> places,
                 std::string what, Reduction reduction,
                 std::shared_ptr<const Scratch> scratch)
      : communicators(communicators), list(list), places(std::move(places)),
        what(std::move(what)),
        reduction(reduction == Reduction::Sum ? ncclSum : ncclMax),
        scratch(std::move(scratch)), works(this->places.size()) {}

  absl::Status
  issue(absl::Span<const cuda::Stream *const> streams) const override;

  /// Of the i-th device that takes part.
  Work &work(size_t i) { return works[i]; }

private:
  absl::Status copy(const std::vector<Move> Work::*moves,
                    absl::Span<const cuda::Stream *const> streams) const;
  absl::Status call(const Call &call, int type, size_t i,
                    const cuda::Stream &stream) const;
  CUdeviceptr scratchOf(size_t i) const {
    return scratch->memory.empty() ? 0 : scratch->memory[places[i]].address();
  }

  const Communicators &communicators;
  const CommunicatorList *list;
  const std::vector<size_t> places;
  const std::string what;
  const int reduction;
  const std::shared_ptr<const Scratch> scratch;
  std::vector<Work> works; ///< By device that takes part.
};

class NcclCollectives : public DeviceCollectives {
public:
  explicit NcclCollectives(std::unique_ptr<Communicators> communicators)
      : communicators(std::move(communicators)),
        scratch(std::make_shared<Scratch>()) {}

  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepare(const Mesh &mesh, absl::Span<const int64_t> devices,
          const CollectiveSpec &spec) override;
  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepareTransfers(const Mesh &mesh, absl::Span<const int64_t> devices,
                   int axis,
                   absl::Span<const DeviceTransfer> transfers) override;
  uint64_t scratchBytes() const override { return scratch->bytes; }
  absl::Status check() override { return communicators->check(); }
  void abort() override { communicators->abort(); }

private:
  absl::Status grow(uint64_t bytes);
  std::vector<size_t> placesOf(absl::Span<const int64_t> devices) const;

  std::unique_ptr<Communicators> communicators;
  std::shared_ptr<Scratch> scratch;
};

} // namespace

absl::Status
NcclCollective::copy(const std::vector<Move> Work::*moves,
                     absl::Span<const cuda::Stream *const> streams) const {
  for (size_t i = 0; i < works.size(); ++i) {
    const std::vector<Move> &list = works[i].*moves;
    if (list.empty())
      continue;
    if (absl::Status s = streams[i]->context().makeCurrent(); !s.ok())
      return s;
    CUdeviceptr base = scratchOf(i);
    for (const Move &move : list) {
      Copy2D copy = move.copy;
      copy.in += move.fromScratch ? base : 0;
      copy.out += move.toScratch ? base : 0;
      if (absl::Status s = cuda::issue(copy, *streams[i]); !s.ok())
        return s;
    }
  }
  return absl::OkStatus();
}

absl::Status NcclCollective::call(const Call &call, int type, size_t i,
                                  const cuda::Stream &stream) const {
  const Nccl &nccl = communicators.api();
  ncclComm_t comm = (*list)[places[i]];
  auto pointer = [&](const Place &of) {
    return reinterpret_cast<void *>(
        static_cast<uintptr_t>(of.resolve(scratchOf(i))));
  };
  void *in = pointer(call.in), *out = pointer(call.out);
  auto check = [&](ncclResult_t result, absl::string_view name) {
    return toStatus(nccl, result, absl::StrCat(name, " of ", what));
  };
  switch (call.kind) {
  case Call::AllReduce:
    return check(nccl.allReduce(in, out, call.count, type, reduction, comm,
                                stream.get()),
                 "ncclAllReduce");
  case Call::AllGather:
    return check(nccl.allGather(in, out, call.count, type, comm, stream.get()),
                 "ncclAllGather");
  case Call::ReduceScatter:
    return check(nccl.reduceScatter(in, out, call.count, type, reduction, comm,
                                    stream.get()),
                 "ncclReduceScatter");
  case Call::Send:
    return check(nccl.send(in, call.count, type, call.peer, comm, stream.get()),
                 "ncclSend");
  case Call::Receive:
    return check(
        nccl.recv(out, call.count, type, call.peer, comm, stream.get()),
        "ncclRecv");
  }
  return absl::OkStatus();
}

absl::Status
NcclCollective::issue(absl::Span<const cuda::Stream *const> streams) const {
  if (absl::Status s = copy(&Work::before, streams); !s.ok())
    return s;
  bool calls = false;
  for (const Work &work : works)
    calls |= !work.calls.empty();
  if (calls)
    if (absl::Status s = communicators.inGroup(
            *list, what,
            [&] {
              for (size_t i = 0; i < works.size(); ++i) {
                if (communicators.devices().size() > 1)
                  if (absl::Status s = streams[i]->context().makeCurrent();
                      !s.ok())
                    return s;
                for (const auto &[made, type] : works[i].calls)
                  if (absl::Status s = call(made, type, i, *streams[i]);
                      !s.ok())
                    return s;
              }
              return absl::OkStatus();
            });
        !s.ok())
      return s;
  return copy(&Work::after, streams);
}

absl::Status NcclCollectives::grow(uint64_t bytes) {
  if (bytes <= scratch->bytes)
    return absl::OkStatus();
  std::vector<DeviceMemory> larger;
  for (const LocalDevice &device : communicators->devices()) {
    absl::StatusOr<DeviceMemory> memory = DeviceMemory::allocate(
        *device.context, bytes, "scratch memory of collectives");
    if (!memory.ok())
      return memory.status();
    larger.push_back(*std::move(memory));
  }
  scratch->memory = std::move(larger);
  scratch->bytes = bytes;
  return absl::OkStatus();
}

std::vector<size_t>
NcclCollectives::placesOf(absl::Span<const int64_t> devices) const {
  std::vector<size_t> places;
  for (int64_t device : devices)
    for (size_t place = 0; place < communicators->devices().size(); ++place)
      if (communicators->devices()[place].number == device)
        places.push_back(place);
  return places;
}

absl::StatusOr<std::unique_ptr<DeviceCollective>>
NcclCollectives::prepareTransfers(const Mesh &mesh,
                                  absl::Span<const int64_t> devices, int axis,
                                  absl::Span<const DeviceTransfer> transfers) {
  absl::StatusOr<const CommunicatorList *> list = communicators->over({axis});
  if (!list.ok())
    return list.status();
  auto made = std::make_unique<NcclCollective>(
      *communicators, *list, placesOf(devices),
      absl::StrCat("send and receive over ", mesh.axes()[axis].name),
      Reduction::Sum, scratch);
  auto peerOf = [&](int64_t device) {
    return static_cast<int>(mesh.coordinate(device, axis));
  };
  for (size_t i = 0; i < devices.size(); ++i)
    for (const DeviceTransfer &one : transfers) {
      if (one.from == devices[i])
        made->work(i).calls.push_back(
            {{Call::Send, {false, one.in}, {}, one.bytes, peerOf(one.to)},
             ncclUint8});
      if (one.to == devices[i])
        made->work(i).calls.push_back(
            {{Call::Receive, {}, {false, one.out}, one.bytes, peerOf(one.from)},
             ncclUint8});
    }
  return made;
}

absl::StatusOr<std::unique_ptr<DeviceCollective>>
NcclCollectives::prepare(const Mesh &mesh, absl::Span<const int64_t> devices,
                         const CollectiveSpec &spec) {
  std::string what = absl::StrCat(toString(spec.kind), " over ");
  for (int axis : spec.axes)
    absl::StrAppend(&what, axis == spec.axes[0] ? "" : ",",
                    mesh.axes()[axis].name);
  for (const CollectiveTensor &tensor : spec.tensors)
    if (absl::Status s = checkReduction(spec, tensor); !s.ok())
      return s;
  absl::StatusOr<const CommunicatorList *> list =
      communicators->over(spec.axes);
  if (!list.ok())
    return list.status();
  auto collective = std::make_unique<NcclCollective>(
      *communicators, *list, placesOf(devices), std::move(what), spec.reduction,
      scratch);
  uint64_t most = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    uint64_t bytes = 0;
    NcclPlanner planner(mesh, spec, devices[i], collective->work(i), bytes);
    for (const CollectiveTensor &tensor : spec.tensors)
      planner.add(tensor, i);
    most = std::max(most, bytes);
  }
  if (absl::Status s = grow(most); !s.ok())
    return s;
  return collective;
}

std::unique_ptr<DeviceCollectives> shardc::rt::cuda::createNcclCollectives(
    std::unique_ptr<Communicators> communicators) {
  return std::make_unique<NcclCollectives>(std::move(communicators));
}
