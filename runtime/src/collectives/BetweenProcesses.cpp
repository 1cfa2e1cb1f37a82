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
#include <deque>
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
  /// Whether no operand or result overlaps another one at another place.
  bool areApart = true;
  /// Where this process sees operands and results of other processes; empty:
  /// they send what others need of them.
  std::vector<std::vector<char *>> seenIn, seenOut;
  bool areSeen() const { return !seenIn.empty(); }
};

/// The nodes of a reduction whose operands are in one process, which may reduce
/// them. bf16 is rounded at the root alone, and a node in f32 has no fewer
/// bytes than two operands: there they are the leaves.
std::vector<TreeNode> nodesOf(const CollectiveSpec &spec,
                              const CollectiveTensor &tensor,
                              const std::vector<int64_t> &group) {
  return nodesOfOneOwner(
      {0, static_cast<int64_t>(group.size())}, [&](int64_t leaf) {
        return tensor.dtype == DType::BF16 ? leaf : spec.processes[group[leaf]];
      });
}

/// Whether a collective takes the time of its messages rather than that of its
/// bytes, of which it has at most `mostSmall`. The same in all processes.
bool isSmall(const Mesh &mesh, const CollectiveSpec &spec, int64_t mostSmall) {
  int64_t most = 0;
  for (const std::vector<int64_t> &group : mesh.groups(spec.axes)) {
    int64_t bytes = 0;
    for (const CollectiveTensor &tensor : spec.tensors)
      bytes += numElements(tensor.inShape) * byteSize(tensor.dtype) *
               nodesOf(spec, tensor, group).size();
    most = std::max(most, bytes);
  }
  return most <= mostSmall;
}

/// Prepares one collective.
class CollectiveBuilder {
public:
  /// Adds messages to those of operands, of results, and to those that say that
  /// both have been read in place.
  CollectiveBuilder(const Mesh &mesh, CollectiveSpec spec, Copies copies,
                    bool isSmall, int own,
                    std::shared_ptr<ExchangeBuilder> operandsSent,
                    std::shared_ptr<ExchangeBuilder> resultsSent,
                    std::shared_ptr<ExchangeBuilder> readsSent)
      : mesh(mesh), spec(std::move(spec)), sharing(std::move(copies)),
        groups(mesh.groups(this->spec.axes)),
        shards(mesh.numShards(this->spec.axes)), isSmall(isSmall), own(own),
        processOf(this->spec.processes), operandsSent(std::move(operandsSent)),
        resultsSent(std::move(resultsSent)), readsSent(std::move(readsSent)) {
    plan();
  }

