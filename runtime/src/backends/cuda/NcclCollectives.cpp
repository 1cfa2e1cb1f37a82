//===- NcclCollectives.cpp - Between GPUs, by NCCL ------------------------===//
//
// A collective is copies into scratch memory, calls of the library in one
// group, and copies out of it. An all-reduce needs no copies; an all-gather or
// reduce-scatter none where the dimension is the outermost and divides evenly.
// Addresses in scratch memory are offsets until a collective is issued: the
// memory grows while collectives are prepared.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/BoxCopy.h"
#include "backends/cuda/Collectives.h"
#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/NcclStatus.h"
#include "shardc-rt/HostArray.h"

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

/// What one tensor makes a device do.
struct Work {
  std::vector<Move> before, after;
  std::vector<std::pair<Call, int>> calls; ///< With their type.
};

int ncclType(DType dtype) {
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

/// Adds the work of one collective for one device.
class Planner {
public:
  Planner(const Mesh &mesh, const CollectiveSpec &spec, int64_t device,
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
            int64_t peer = 0) {
    bool isBytes = kind == Call::Send || kind == Call::Receive;
    if (count > 0)
      work.calls.push_back({{kind, in, out, count, static_cast<int>(peer)},
                            isBytes ? ncclUint8 : ncclType(dtype)});
  }
  void move(std::vector<Move> &list, Place in, const Shape &inShape,
            const Shape &inStart, Place out, const Shape &outShape,
            const Shape &outStart, const Shape &extent) {
    for (const Copy2D &copy :
         copyBox({in.at, inShape, inStart}, {out.at, outShape, outStart},
                 extent, byteSize(dtype)))
      list.push_back({copy, in.isScratch, out.isScratch});
  }
  /// Whether members' parts of `whole` along `dim` are `part`, one behind the
  /// other.
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

class NcclCollective : public DeviceCollective {
public:
  NcclCollective(const Communicators &communicators,
                 const CommunicatorList *list, std::string what,
                 Reduction reduction, std::shared_ptr<const Scratch> scratch)
      : communicators(communicators), list(list), what(std::move(what)),
        reduction(reduction == Reduction::Sum ? ncclSum : ncclMax),
        scratch(std::move(scratch)), works(communicators.devices().size()) {}

  absl::Status
  issue(absl::Span<const cuda::Stream *const> streams) const override;

  Work &work(size_t place) { return works[place]; }

private:
  absl::Status copy(const std::vector<Move> Work::*moves,
                    absl::Span<const cuda::Stream *const> streams) const;
  absl::Status call(const Call &call, int type, size_t place,
                    const cuda::Stream &stream) const;
  CUdeviceptr scratchOf(size_t place) const {
    return scratch->memory.empty() ? 0 : scratch->memory[place].address();
  }

  const Communicators &communicators;
  const CommunicatorList *list;
  const std::string what;
  const int reduction;
  const std::shared_ptr<const Scratch> scratch;
  std::vector<Work> works; ///< By device of this process.
};

class NcclCollectives : public DeviceCollectives {
public:
  explicit NcclCollectives(std::unique_ptr<Communicators> communicators)
      : communicators(std::move(communicators)),
        scratch(std::make_shared<Scratch>()) {}

  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepare(const Mesh &mesh, const CollectiveSpec &spec) override;
  uint64_t scratchBytes() const override { return scratch->bytes; }
  absl::Status check() override { return communicators->check(); }
  void abort() override { communicators->abort(); }

private:
  absl::Status grow(uint64_t bytes);

  std::unique_ptr<Communicators> communicators;
  std::shared_ptr<Scratch> scratch;
};

} // namespace

void Planner::allGather(const CollectiveTensor &tensor, Place in, Place out) {
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

/// Padding of the last parts is reduced with whatever is there.
void Planner::reduceScatter(const CollectiveTensor &tensor, Place in,
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

void Planner::allToAll(const CollectiveTensor &tensor, Place in, Place out) {
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

void Planner::permute(const CollectiveTensor &tensor, Place in, Place out) {
  uint64_t bytes = bytesOf(tensor.inShape);
  const Shape zero(tensor.inShape.size());
  for (const std::vector<int64_t> &group : mesh.groups(spec.axes)) {
    if (group[me] != device)
      continue;
    for (int64_t peer = 0; peer < shards; ++peer)
      if (mesh.index(group[peer], spec.targetAxes) == me && peer != me)
        call(Call::Send, in, {}, bytes, peer);
    int64_t source = mesh.index(device, spec.targetAxes);
    if (source != me)
      call(Call::Receive, {}, out, bytes, source);
    else
      move(work.before, in, tensor.inShape, zero, out, tensor.inShape, zero,
           tensor.inShape);
  }
}

void Planner::add(const CollectiveTensor &tensor, size_t place) {
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

absl::Status
NcclCollective::copy(const std::vector<Move> Work::*moves,
                     absl::Span<const cuda::Stream *const> streams) const {
  for (size_t place = 0; place < works.size(); ++place) {
    const std::vector<Move> &list = works[place].*moves;
    if (list.empty())
      continue;
    if (absl::Status s = streams[place]->context().makeCurrent(); !s.ok())
      return s;
    CUdeviceptr base = scratchOf(place);
    for (const Move &move : list) {
      Copy2D copy = move.copy;
      copy.in += move.fromScratch ? base : 0;
      copy.out += move.toScratch ? base : 0;
      if (absl::Status s = cuda::issue(copy, *streams[place]); !s.ok())
        return s;
    }
  }
  return absl::OkStatus();
}

absl::Status NcclCollective::call(const Call &call, int type, size_t place,
                                  const cuda::Stream &stream) const {
  const Nccl &nccl = communicators.api();
  ncclComm_t comm = (*list)[place];
  auto pointer = [&](const Place &of) {
    return reinterpret_cast<void *>(
        static_cast<uintptr_t>(of.resolve(scratchOf(place))));
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
              for (size_t place = 0; place < works.size(); ++place) {
                if (works.size() > 1)
                  if (absl::Status s = streams[place]->context().makeCurrent();
                      !s.ok())
                    return s;
                for (const auto &[made, type] : works[place].calls)
                  if (absl::Status s = call(made, type, place, *streams[place]);
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

absl::StatusOr<std::unique_ptr<DeviceCollective>>
NcclCollectives::prepare(const Mesh &mesh, const CollectiveSpec &spec) {
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
      *communicators, *list, std::move(what), spec.reduction, scratch);
  uint64_t most = 0;
  for (size_t place = 0; place < communicators->devices().size(); ++place) {
    uint64_t bytes = 0;
    Planner planner(mesh, spec, communicators->devices()[place].number,
                    collective->work(place), bytes);
    for (const CollectiveTensor &tensor : spec.tensors)
      planner.add(tensor, place);
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
