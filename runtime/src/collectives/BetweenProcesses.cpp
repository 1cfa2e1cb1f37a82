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
  /// Whether no operand or result overlaps another one at another place.
  bool areApart = true;
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

/// The most bytes, of the nodes of a group, that all its processes get. To
/// send more twice in parts takes less time than to send all of it once.
constexpr int64_t mostSmallBytes = 32 << 10;

/// Whether a collective takes the time of its messages rather than that of its
/// bytes. The same in all processes.
bool isSmall(const Mesh &mesh, const CollectiveSpec &spec) {
  int64_t most = 0;
  for (const std::vector<int64_t> &group : mesh.groups(spec.axes)) {
    int64_t bytes = 0;
    for (const CollectiveTensor &tensor : spec.tensors)
      bytes += numElements(tensor.inShape) * byteSize(tensor.dtype) *
               nodesOf(spec, tensor, group).size();
    most = std::max(most, bytes);
  }
  return most <= mostSmallBytes;
}

/// Prepares one collective, or a piece of one.
class CollectiveBuilder {
public:
  /// Adds messages to those of operands and of results.
  CollectiveBuilder(const Mesh &mesh, CollectiveSpec spec, Copies copies,
                    int own, std::shared_ptr<ExchangeBuilder> operandsSent,
                    std::shared_ptr<ExchangeBuilder> resultsSent)
      : mesh(mesh), spec(std::move(spec)), sharing(std::move(copies)),
        groups(mesh.groups(this->spec.axes)),
        shards(mesh.numShards(this->spec.axes)), own(own),
        processOf(this->spec.processes), operandsSent(std::move(operandsSent)),
        resultsSent(std::move(resultsSent)) {
    plan();
  }

  /// The rounds of a collective, once all that share messages have been
  /// planned. Its pieces follow one another: the results of one travel with the
  /// operands of the next. `starts`: it starts its own messages; else another
  /// collective does.
  static std::unique_ptr<PreparedCollective>
  build(std::vector<CollectiveBuilder> &pieces, bool starts);

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
  std::shared_ptr<ExchangeBuilder> operandsSent, resultsSent;
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
  if (isSmall(mesh, spec)) {
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
          resultsSent->add(reducer, receiver, tensor.dtype, part, sum, first);
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

std::unique_ptr<PreparedCollective>
CollectiveBuilder::build(std::vector<CollectiveBuilder> &pieces, bool starts) {
  std::vector<std::unique_ptr<Round>> rounds;
  std::shared_ptr<Exchange> exchange = pieces[0].operandsSent->finish();
  auto addMessages = [&](MessageRound::Part part) {
    rounds.push_back(std::make_unique<MessageRound>(exchange, part));
  };
  auto addWork = [&](const CollectiveBuilder &piece, std::vector<Work> work) {
    rounds.push_back(std::make_unique<WorkRound>(exchange, piece.spec.reduction,
                                                 std::move(work)));
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    CollectiveBuilder &piece = pieces[i];
    if (!piece.reductions.empty()) {
      addMessages(MessageRound::Open);
      addWork(piece, std::move(piece.reductions));
    }
    if (i == 0) {
      if (starts)
        addMessages(MessageRound::Start);
      // What was added so far comes early.
      std::unique_ptr<Round> early = chain(rounds);
      addMessages(MessageRound::Finish);
      rounds.back()->early = std::move(early);
    } else {
      addMessages(MessageRound::Both);
      piece.operandsSent->resolve(pieces[i - 1].copies);
      addWork(pieces[i - 1], std::move(pieces[i - 1].copies));
    }
    piece.operandsSent->resolve(piece.works);
    addWork(piece, std::move(piece.works));
    exchange = piece.resultsSent->finish();
  }
  CollectiveBuilder &last = pieces.back();
  addMessages(MessageRound::Both);
  last.resultsSent->resolve(last.copies);
  addWork(last, std::move(last.copies));
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

/// Bytes of a piece of an all-reduce, about: few enough to stay in the caches,
/// and enough for processes not to wait for each other all the time.
constexpr int64_t pieceBytes = 1 << 21;

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
    // The operands of small ones.
    std::shared_ptr<ExchangeBuilder> shared = addExchange(takeChannel());
    struct Prepared {
      std::vector<CollectiveBuilder> pieces;
      bool isSmall;
    };
    std::vector<Prepared> prepared;
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
      Prepared &one = prepared.emplace_back();
      one.isSmall = isSmall(mesh, spec);
      if (one.isSmall)
        lastSmall = prepared.size() - 1;
      auto operands = one.isSmall ? shared : addExchange(channel);
      for (Piece &piece : piecesOf(std::move(spec), *std::move(copies))) {
        auto results = addExchange(channel);
        one.pieces.emplace_back(mesh, std::move(piece.spec),
                                std::move(piece.copies), transport.rank(),
                                operands, results);
        operands = results;
      }
    }
    // The last of those that share messages starts them, behind the reductions
    // of all.
    std::vector<std::unique_ptr<PreparedCollective>> all;
    for (Prepared &one : prepared)
      all.push_back(CollectiveBuilder::build(
          one.pieces, !one.isSmall || &one == &prepared[lastSmall]));
    return all;
  }

private:
  struct Piece {
    CollectiveSpec spec;
    Copies copies;
  };

