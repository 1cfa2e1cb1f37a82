//===- BetweenProcesses.cpp - Collectives of several processes ------------===//

#include "collectives/BetweenProcesses.h"

#include "base/Memory.h"
#include "collectives/InProcess.h"
#include "collectives/Reduce.h"
#include "shardc-rt/HostArray.h"

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include <array>
#include <cstring>
#include <map>
#include <set>

using namespace shardc::rt;

/// Contiguous parts of at least so many bytes are messages of their own, sent
/// from their places. Copying fewer takes less time than a message.
static constexpr int64_t minDirectBytes = 16 << 10;
/// Bytes that a task copies.
static constexpr int64_t copyBlock = 64 << 10;

namespace {

/// Memory for messages. Collectives run one after the other and share it.
class Scratch {
public:
  void reserve(uint64_t bytes) { needed = std::max(needed, bytes); }
  /// Before the first run that needs it, by one thread.
  absl::Status allocate() {
    if (needed == 0 || isThere)
      return absl::OkStatus();
    if (!memory.allocate(needed))
      return absl::ResourceExhaustedError(absl::StrCat(
          "out of memory: cannot allocate ", needed, " bytes for messages"));
    isThere = true;
    return absl::OkStatus();
  }
  char *get() const { return memory.get(); }

private:
  Memory memory;
  uint64_t needed = 0;
  bool isThere = false;
};

/// Three loops around contiguous runs of elements.
struct Box {
  std::array<int64_t, 3> extents;
  int64_t run;

  int64_t numElements() const {
    return extents[0] * extents[1] * extents[2] * run;
  }
};

/// Where a box lies. Distances of the loops are in elements.
struct Place {
  char *base = nullptr; ///< Null: scratch memory.
  uint64_t offset = 0;  ///< In bytes.
  std::array<int64_t, 3> strides = {};
  /// The offset is in the message of this process, which has no place yet;
  /// negative: in the memory itself.
  int bundleOf = -1;

  char *at(const Scratch &scratch) const {
    return (base ? base : scratch.get()) + offset;
  }
  int64_t elementOf(const std::array<int64_t, 3> &index) const {
    return index[0] * strides[0] + index[1] * strides[1] +
           index[2] * strides[2];
  }
};

/// A part of a result: reduced from its sources, in their order, or copied from
/// the only one; `others` get the same.
struct Work {
  DType dtype;
  Box box;
  std::vector<Place> sources, results;
};

/// Rounds share the scratch memory of their backend.
using SharedScratch = std::shared_ptr<Scratch>;

class Round : public PreparedCollective {
public:
  PreparedCollective *next() override { return following.get(); }

  std::unique_ptr<PreparedCollective> following;
};

/// Makes results, by all workers.
class WorkRound : public Round {
public:
  WorkRound(SharedScratch scratch, Reduction reduction)
      : scratch(std::move(scratch)), reduction(reduction) {}

  void add(Work work) {
    int64_t block = work.sources.size() > 1 ? maxReduceBlock
                                            : copyBlock / byteSize(work.dtype);
    int64_t elements = work.box.numElements();
    for (int64_t begin = 0; begin < elements; begin += block)
      tasks.push_back({works.size(), begin, std::min(elements, begin + block)});
    if (elements > 0)
      works.push_back(std::move(work));
  }

  int64_t numTasks() const override { return tasks.size(); }

