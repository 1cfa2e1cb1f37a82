//===- BetweenProcesses.cpp - Collectives of several processes ------------===//

#include "collectives/BetweenProcesses.h"

#include "base/ReductionTree.h"
#include "collectives/ExchangeBuilder.h"
#include "collectives/InProcess.h"
#include "collectives/Rounds.h"
#include "shardc-rt/HostArray.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

#include <cstring>
#include <map>
#include <set>
#include <tuple>

using namespace shardc::rt;

namespace {

/// The rows of member `member` of dimension `size`.
std::pair<int64_t, int64_t> rowsOf(int64_t size, int64_t member,
                                   int64_t shards) {
  int64_t shard = (size + shards - 1) / shards;
  int64_t start = std::min(member * shard, size);
  return {start, std::min(shard, size - start)};
}

/// By tensor and device: the first device of the same process with the same
/// operand, and with the same result.
struct Copies {
  std::vector<std::vector<int64_t>> in, out;
};

/// Prepares one collective.
class CollectiveBuilder {
public:
  /// Operands of a small collective are added to the messages `shared`, those
  /// of another one have their own, on `channel`.
  CollectiveBuilder(const Mesh &mesh, CollectiveSpec spec, Copies copies,
                    std::shared_ptr<MessageMemory> memory, Transport &transport,
                    uint32_t channel, std::shared_ptr<ExchangeBuilder> shared)
      : mesh(mesh), spec(std::move(spec)), sharing(std::move(copies)),
        groups(mesh.groups(this->spec.axes)),
        shards(mesh.numShards(this->spec.axes)), own(transport.rank()),
        processOf(this->spec.processes),
        operandsSent(isSmall() ? std::move(shared)
                               : std::make_shared<ExchangeBuilder>(
                                     memory, transport, channel)),
        resultsSent(memory, transport, channel) {}

  /// Adds all messages.
  void plan();
  /// Once all that share messages have been planned. `starts`: it starts its
  /// own; else another one does.
  std::unique_ptr<PreparedCollective> build(bool starts);
  const ExchangeBuilder *operands() const { return operandsSent.get(); }

private:
  std::vector<TreeNode> nodesOf(const CollectiveTensor &tensor,
                                const std::vector<int64_t> &group) const;
  bool isSmall() const;
  Work reductionFor(int to, size_t tensor, const std::vector<int64_t> &group,
                    const Region &part);
  Place reducedFor(int to, size_t tensor, absl::Span<const int64_t> members,
                   const Region &part);
  void addAllReduce(size_t tensor, const std::vector<int64_t> &group);
  void addResult(size_t tensor, const std::vector<int64_t> &group,
                 int64_t member);
  void keepOperands();
  Place sourceFor(int to, size_t tensor, int64_t device, const Region &part,
                  Place into = {});
  /// The part of the operand of `device`, in this process.
  Place operandPart(const CollectiveTensor &tensor, int64_t device,
                    const Region &part) const {
    return {static_cast<char *>(const_cast<void *>(tensor.in[device])),
            static_cast<uint64_t>(part.first * byteSize(tensor.dtype)),
            part.strides};
  }
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
  const int own;
  const std::vector<int> &processOf; ///< By device.
  std::shared_ptr<ExchangeBuilder> operandsSent;
  ExchangeBuilder resultsSent;
  /// Of this process, before the first exchange and behind either.
  std::vector<Work> reductions, works, copies;
  std::set<std::pair<size_t, int64_t>> served;
  /// A part of the operands of some devices, or of their reduction: the tensor,
  /// the first devices with the same operands, first element and number.
  using Part = std::tuple<size_t, std::vector<int64_t>, int64_t, int64_t>;
  Part partOf(size_t tensor, absl::Span<const int64_t> devices,
              const Region &part) const {
    std::vector<int64_t> firsts;
    for (int64_t device : devices)
      firsts.push_back(sharing.in[tensor][device]);
    return {tensor, std::move(firsts), part.first, part.box.numElements()};
  }
  /// By part and receiver its place there.
  std::map<std::pair<Part, int>, Place> sent;
  /// Of `reductions` the places.
  std::map<Part, Place> reduced;
};

} // namespace

/// Where process `to` has a part of the operand of `device`. If it is of
/// another process, it is sent there, once. Of other receivers than this
/// process the place does not matter.
Place CollectiveBuilder::sourceFor(int to, size_t number, int64_t device,
                                   const Region &part, Place into) {
  const CollectiveTensor &tensor = spec.tensors[number];
  if (processOf[device] == to)
    return operandPart(tensor, device, part);
  auto [place, isFirst] =
      sent.try_emplace({partOf(number, {device}, part), to});
  if (isFirst)
    place->second = operandsSent->add(processOf[device], to, tensor.dtype, part,
                                      operandPart(tensor, device, part), into);
  return place->second;
}