  uint32_t takeChannel() { return channelOfCollective(numChannels++); }
  std::shared_ptr<ExchangeBuilder> addExchange(uint32_t channel) {
    return std::make_shared<ExchangeBuilder>(memory, transport, channel);
  }

  std::vector<Piece> piecesOf(CollectiveSpec spec, Copies copies) const;

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

  Transport &transport;
  std::shared_ptr<MessageMemory> memory;
  uint32_t numChannels = 0; ///< The same in all processes.
};

} // namespace

/// On one host an all-reduce of many bytes is done piece by piece: what has
/// been received is in the cache when it is added up or copied. Between hosts
/// all of it is in flight at once.
std::vector<BetweenProcesses::Piece>
BetweenProcesses::piecesOf(CollectiveSpec spec, Copies copies) const {
  int64_t bytes = 0;
  for (const CollectiveTensor &tensor : spec.tensors)
    bytes += numElements(tensor.inShape) * byteSize(tensor.dtype);
  std::vector<Piece> pieces;
  if (spec.kind != CollectiveKind::AllReduce || !transport.isOnOneHost() ||
      !copies.areApart || bytes < 2 * pieceBytes) {
    pieces.push_back({std::move(spec), std::move(copies)});
    return pieces;
  }
  CollectiveSpec empty = spec;
  empty.tensors.clear();
  int64_t left = 0; // Of the last piece.
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const CollectiveTensor &tensor = spec.tensors[i];
    const int64_t elements = numElements(tensor.inShape),
                  width = byteSize(tensor.dtype);
    for (int64_t begin = 0, end; begin < elements; begin = end) {
      if (left <= 0) {
        pieces.push_back({empty, {}});
        left = pieceBytes;
      }
      end = std::min(elements, begin + (left + width - 1) / width);
      // No rest is left that is small beside a piece.
      if ((elements - end) * width < pieceBytes / 2)
        end = elements;
      CollectiveTensor part = tensor;
      part.inShape = part.outShape = {end - begin};
      for (const void *&in : part.in)
        in = in ? static_cast<const char *>(in) + begin * width : nullptr;
      for (void *&out : part.out)
        out = out ? static_cast<char *>(out) + begin * width : nullptr;
      pieces.back().spec.tensors.push_back(std::move(part));
      pieces.back().copies.in.push_back(copies.in[i]);
      pieces.back().copies.out.push_back(copies.out[i]);
      left -= (end - begin) * width;
    }
  }
  return pieces;
}

std::unique_ptr<Collectives>
shardc::rt::createCollectivesBetweenProcesses(Transport &transport) {
  return std::make_unique<BetweenProcesses>(transport);
}