  absl::Status runTask(int64_t number) override {
    const Task &task = tasks[number];
    const Work &work = works[task.work];
    int64_t width = byteSize(work.dtype);
    absl::InlinedVector<const void *, 8> sources(work.sources.size());
    for (int64_t element = task.begin; element < task.end;) {
      int64_t outer = element / work.box.run, within = element % work.box.run;
      int64_t count = std::min(work.box.run - within, task.end - element);
      std::array<int64_t, 3> index;
      for (int loop = 3; loop-- > 0;) {
        index[loop] = outer % work.box.extents[loop];
        outer /= work.box.extents[loop];
      }
      auto at = [&](const Place &place) {
        return place.at(*scratch) + (place.elementOf(index) + within) * width;
      };
      char *first = at(work.results[0]);
      if (sources.size() > 1) {
        for (size_t i = 0; i < sources.size(); ++i)
          sources[i] = at(work.sources[i]);
        reduceBlock(work.dtype, reduction, sources, 0, count, first);
      } else if (char *source = at(work.sources[0]); source != first) {
        std::memcpy(first, source, count * width);
      }
      for (size_t i = 1; i < work.results.size(); ++i)
        std::memcpy(at(work.results[i]), first, count * width);
      element += count;
    }
    return absl::OkStatus();
  }

private:
  struct Task {
    size_t work;
    int64_t begin, end; ///< Elements of its box.
  };

  SharedScratch scratch;
  Reduction reduction;
  std::vector<Work> works;
  std::vector<Task> tasks;
};

/// Exchanges messages, as one task.
class ExchangeRound : public Round {
public:
  ExchangeRound(SharedScratch scratch, Transport &transport)
      : scratch(std::move(scratch)), transport(transport) {}

  /// Bytes to or from `peer`.
  void add(int peer, Place place, uint64_t bytes, bool isReceived) {
    if (bytes > 0)
      planned.push_back({peer, place, bytes, isReceived});
  }
  /// What is copied before, one after the other.
  void addPacking(Work work) { packings.push_back(std::move(work)); }

  int64_t numTasks() const override {
    return !planned.empty() || !packings.empty();
  }

  absl::Status runTask(int64_t /*task*/) override {
    if (absl::Status status = scratch->allocate(); !status.ok())
      return status;
    for (const Work &work : packings)
      pack(work);
    messages.clear();
    for (const Planned &message : planned)
      messages.push_back({message.peer, message.place.at(*scratch),
                          message.bytes, message.isReceived});
    return transport.exchange(messages);
  }

private:
  struct Planned {
    int peer;
    Place place;
    uint64_t bytes;
    bool isReceived;
  };

  void pack(const Work &work) {
    int64_t width = byteSize(work.dtype);
    const Box &box = work.box;
    const Place &from = work.sources[0], &to = work.results[0];
    std::array<int64_t, 3> i;
    for (i[0] = 0; i[0] < box.extents[0]; ++i[0])
      for (i[1] = 0; i[1] < box.extents[1]; ++i[1])
        for (i[2] = 0; i[2] < box.extents[2]; ++i[2])
          std::memcpy(to.at(*scratch) + to.elementOf(i) * width,
                      from.at(*scratch) + from.elementOf(i) * width,
                      box.run * width);
  }

  SharedScratch scratch;
  Transport &transport;
  std::vector<Work> packings;
  std::vector<Planned> planned;
  std::vector<Transport::Message> messages;
};

/// A part of a tensor: the box, with its first element and strides in there.
struct Region {
  Box box;
  int64_t first = 0;
  std::array<int64_t, 3> strides = {};

  /// A range of elements.
  static Region ofRange(int64_t begin, int64_t count) {
    return {{{1, 1, 1}, count}, begin, {}};
  }

  /// The loops as they are when the box alone is stored.
  std::array<int64_t, 3> packedStrides() const {
    return {box.extents[1] * box.extents[2] * box.run, box.extents[2] * box.run,
            box.run};
  }
  bool isContiguous() const {
    const std::array<int64_t, 3> packed = packedStrides();
    for (int loop = 0; loop < 3; ++loop)
      if (box.extents[loop] > 1 && strides[loop] != packed[loop])
        return false;
    return true;
  }
};

/// The rows of member `member` of dimension `size`.
std::pair<int64_t, int64_t> rowsOf(int64_t size, int64_t member,
                                   int64_t shards) {
  int64_t shard = (size + shards - 1) / shards;
  int64_t start = std::min(member * shard, size);
  return {start, std::min(shard, size - start)};
}

/// Collects the messages of an exchange, of which it keeps those of this
/// process. All processes add the same.
class ExchangeBuilder {
public:
  ExchangeBuilder(SharedScratch scratch, Transport &transport)
      : scratch(std::move(scratch)), transport(transport),
        toPeers(transport.size()), fromPeers(transport.size()) {}