  /// The rounds of the collective, once all that share messages have been
  /// planned. Of those that do the last one starts them.
  std::unique_ptr<PreparedCollective> build(bool isLast);

private:
  void plan();
  std::vector<TreeNode> nodesOf(const CollectiveTensor &tensor,
                                const std::vector<int64_t> &group) const {
    return ::nodesOf(spec, tensor, group);
  }
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
  /// Process `to` reads what `from` has, once a message of `exchange` says that
  /// it is complete.
  void addRead(ExchangeBuilder &exchange, int from, int to) {
    exchange.addSignal(from, to);
    readsSent->addSignal(to, from);
  }
  /// The part of the operand of `device`, in this process or seen by it.
  Place operandPart(size_t number, int64_t device, const Region &part) const {
    const CollectiveTensor &tensor = spec.tensors[number];
    const void *in = processOf[device] == own ? tensor.in[device]
                                              : sharing.seenIn[number][device];
    return {static_cast<char *>(const_cast<void *>(in)),
            static_cast<uint64_t>(part.first * byteSize(tensor.dtype)),
            part.strides};
  }
  Region partForAllToAll(absl::Span<const int64_t> shape, int64_t member,
                         int64_t peer, const CollectiveTensor &tensor,
                         bool isIn) const;
  /// The part of the result on `device`, in this process or seen by it.
  Place resultPart(size_t number, int64_t device, const Region &part) const {
    const CollectiveTensor &tensor = spec.tensors[number];
    void *out = processOf[device] == own ? tensor.out[device]
                                         : sharing.seenOut[number][device];
    return {static_cast<char *>(out),
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
  const bool isSmall;
  const int own;
  const std::vector<int> &processOf; ///< By device.
  std::shared_ptr<ExchangeBuilder> operandsSent, resultsSent, readsSent;
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
  const bool isOwn = processOf[device] == own;
  if (processOf[device] == to)
    return isOwn ? operandPart(number, device, part) : Place();
  if (sharing.areSeen()) {
    addRead(*operandsSent, processOf[device], to);
    return to == own ? operandPart(number, device, part) : Place();
  }
  auto [place, isFirst] =
      sent.try_emplace({partOf(number, {device}, part), to});
  if (isFirst)
    place->second = operandsSent->add(
        processOf[device], to, tensor.dtype, part,
        isOwn ? operandPart(number, device, part) : Place(), into);
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
        work.sources.push_back(operandPart(number, device, part));
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
    if (node.leaves > 1 && processOf[members[0]] != to && !sharing.areSeen()) {
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
      work.results.push_back(resultPart(number, device, part));
    works.push_back(std::move(work));
  };
  if (isSmall) {
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
      Place place;
      if (sharing.areSeen()) {
        addRead(*resultsSent, reducer, receiver);
        if (receives)
          place = resultPart(number, devices[0], part);
      } else {
        Place first = receives ? resultPart(number, others[0], part) : Place();
        Place sum =
            reducer == own ? resultPart(number, devices[0], part) : Place();
        place =
            resultsSent->add(reducer, receiver, tensor.dtype, part, sum, first);
      }
      if (!receives)
        continue;
      Work copy{tensor.dtype, part.box, {place}, {}};
      for (int64_t device : others)
        if (resultPart(number, device, part).base != place.base)
          copy.results.push_back(resultPart(number, device, part));
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
      into = resultPart(number, device, result);
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
      work.results.push_back(resultPart(number, device, result));
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

/// Those of `rounds` that have tasks, the first with the others behind it;
/// null: none.
static std::unique_ptr<Round>
chain(std::vector<std::unique_ptr<Round>> &rounds) {
  std::unique_ptr<Round> head;
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round)
    if ((*round)->numTasks() > 0) {
      (*round)->following = std::move(head);
      head = std::move(*round);
    }
  rounds.clear();
  return head;
}

std::unique_ptr<PreparedCollective> CollectiveBuilder::build(bool isLast) {
  std::vector<std::unique_ptr<Round>> rounds;
  std::shared_ptr<Exchange> exchange = operandsSent->finish();
  auto addMessages = [&](MessageRound::Part part) {
    rounds.push_back(std::make_unique<MessageRound>(exchange, part));
  };
  auto addWork = [&](std::vector<Work> &work) {
    rounds.push_back(
        std::make_unique<WorkRound>(exchange, spec.reduction, std::move(work)));
  };
  if (!reductions.empty()) {
    addMessages(MessageRound::Open);
    addWork(reductions);
  }
  if (!isSmall || isLast)
    addMessages(MessageRound::Start);
  // What was added so far comes early.
  std::unique_ptr<Round> early = chain(rounds);
  addMessages(MessageRound::Finish);
  rounds.back()->early = std::move(early);
  operandsSent->resolve(works);
  addWork(works);
  exchange = resultsSent->finish();
  addMessages(MessageRound::Both);
  resultsSent->resolve(copies);
  addWork(copies);
  // Nobody writes what others still read.
  exchange = readsSent->finish();
  addMessages(MessageRound::Both);
  if (std::unique_ptr<Round> head = chain(rounds))
    return head;
  return std::make_unique<MessageRound>(exchange, MessageRound::Both);
}

namespace {

/// Whether no operand or result on a device of this process overlaps another
/// one at another place.
bool areApart(const CollectiveSpec &spec) {
  // By first byte.
  std::map<const char *, std::set<std::pair<const char *, size_t>>> ranges;
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const CollectiveTensor &tensor = spec.tensors[i];
    auto add = [&](const void *first, absl::Span<const int64_t> shape) {
      const char *begin = static_cast<const char *>(first);
      int64_t bytes = numElements(shape) * byteSize(tensor.dtype);
      if (begin && bytes > 0)
        ranges[begin].insert({begin + bytes, i});
    };
    for (const void *in : tensor.in)
      add(in, tensor.inShape);
    for (const void *out : tensor.out)
      add(out, tensor.outShape);
  }
  const char *end = nullptr;
  for (const auto &[begin, same] : ranges) {
    if (begin < end || same.size() > 1)
      return false;
    end = same.begin()->first;
  }
  return true;
}

class BetweenProcesses : public Collectives {
public:
  BetweenProcesses(Transport &transport, int64_t mostSmall)
      : transport(transport), mostSmall(mostSmall),
        memory(std::make_shared<MessageMemory>()) {}

  void useMemory(const Memory &used) override { visible = &used; }

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
    // The operands of small ones.
    std::shared_ptr<ExchangeBuilder> shared = addExchange(takeChannel());
    std::deque<CollectiveBuilder> builders;
    size_t lastSmall = 0;
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
      const uint32_t channel = takeChannel();
      const bool small = isSmall(mesh, spec, mostSmall);
      if (small)
        lastSmall = builders.size();
      else if (absl::Status status = see(mesh, spec, *copies); !status.ok())
        return status;
      builders.emplace_back(mesh, std::move(spec), *std::move(copies), small,
                            transport.rank(),
                            small ? shared : addExchange(channel),
                            addExchange(channel), addExchange(channel));
    }
    // The last of those that share messages starts them, behind the reductions
    // of all.
    std::vector<std::unique_ptr<PreparedCollective>> all;
    for (CollectiveBuilder &builder : builders)
      all.push_back(builder.build(&builder == &builders[lastSmall]));
    return all;
  }

private:
  uint32_t takeChannel() { return channelOfCollective(numChannels++); }
  std::shared_ptr<ExchangeBuilder> addExchange(uint32_t channel) {
    return std::make_shared<ExchangeBuilder>(memory, transport, channel);
  }

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
    mine.push_back(areApart(spec));
    absl::StatusOr<std::vector<std::string>> all = transport.gatherAll(
        std::string(reinterpret_cast<const char *>(mine.data()),
                    mine.size() * sizeof(int64_t)));
    if (!all.ok())
      return all.status();
    Copies copies;
    copies.in.resize(spec.tensors.size());
    copies.out.resize(spec.tensors.size());
    for (int process = 0; process < transport.size(); ++process)
      if ((*all)[process].size() !=
          (2 * spec.tensors.size() * absl::c_count(processOf, process) + 1) *
              sizeof(int64_t))
        return absl::InternalError(absl::StrCat(
            "rank ", process, " prepares another collective than rank ",
            transport.rank()));
    std::vector<size_t> at(transport.size()); // by process
    auto take = [&](int process) {
      int64_t number = 0;
      std::memcpy(&number, (*all)[process].data() + at[process],
                  sizeof(number));
      at[process] += sizeof(number);
      return number;
    };
    auto takeFirsts = [&](std::vector<int64_t> &firsts) {
      for (int process : processOf)
        firsts.push_back(take(process));
    };
    for (size_t tensor = 0; tensor < spec.tensors.size(); ++tensor) {
      takeFirsts(copies.in[tensor]);
      takeFirsts(copies.out[tensor]);
    }
    for (int process = 0; process < transport.size(); ++process)
      copies.areApart &= take(process) != 0;
    return copies;
  }

