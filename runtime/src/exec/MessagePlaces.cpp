//===- MessagePlaces.cpp - Messages that need no copy ---------------------===//

#include "exec/MessagePlaces.h"

#include "absl/algorithm/container.h"

#include <limits>

using namespace shardc::rt;

/// Behind the last round.
static constexpr int64_t never = std::numeric_limits<int64_t>::max();

MessagePlaces::Buffer MessagePlaces::placeOf(Buffer buffer) const {
  auto found = places.find(setOf(buffer));
  return found == places.end() ? buffer : found->second;
}

/// Tensors keep their values between runs, or get them before.
void MessagePlaces::addTensors(int rank) {
  const ArenaLayout &layout = *layouts[rank];
  const std::vector<TensorSpec> &tensors = plan.ranks()[rank].tensors;
  for (size_t i = 0; i < tensors.size(); ++i)
    for (int64_t device : layout.holdersOfTensor(i)) {
      uint64_t begin = layout.offsetOfTensor(i, device);
      ByteRange bytes{begin, begin + tensors[i].bytes};
      Use &use = uses[{rank, layout.aliasSetOfTensor(i)}];
      use.place = use.isFixed ? hull(use.place, bytes) : bytes;
      use.life = {-1, never};
      use.isFixed = true;
    }
}

/// A buffer that is read before it is written has its value from another name
/// or another run. Results are read after the run.
void MessagePlaces::addBuffers(int rank) {
  const ArenaLayout &layout = *layouts[rank];
  const ProgramSpec &own = programOf(rank);
  std::vector<BufferUse> ofBuffers = usesOf(own);
  for (uint32_t i = 0; i < own.buffers.size(); ++i) {
    if (!ofBuffers[i].isUsed())
      continue;
    const BufferSpec &spec = own.buffers[i];
    Set set = setOf({rank, i});
    auto [it, isNew] = uses.try_emplace(set);
    Use &use = it->second;
    for (int64_t device : layout.holdersOf(program, i)) {
      uint64_t begin = layout.offsetOf(program, i, device);
      ByteRange bytes{begin, begin + spec.bytes};
      use.place = use.place.end > 0 ? hull(use.place, bytes) : bytes;
    }
    if (isNew) {
      use.life = {never, -1};
      use.buffer = {rank, i};
      use.bytes = spec.bytes;
    } else if (!use.isFixed) {
      const BufferSpec &first = own.buffers[use.buffer.second];
      use.isFixed |= spec.offset != first.offset || spec.bytes != first.bytes;
      ++use.numBuffers;
    }
    if (ofBuffers[i].isIncoming()) {
      use.life = {-1, never};
      use.isFixed = true;
    }
  }
  for (const ResultSpec &result : own.results) {
    Use &use = uses.at(setOf({rank, result.buffer}));
    use.life = {-1, never};
    use.isFixed = true;
  }
  // Those of other programs are not known here.
  for (auto &[set, use] : uses)
    use.isFixed |=
        set.first == rank && use.numBuffers != layout.numMembers(set.second);
}

/// Notes the rounds in which sets are used, and the messages.
void MessagePlaces::follow(const PipelineOrder &order) {
  for (size_t i = 0; i < order.steps.size(); ++i)
    follow(order.steps[i], order.rounds[i]);
}

void MessagePlaces::follow(const PipelineStep &step, int64_t round) {
  for (RankCommand place : step) {
    // A buffer of a message to another process is used until its wait.
    auto *wait =
        std::get_if<CollectiveWaitCommand>(&commandOf(place).operation);
    const Command &command =
        wait ? commandOf({place.rank, wait->start}) : commandOf(place);
    bool isCollective =
        std::holds_alternative<CollectiveStartCommand>(command.operation);
    for (const Operand &operand : operandsOf(programOf(place.rank), command)) {
      Use &use = uses.at(setOf({place.rank, operand.buffer}));
      use.life = use.life.with({round, round});
      use.isFixed |= isCollective;
      if (operand.isWrite)
        use.writes.push_back(round);
    }
  }
  // A send and its receive are neighbours.
  for (size_t i = 0; i + 1 < step.size(); i += 2) {
    auto *send = std::get_if<SendCommand>(&commandOf(step[i]).operation);
    if (!send)
      return;
    auto &received = std::get<ReceiveCommand>(commandOf(step[i + 1]).operation);
    for (size_t item = 0; item < send->buffers.size(); ++item)
      messages.push_back({{step[i].rank, send->buffers[item]},
                          {step[i + 1].rank, received.buffers[item]},
                          round});
  }
}

/// Whether no other set holds a value in `place` in the rounds of `life`.
bool MessagePlaces::isFree(Set place, Life life) const {
  ByteRange bytes = uses.at(place).place;
  auto first = uses.lower_bound({place.first, 0});
  auto end = uses.lower_bound({place.first + 1, 0});
  return std::none_of(first, end, [&](const auto &entry) {
    return entry.first != place && entry.second.life.overlaps(life) &&
           overlap(entry.second.place, bytes);
  });
}

/// Brings `set` and all that share its place to `place`.
void MessagePlaces::move(Set set, Set place) {
  const Use &moved = uses.at(set);
  Use &use = uses.at(place);
  use.life = use.life.with(moved.life);
  use.writes.insert(use.writes.end(), moved.writes.begin(), moved.writes.end());
  for (auto &[other, buffer] : places)
    if (setOf(buffer) == set)
      buffer = use.buffer;
  places[set] = use.buffer;
  uses.erase(set);
}

void MessagePlaces::share(const Message &message) {
  Set sender = setOf(placeOf(message.from));
  Set receiver = setOf(placeOf(message.to));
  const Use &from = uses.at(sender), &to = uses.at(receiver);
  auto holdersOf = [&](Buffer buffer) {
    return layouts[buffer.first]->holdersOf(program, buffer.second);
  };
  auto isWrittenIn = [&](const Use &use, int64_t last) {
    return absl::c_any_of(use.writes, [&](int64_t write) {
      return write > message.round && write <= last;
    });
  };
  if (layouts[message.from.first]->devices() !=
          layouts[message.to.first]->devices() ||
      sender == receiver || from.isFixed || to.isFixed ||
      from.bytes != to.bytes || to.life.first < message.round ||
      isWrittenIn(from, to.life.last) || isWrittenIn(to, from.life.last) ||
      holdersOf(from.buffer) != holdersOf(to.buffer))
    return;
  Life life = from.life.with(to.life);
  if (isFree(receiver, life))
    move(sender, receiver);
  else if (isFree(sender, life))
    move(receiver, sender);
}

MessagePlaces::MessagePlaces(const PlanSpec &plan,
                             absl::Span<const ArenaLayout *const> layouts,
                             size_t program, const PipelineOrder &order)
    : plan(plan), layouts(layouts), program(program) {
  for (size_t rank = 0; rank < layouts.size(); ++rank) {
    addTensors(rank);
    addBuffers(rank);
  }
  follow(order);
  for (const Message &message : messages)
    share(message);
}