  /// Process `to` gets `part` of a tensor that is at `data` in process `from`.
  /// Returns where `to` has it, stored alone: at `into` if it has a base and
  /// the part is a message of its own.
  Place add(int from, int to, DType dtype, const Region &part, const void *data,
            Place into = {}) {
    uint64_t bytes = part.box.numElements() * byteSize(dtype);
    bool isDirect =
        part.isContiguous() && static_cast<int64_t>(bytes) >= minDirectBytes;
    Peer &peer = transport.rank() == from ? toPeers[to] : fromPeers[from];
    if (bytes == 0 || (transport.rank() != from && transport.rank() != to))
      return {};
    bool isReceived = transport.rank() == to;
    Place place;
    if (!isReceived) {
      place = {static_cast<char *>(const_cast<void *>(data)),
               static_cast<uint64_t>(part.first * byteSize(dtype)),
               part.strides};
    } else if (isDirect && into.base) {
      place = into;
    } else {
      place = {nullptr, 0, part.packedStrides()};
      if (isDirect)
        place.offset = take(bytes);
    }
    if (isDirect) {
      peer.direct.push_back({place, bytes});
      return place;
    }
    if (isReceived) {
      place.bundleOf = from;
      place.offset = peer.bundleBytes;
    }
    peer.bundle.push_back({{dtype, part.box, {place}, {}},
                           part.isContiguous(),
                           bytes,
                           peer.bundleBytes,
                           part.packedStrides()});
    // Elements stay aligned.
    peer.bundleBytes += (bytes + 15) / 16 * 16;
    return place;
  }

  /// Copies a part of a tensor that lies in this process before it is
  /// overwritten; returns where.
  Place keep(DType dtype, const Box &box, const Place &place) {
    Region part{box};
    Place copy{nullptr, take(box.numElements() * byteSize(dtype)),
               part.packedStrides()};
    kept.push_back({dtype, box, {place}, {copy}});
    return copy;
  }

  std::unique_ptr<ExchangeRound> finish() {
    auto round = std::make_unique<ExchangeRound>(scratch, transport);
    for (Work &work : kept)
      round->addPacking(std::move(work));
    for (int peer = 0; peer < transport.size(); ++peer) {
      finishSent(*round, peer);
      finishReceived(*round, peer);
    }
    scratch->reserve(used);
    return round;
  }

  /// Once the exchange is finished, its received parts have their places.
  void resolve(std::vector<Work> &works) const {
    for (Work &work : works)
      for (Place &source : work.sources)
        if (source.bundleOf >= 0) {
          source.offset += fromPeers[source.bundleOf].bundlePlace;
          source.bundleOf = -1;
        }
  }

private:
  /// A part that travels with others in one message.
  struct Bundled {
    Work work; ///< Copies it into the message, once that has its place.
    bool isContiguous;
    uint64_t bytes, offset;
    std::array<int64_t, 3> strides;
  };
  /// What goes to another process, or comes from it.
  struct Peer {
    std::vector<std::pair<Place, uint64_t>> direct;
    std::vector<Bundled> bundle;
    uint64_t bundleBytes = 0, bundlePlace = 0;
  };

  /// Bytes of scratch memory, aligned.
  uint64_t take(uint64_t bytes) {
    uint64_t place = used;
    used += (bytes + 63) / 64 * 64;
    return place;
  }