/// Where process `to` has a part of the reduction over `members`, which are a
/// node of another process. That one reduces their operands and sends the
/// result there, once.
Place CollectiveBuilder::reducedFor(int to, size_t number,
                                    absl::Span<const int64_t> members,
                                    const Region &part) {
  const CollectiveTensor &tensor = spec.tensors[number];
  const Part key = partOf(number, members, part);
  Place source;
  if (processOf[members[0]] == own) {
    auto [place, isFirst] = reduced.try_emplace(key);
    if (isFirst) {
      place->second = operandsSent->reserve(tensor.dtype, part.box);
      Work work{tensor.dtype, part.box, {}, {place->second}};
      for (int64_t device : members)
        work.sources.push_back(operandPart(tensor, device, part));
      reductions.push_back(std::move(work));
    }
    source = place->second;
  }
  auto [place, isFirst] = sent.try_emplace({key, to});
  if (isFirst)
    place->second =
        operandsSent->add(processOf[members[0]], to, tensor.dtype,
                          {part.box, 0, part.packedStrides()}, source);
  return place->second;
}

/// The nodes of a reduction whose operands are in one process, which may reduce
/// them. bf16 is rounded at the root alone, and a node in f32 has no fewer
/// bytes than two operands: there they are the leaves.
std::vector<TreeNode>
CollectiveBuilder::nodesOf(const CollectiveTensor &tensor,
                           const std::vector<int64_t> &group) const {
  return nodesOfOneOwner(
      {0, static_cast<int64_t>(group.size())}, [&](int64_t leaf) {
        return tensor.dtype == DType::BF16 ? leaf : processOf[group[leaf]];
      });
}

/// The reduction of a part over a group in process `to`: of its own operands,
/// and of the nodes of others. Of other receivers than this process it does not
/// matter.
Work CollectiveBuilder::reductionFor(int to, size_t number,
                                     const std::vector<int64_t> &group,
                                     const Region &part) {
  const CollectiveTensor &tensor = spec.tensors[number];
  Work work{tensor.dtype, part.box, {}, {}};
  for (TreeNode node : nodesOf(tensor, group)) {
    auto members = absl::MakeConstSpan(group).subspan(node.first, node.leaves);
    if (tensor.isReduced) {
      work.sources.push_back(sourceFor(to, number, members[0], part));
      work.leaves.push_back(node.leaves);
      continue;
    }
    if (node.leaves > 1 && processOf[members[0]] != to) {
      work.sources.push_back(reducedFor(to, number, members, part));
      work.leaves.push_back(node.leaves);
      continue;
    }
    for (int64_t device : members) {
      work.sources.push_back(sourceFor(to, number, device, part));
      work.leaves.push_back(1);
    }
  }
  return work;
}

/// The most bytes, of the nodes of a group, that all its processes get. To
/// send more twice in parts takes less time than to send all of it once.
static constexpr int64_t mostSmallBytes = 32 << 10;