  absl::Status see(const Mesh &mesh, const CollectiveSpec &spec,
                   Copies &copies);

  Transport &transport;
  const int64_t mostSmall;
  const Memory *visible = nullptr; ///< Borrowed while others are prepared.
  std::shared_ptr<MessageMemory> memory;
  uint32_t numChannels = 0; ///< The same in all processes.
};

} // namespace

/// Whether no process writes a part of a result that another one still reads as
/// an operand in the same place: the groups whose devices share a process
/// divide their elements among the same processes.
static bool areDividedAlike(const Mesh &mesh, const CollectiveSpec &spec,
                            const Copies &copies) {
  for (size_t tensor = 0; tensor < spec.tensors.size(); ++tensor) {
    std::set<int64_t> served;
    std::map<int, std::set<int>> dividers; // By process.
    for (const std::vector<int64_t> &group : mesh.groups(spec.axes)) {
      std::set<int> processes;
      for (int64_t device : group)
        if (served.insert(copies.out[tensor][device]).second)
          processes.insert(spec.processes[device]);
      for (int64_t device : group) {
        if (processes.empty())
          break; // Its results are those of a group before.
        auto [first, isFirst] =
            dividers.try_emplace(spec.processes[device], processes);
        if (!isFirst && first->second != processes)
          return false;
      }
    }
  }
  return true;
}