  void finishSent(ExchangeRound &round, int number) {
    Peer &peer = toPeers[number];
    if (peer.bundle.size() == 1 && peer.bundle[0].isContiguous) {
      // As many bytes as the receiver expects of a bundle.
      round.add(number, peer.bundle[0].work.sources[0], peer.bundle[0].bytes,
                /*isReceived=*/false);
    } else if (!peer.bundle.empty()) {
      peer.bundlePlace = take(peer.bundleBytes);
      for (Bundled &part : peer.bundle) {
        part.work.results = {
            {nullptr, peer.bundlePlace + part.offset, part.strides}};
        round.addPacking(std::move(part.work));
      }
      round.add(number, {nullptr, peer.bundlePlace, {}}, sizeOf(peer),
                /*isReceived=*/false);
    }
    for (auto &[place, bytes] : peer.direct)
      round.add(number, place, bytes, /*isReceived=*/false);
  }

  void finishReceived(ExchangeRound &round, int number) {
    Peer &peer = fromPeers[number];
    peer.bundlePlace = take(peer.bundleBytes);
    round.add(number, {nullptr, peer.bundlePlace, {}}, sizeOf(peer),
              /*isReceived=*/true);
    for (auto &[place, bytes] : peer.direct)
      round.add(number, place, bytes, /*isReceived=*/true);
  }

  /// Of the message of a bundle: without what follows its last part.
  static uint64_t sizeOf(const Peer &peer) {
    return peer.bundle.empty()
               ? 0
               : peer.bundle.back().offset + peer.bundle.back().bytes;
  }

  SharedScratch scratch;
  Transport &transport;
  std::vector<Peer> toPeers, fromPeers;
  std::vector<Work> kept;
  uint64_t used = 0;
};

/// By tensor and device: the first device of the same process with the same
/// operand, and with the same result.
struct Copies {
  std::vector<std::vector<int64_t>> in, out;
};

/// Prepares one collective.
class CollectiveBuilder {
public:
  CollectiveBuilder(const Mesh &mesh, CollectiveSpec spec, Copies copies,
                    SharedScratch scratch, Transport &transport)
      : mesh(mesh), spec(std::move(spec)), sharing(std::move(copies)),
        groups(mesh.groups(this->spec.axes)),
        shards(mesh.numShards(this->spec.axes)), scratch(scratch),
        transport(transport), own(transport.rank()),
        processOf(this->spec.processes), operandsSent(scratch, transport),
        resultsSent(scratch, transport) {}

  std::unique_ptr<PreparedCollective> build();

private:
  void addAllReduce(size_t tensor, const std::vector<int64_t> &group);
  void addResult(size_t tensor, const std::vector<int64_t> &group,
                 int64_t member);
  void keepOperands();
  Place sourceFor(int to, size_t tensor, int64_t device, const Region &part,
                  Place into = {});
  Region partForAllToAll(absl::Span<const int64_t> shape, int64_t member,
                         int64_t peer, const CollectiveTensor &tensor,
                         bool isIn) const;
  /// The part of the result on `device`, in this process.
  Place resultPart(const CollectiveTensor &tensor, int64_t device,
                   const Region &part) const {
    return {static_cast<char *>(tensor.out[device]),
            static_cast<uint64_t>(part.first * byteSize(tensor.dtype)),
            part.strides};
  }
  /// Whether no result in the place of the device's has been added yet.
  bool isNew(size_t tensor, int64_t device) {
    return served.insert({tensor, sharing.out[tensor][device]}).second;
  }

  const Mesh &mesh;
  const CollectiveSpec spec;
  const Copies sharing;
  const std::vector<std::vector<int64_t>> groups;
  const int64_t shards;
  SharedScratch scratch;
  Transport &transport;
  const int own;
  const std::vector<int> &processOf; ///< By device.
  ExchangeBuilder operandsSent, resultsSent;
  /// Of this process, behind either exchange.
  std::vector<Work> works, copies;
  std::set<std::pair<size_t, int64_t>> served;
  /// By tensor, operand, receiver, first element and number: its place there.
  std::map<std::tuple<size_t, int64_t, int, int64_t, int64_t>, Place> sent;
};

} // namespace