/// Whether an all-reduce takes the time of its messages rather than that of its
/// bytes. The same in all processes.
bool CollectiveBuilder::isSmall() const {
  int64_t most = 0;
  for (const std::vector<int64_t> &group : groups) {
    int64_t bytes = 0;
    for (const CollectiveTensor &tensor : spec.tensors)
      bytes += numElements(tensor.inShape) * byteSize(tensor.dtype) *
               nodesOf(tensor, group).size();
    most = std::max(most, bytes);
  }
  return most <= mostSmallBytes;
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
  // What a process adds up: all of a small one, or a part that it sends on.
  auto reduce = [&](int reducer, const std::vector<int64_t> &devices,
                    const Region &part) {
    Work work = reductionFor(reducer, number, group, part);
    if (reducer != own)
      return;
    for (int64_t device : devices)
      work.results.push_back(resultPart(tensor, device, part));
    works.push_back(std::move(work));
  };
  if (isSmall()) {
    for (const auto &[reducer, devices] : targets)
      reduce(reducer, devices, Region::ofRange(0, elements));
    return;
  }
  int64_t units = (elements + partUnit - 1) / partUnit;
  int64_t processes = targets.size(), index = 0;
  for (const auto &[reducer, devices] : targets) {
    int64_t begin = units * index / processes * partUnit;
    ++index;
    int64_t end = std::min(elements, units * index / processes * partUnit);
    if (begin >= end)
      continue;
    Region part = Region::ofRange(begin, end - begin);
    reduce(reducer, devices, part);
    for (const auto &[receiver, others] : targets) {
      if (receiver == reducer)
        continue;
      bool receives = receiver == own;
      Place first = receives ? resultPart(tensor, others[0], part) : Place();
      Place sum =
          reducer == own ? resultPart(tensor, devices[0], part) : Place();
      Place place =
          resultsSent.add(reducer, receiver, tensor.dtype, part, sum, first);
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
    Work work = reductionFor(to, number, group, part);
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
    copy(group[spec.sourceOf(mesh, device)], all, all);
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
        source = operandsSent->keep(works[i].dtype, works[i].box, source);
    }
}

void CollectiveBuilder::plan() {
  for (size_t tensor = 0; tensor < spec.tensors.size(); ++tensor)
    for (const std::vector<int64_t> &group : groups)
      if (spec.kind == CollectiveKind::AllReduce)
        addAllReduce(tensor, group);
      else
        for (int64_t member = 0; member < shards; ++member)
          addResult(tensor, group, member);
  if (spec.kind == CollectiveKind::AllReduce)
    keepOperands();
}

std::unique_ptr<PreparedCollective> CollectiveBuilder::build(bool starts) {
  std::shared_ptr<Exchange> first = operandsSent->finish(),
                            second = resultsSent.finish();
  operandsSent->resolve(works);
  resultsSent.resolve(copies);
  auto finish = std::make_unique<MessageRound>(first, MessageRound::Finish);
  std::unique_ptr<PreparedCollective> early;
  if (starts)
    early = std::make_unique<MessageRound>(first, MessageRound::Start);
  if (!reductions.empty()) {
    auto reduce = std::make_unique<WorkRound>(first, spec.reduction,
                                              std::move(reductions));
    auto open = std::make_unique<MessageRound>(first, MessageRound::Open);
    reduce->following = std::move(early);
    open->following = std::move(reduce);
    early = std::move(open);
  }
  finish->early = std::move(early);
  std::vector<std::unique_ptr<Round>> rounds;
  rounds.push_back(std::move(finish));
  rounds.push_back(
      std::make_unique<WorkRound>(first, spec.reduction, std::move(works)));
  rounds.push_back(std::make_unique<MessageRound>(second, MessageRound::Both));
  rounds.push_back(
      std::make_unique<WorkRound>(second, spec.reduction, std::move(copies)));
  // From the last on; one without tasks only if there is no other.
  std::unique_ptr<PreparedCollective> head;
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round)
    if ((*round)->numTasks() > 0) {
      (*round)->following = std::move(head);
      head = std::move(*round);
    }
  return head ? std::move(head) : std::move(rounds.back());
}

namespace {

class BetweenProcesses : public Collectives {
public:
  explicit BetweenProcesses(Transport &transport)
      : transport(transport), memory(std::make_shared<MessageMemory>()) {}

  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override {
    auto one = prepareTogether(mesh, {std::move(spec)});
    if (!one.ok())
      return one.status();
    return std::move(one->front());
  }

  absl::StatusOr<std::vector<std::unique_ptr<PreparedCollective>>>
  prepareTogether(const Mesh &mesh,
                  std::vector<CollectiveSpec> specs) override {
    auto shared =
        std::make_shared<ExchangeBuilder>(memory, transport, takeChannel());
    std::vector<std::unique_ptr<CollectiveBuilder>> builders;
    for (CollectiveSpec &spec : specs) {
      if (absl::Status status = checkCollective(mesh, spec); !status.ok())
        return status;
      if (spec.processes.empty())
        for (int process = 0; process < transport.size(); ++process)
          spec.processes.resize(
              devicesOfProcess(mesh.numDevices(), process, transport.size())
                  .last,
              process);
      absl::StatusOr<Copies> copies = compare(spec);
      if (!copies.ok())
        return copies.status();
      builders.push_back(std::make_unique<CollectiveBuilder>(
          mesh, std::move(spec), *std::move(copies), memory, transport,
          takeChannel(), shared));
      builders.back()->plan();
    }
    // The last of those that share messages starts them, behind the reductions
    // of all.
    std::map<const ExchangeBuilder *, const CollectiveBuilder *> last;
    for (const auto &builder : builders)
      last[builder->operands()] = builder.get();
    std::vector<std::unique_ptr<PreparedCollective>> all;
    for (const auto &builder : builders)
      all.push_back(builder->build(last[builder->operands()] == builder.get()));
    return all;
  }

private:
  uint32_t takeChannel() { return channelOfCollective(numChannels++); }

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
  std::shared_ptr<MessageMemory> memory;
  uint32_t numChannels = 0; ///< The same in all processes.
};

} // namespace

std::unique_ptr<Collectives>
shardc::rt::createCollectivesBetweenProcesses(Transport &transport) {
  return std::make_unique<BetweenProcesses>(transport);
}