/// Finds the operands and results of others, if all processes see those of all
/// and may read them in place.
absl::Status BetweenProcesses::see(const Mesh &mesh, const CollectiveSpec &spec,
                                   Copies &copies) {
  if (!transport.isOnOneHost() || !copies.areApart ||
      (spec.kind == CollectiveKind::AllReduce &&
       !areDividedAlike(mesh, spec, copies)))
    return absl::OkStatus();
  const std::vector<int> &processOf = spec.processes;
  std::vector<VisiblePlace> mine;
  bool isVisible = true;
  auto addPlaces = [&](const auto &addresses) {
    for (size_t device = 0; device < processOf.size(); ++device) {
      if (processOf[device] != transport.rank())
        continue;
      std::optional<VisiblePlace> place;
      if (visible)
        place = visible->visiblePlace(addresses[device]);
      isVisible &= place.has_value();
      mine.push_back(place.value_or(VisiblePlace{}));
    }
  };
  for (const CollectiveTensor &tensor : spec.tensors) {
    addPlaces(tensor.in);
    addPlaces(tensor.out);
  }
  // What others may not see they do not get.
  absl::StatusOr<std::vector<std::string>> all = transport.gatherAll(
      isVisible ? std::string(reinterpret_cast<const char *>(mine.data()),
                              mine.size() * sizeof(VisiblePlace))
                : "");
  if (!all.ok())
    return all.status();
  Copies seen = copies;
  seen.seenIn.resize(spec.tensors.size());
  seen.seenOut.resize(spec.tensors.size());
  std::vector<size_t> at(transport.size()); // by process
  bool areSeen = true;
  auto takePlaces = [&](std::vector<char *> &places) {
    for (int process : processOf) {
      const std::string &theirs = (*all)[process];
      char *first = nullptr;
      if (at[process] + sizeof(VisiblePlace) <= theirs.size()) {
        VisiblePlace place;
        std::memcpy(&place, theirs.data() + at[process], sizeof(place));
        at[process] += sizeof(place);
        if (process != transport.rank())
          first = memory->see(place);
      }
      areSeen &= first != nullptr || process == transport.rank();
      places.push_back(first);
    }
  };
  for (size_t tensor = 0; tensor < spec.tensors.size(); ++tensor) {
    takePlaces(seen.seenIn[tensor]);
    takePlaces(seen.seenOut[tensor]);
  }
  absl::StatusOr<std::vector<std::string>> answers =
      transport.gatherAll(isVisible && areSeen ? "1" : "0");
  if (!answers.ok())
    return answers.status();
  if (absl::c_count(*answers, "1") == transport.size())
    copies = std::move(seen);
  return absl::OkStatus();
}

std::unique_ptr<Collectives>
shardc::rt::createCollectivesBetweenProcesses(Transport &transport,
                                              int64_t mostSmall) {
  return std::make_unique<BetweenProcesses>(transport, mostSmall);
}