/// Where process `to` has a part of the operand of `device`. If it is of
/// another process, it is sent there, once. Of other receivers than this
/// process the place does not matter.
Place CollectiveBuilder::sourceFor(int to, size_t number, int64_t device,
                                   const Region &part, Place into) {
  const CollectiveTensor &tensor = spec.tensors[number];
  if (processOf[device] == to)
    return {static_cast<char *>(const_cast<void *>(tensor.in[device])),
            static_cast<uint64_t>(part.first * byteSize(tensor.dtype)),
            part.strides};
  auto [place, isFirst] =
      sent.try_emplace({number, sharing.in[number][device], to, part.first,
                        part.box.numElements()});
  if (isFirst)
    place->second = operandsSent.add(processOf[device], to, tensor.dtype, part,
                                     tensor.in[device], into);
  return place->second;
}

/// Elements of a part of an all-reduce are a multiple of this, but for the last
/// part: cache lines are not shared.
static constexpr int64_t partUnit = 64;

void CollectiveBuilder::addAllReduce(size_t number,
                                     const std::vector<int64_t> &group) {
  const CollectiveTensor &tensor = spec.tensors[number];
  // By process the devices whose results are new.
  std::map<int, std::vector<int64_t>> targets;
  for (int64_t device : group)
    if (isNew(number, device))
      targets[processOf[device]].push_back(device);
  int64_t elements = numElements(tensor.inShape);
  int64_t units = (elements + partUnit - 1) / partUnit;
  int64_t processes = targets.size(), index = 0;
  for (const auto &[reducer, devices] : targets) {
    int64_t begin = units * index / processes * partUnit;
    ++index;
    int64_t end = std::min(elements, units * index / processes * partUnit);
    if (begin >= end)
      continue;
    Region part = Region::ofRange(begin, end - begin);
    Work work{tensor.dtype, part.box, {}, {}};
    for (int64_t device : group)
      work.sources.push_back(sourceFor(reducer, number, device, part));
    if (reducer == own) {
      for (int64_t device : devices)
        work.results.push_back(resultPart(tensor, device, part));
      works.push_back(std::move(work));
    }
    for (const auto &[receiver, others] : targets) {
      if (receiver == reducer)
        continue;
      bool receives = receiver == own;
      Place first = receives ? resultPart(tensor, others[0], part) : Place();
      Place place = resultsSent.add(
          reducer, receiver, tensor.dtype, part,
          reducer == own ? tensor.out[devices[0]] : nullptr, first);
      if (!receives)
        continue;
      Work copy{tensor.dtype, part.box, {place}, {}};
      for (int64_t device : others)
        if (resultPart(tensor, device, part).base != place.base)
          copy.results.push_back(resultPart(tensor, device, part));
      if (!copy.results.empty())
        copies.push_back(std::move(copy));
    }
  }
}

/// What `member` gets of `peer`: in the shape of operands, or of results.
Region CollectiveBuilder::partForAllToAll(absl::Span<const int64_t> shape,
                                          int64_t member, int64_t peer,
                                          const CollectiveTensor &tensor,
                                          bool isIn) const {
  int split = tensor.splitDim, concat = tensor.dim;
  auto [splitStart, splitCount] = rowsOf(tensor.inShape[split], member, shards);
  auto [concatStart, concatCount] =
      rowsOf(tensor.outShape[concat], peer, shards);
  int low = std::min(split, concat), high = std::max(split, concat);
  int64_t before = numElements(shape.subspan(0, low));
  int64_t between = numElements(shape.subspan(low + 1, high - low - 1));
  int64_t after = numElements(shape.subspan(high + 1));
  auto extent = [&, splitCount = splitCount,
                 concatCount = concatCount](int dim) {
    return dim == split ? splitCount : concatCount;
  };
  Region part;
  part.box = {{before, extent(low), between}, extent(high) * after};
  part.strides[2] = shape[high] * after;
  part.strides[1] = between * part.strides[2];
  part.strides[0] = shape[low] * part.strides[1];
  int64_t start = isIn ? splitStart : concatStart;
  part.first =
      start * ((isIn ? split : concat) == low ? part.strides[1] : after);
  return part;
}

/// The result of a member of a group, of all kinds but all-reduce.
void CollectiveBuilder::addResult(size_t number,
                                  const std::vector<int64_t> &group,
                                  int64_t member) {
  const CollectiveTensor &tensor = spec.tensors[number];
  int64_t device = group[member];
  if (!isNew(number, device))
    return;
  int to = processOf[device];
  // A copy from the operand of `source`.
  auto copy = [&](int64_t source, const Region &part, const Region &result) {
    Place into;
    if (to == own)
      into = resultPart(tensor, device, result);
    bool isRun = part.isContiguous() && result.isContiguous();
    Place place = sourceFor(to, number, source, part, isRun ? into : Place());
    if (to == own && (place.base != into.base || place.offset != into.offset))
      works.push_back({tensor.dtype, part.box, {place}, {into}});
  };
  Around in(tensor.inShape, tensor.dim), out(tensor.outShape, tensor.dim);
  switch (spec.kind) {
  case CollectiveKind::AllReduce:
    break;
  case CollectiveKind::ReduceScatter: {
    auto [start, count] = rowsOf(in.size, member, shards);
    Region part{{{in.outer, 1, 1}, count * in.inner},
                start * in.inner,
                {in.size * in.inner, 0, 0}};
    Region result{part.box, 0, {out.size * out.inner, 0, 0}};
    Work work{tensor.dtype, part.box, {}, {}};
    for (int64_t source : group)
      work.sources.push_back(sourceFor(to, number, source, part));
    if (to == own) {
      work.results.push_back(resultPart(tensor, device, result));
      works.push_back(std::move(work));
    }
    break;
  }
  case CollectiveKind::AllGather:
    for (int64_t peer = 0; peer < shards; ++peer) {
      auto [start, count] = rowsOf(out.size, peer, shards);
      Box box{{out.outer, 1, 1}, count * out.inner};
      copy(group[peer], {box, 0, {in.size * in.inner, 0, 0}},
           {box, start * out.inner, {out.size * out.inner, 0, 0}});
    }
    break;
  case CollectiveKind::AllToAll:
    for (int64_t peer = 0; peer < shards; ++peer)
      copy(group[peer],
           partForAllToAll(tensor.inShape, member, peer, tensor, true),
           partForAllToAll(tensor.outShape, member, peer, tensor, false));
    break;
  case CollectiveKind::CollectivePermute: {
    Region all = Region::ofRange(0, numElements(tensor.inShape));
    copy(group[mesh.index(device, spec.targetAxes)], all, all);
    break;
  }
  }
}

/// Results may be in the places of operands. Groups whose devices share
/// operands in one process and not in another are reduced one by one: what one
/// of them overwrites the others read from a copy.
void CollectiveBuilder::keepOperands() {
  auto bytesOf = [](const Work &work) {
    return work.box.numElements() * byteSize(work.dtype);
  };
  // By its first byte a part that is written: its end, and the work.
  std::map<const char *, std::pair<const char *, size_t>> written;
  for (size_t i = 0; i < works.size(); ++i)
    for (const Place &result : works[i].results) {
      const char *begin = result.base + result.offset;
      written[begin] = {begin + bytesOf(works[i]), i};
    }
  for (size_t i = 0; i < works.size(); ++i)
    for (Place &source : works[i].sources) {
      if (!source.base)
        continue;
      const char *begin = source.base + source.offset;
      auto part = written.upper_bound(begin);
      if (part != written.begin())
        --part;
      bool isOverwritten = false;
      for (; part != written.end() && part->first < begin + bytesOf(works[i]);
           ++part)
        isOverwritten |= part->second.first > begin && part->second.second != i;
      if (isOverwritten)
        source = operandsSent.keep(works[i].dtype, works[i].box, source);
    }
}

std::unique_ptr<PreparedCollective> CollectiveBuilder::build() {
  for (size_t tensor = 0; tensor < spec.tensors.size(); ++tensor)
    for (const std::vector<int64_t> &group : groups)
      if (spec.kind == CollectiveKind::AllReduce)
        addAllReduce(tensor, group);
      else
        for (int64_t member = 0; member < shards; ++member)
          addResult(tensor, group, member);
  if (spec.kind == CollectiveKind::AllReduce)
    keepOperands();
  std::vector<std::unique_ptr<Round>> rounds;
  auto addWorks = [&](ExchangeBuilder &exchange, std::vector<Work> &of) {
    rounds.push_back(exchange.finish());
    exchange.resolve(of);
    auto round = std::make_unique<WorkRound>(scratch, spec.reduction);
    for (Work &work : of)
      round->add(std::move(work));
    rounds.push_back(std::move(round));
  };
  addWorks(operandsSent, works);
  addWorks(resultsSent, copies);
  // From the last on; one without tasks only if there is no other.
  std::unique_ptr<PreparedCollective> first;
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round)
    if ((*round)->numTasks() > 0) {
      (*round)->following = std::move(first);
      first = std::move(*round);
    }
  return first ? std::move(first) : std::move(rounds.back());
}

namespace {

class BetweenProcesses : public Collectives {
public:
  explicit BetweenProcesses(Transport &transport)
      : transport(transport), scratch(std::make_shared<Scratch>()) {}

  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override {
    if (absl::Status status = checkCollective(mesh, spec); !status.ok())
      return status;
    if (spec.processes.empty())
      for (int process = 0; process < transport.size(); ++process)
        spec.processes.resize(
            devicesOfProcess(mesh.numDevices(), process, transport.size()).last,
            process);
    absl::StatusOr<Copies> copies = compare(spec);
    if (!copies.ok())
      return copies.status();
    return CollectiveBuilder(mesh, std::move(spec), *std::move(copies), scratch,
                             transport)
        .build();
  }

private:
  /// Tells the others which devices share operands and results.
  absl::StatusOr<Copies> compare(const CollectiveSpec &spec) {
    const std::vector<int> &processOf = spec.processes;
    std::vector<int64_t> mine;
    auto addFirsts = [&](const auto &addresses) {
      std::map<const void *, int64_t> firsts;
      for (size_t device = 0; device < processOf.size(); ++device)
        if (processOf[device] == transport.rank())
          mine.push_back(
              firsts.emplace(addresses[device], device).first->second);
    };
    for (const CollectiveTensor &tensor : spec.tensors) {
      addFirsts(tensor.in);
      addFirsts(tensor.out);
    }
    absl::StatusOr<std::vector<std::string>> all = transport.gatherAll(
        std::string(reinterpret_cast<const char *>(mine.data()),
                    mine.size() * sizeof(int64_t)));
    if (!all.ok())
      return all.status();
    Copies copies;
    copies.in.resize(spec.tensors.size());
    copies.out.resize(spec.tensors.size());
    for (int process = 0; process < transport.size(); ++process)
      if ((*all)[process].size() != 2 * spec.tensors.size() * sizeof(int64_t) *
                                        absl::c_count(processOf, process))
        return absl::InternalError(absl::StrCat(
            "rank ", process, " prepares another collective than rank ",
            transport.rank()));
    std::vector<size_t> at(transport.size()); // by process
    auto takeFirsts = [&](std::vector<int64_t> &firsts) {
      for (int process : processOf) {
        firsts.emplace_back();
        std::memcpy(&firsts.back(), (*all)[process].data() + at[process],
                    sizeof(int64_t));
        at[process] += sizeof(int64_t);
      }
    };
    for (size_t tensor = 0; tensor < spec.tensors.size(); ++tensor) {
      takeFirsts(copies.in[tensor]);
      takeFirsts(copies.out[tensor]);
    }
    return copies;
  }

  Transport &transport;
  SharedScratch scratch;
};

} // namespace

std::unique_ptr<Collectives>
shardc::rt::createCollectivesBetweenProcesses(Transport &transport) {
  return std::make_unique<BetweenProcesses>(transport);
}
