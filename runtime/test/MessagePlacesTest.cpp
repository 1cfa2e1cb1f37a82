//===- MessagePlacesTest.cpp - Buffers in other places hold the same ------===//
//
// Random programs of pipeline ranks run on symbols: once with each buffer in
// its own place, and once as MessagePlaces says. What commands read has to be
// the same, whatever the order of the steps of a round.
//
//===----------------------------------------------------------------------===//

#include "exec/MessagePlaces.h"

#include "absl/hash/hash.h"

#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace shardc::rt;

namespace {

constexpr uint64_t unit = 64; // bytes
constexpr int64_t devices = 2;

/// Makes the program of each rank by a random sequence of launches and
/// messages; values die at random, and others take their bytes.
class RandomPlan {
public:
  RandomPlan(uint64_t seed, int ranks, int commands);

  PlanSpec plan;

private:
  struct Value {
    uint32_t buffer;
    uint64_t offset, units;
    bool isPinned = false; ///< A transfer of it has not been waited for.
    int64_t start = 0;     ///< That transfer.
  };

  int draw(int below) {
    return std::uniform_int_distribution<>(0, below - 1)(random);
  }
  ProgramSpec &programOf(int rank) {
    return plan.pipeline->ranks[rank].programs[0];
  }
  uint32_t addBuffer(int rank, uint64_t offset, uint64_t units);
  void add(int rank, decltype(Command::operation) operation);
  uint64_t findPlace(int rank, uint64_t units);
  size_t drawValue(int rank);
  void wait(int rank, Value &value);
  void kill(int rank);
  void launch(int rank);
  void send(int rank, uint32_t message);

  std::mt19937_64 random;
  std::vector<std::vector<Value>> values; ///< By rank, alive.
};

} // namespace

uint32_t RandomPlan::addBuffer(int rank, uint64_t offset, uint64_t units) {
  PlanSpec &own = plan.pipeline->ranks[rank];
  own.arenaBytes = std::max(own.arenaBytes, offset + units * unit);
  std::vector<int64_t> shape = {static_cast<int64_t>(units * unit / 4)};
  programOf(rank).buffers.push_back({offset, units * unit, DType::F32, shape});
  return programOf(rank).buffers.size() - 1;
}

void RandomPlan::add(int rank, decltype(Command::operation) operation) {
  programOf(rank).commands.emplace_back().operation = std::move(operation);
}

/// The first place for `units` units, or one behind it.
uint64_t RandomPlan::findPlace(int rank, uint64_t units) {
  std::set<uint64_t> taken;
  for (const Value &value : values[rank])
    for (uint64_t i = 0; i < value.units; ++i)
      taken.insert(value.offset / unit + i);
  for (uint64_t at = draw(3), left = units;; ++at)
    if (left = taken.count(at) ? units : left - 1; left == 0)
      return (at + 1 - units) * unit;
}

/// A value that may be read.
size_t RandomPlan::drawValue(int rank) {
  size_t index = draw(values[rank].size());
  wait(rank, values[rank][index]);
  return index;
}

void RandomPlan::wait(int rank, Value &value) {
  if (value.isPinned)
    add(rank, CollectiveWaitCommand{static_cast<uint32_t>(value.start)});
  value.isPinned = false;
}

/// Ends the life of a value; the first one stays.
void RandomPlan::kill(int rank) {
  if (values[rank].size() < 2)
    return;
  size_t index = 1 + draw(values[rank].size() - 1);
  wait(rank, values[rank][index]);
  values[rank].erase(values[rank].begin() + index);
}

/// Reads up to two values and writes a new one, sometimes in the place of the
/// first one, or updates it.
void RandomPlan::launch(int rank) {
  size_t first = drawValue(rank);
  std::vector<uint32_t> buffers = {values[rank][first].buffer};
  if (draw(2))
    buffers.push_back(values[rank][drawValue(rank)].buffer);
  int kind = first == 0 ? 2 : draw(4);
  if (kind == 0) {
    buffers.push_back(buffers[0]);
  } else if (kind == 1) {
    Value &value = values[rank][first];
    value.buffer = addBuffer(rank, value.offset, value.units);
    buffers.push_back(value.buffer);
  } else {
    uint64_t units = 1 + draw(2), offset = findPlace(rank, units);
    buffers.push_back(addBuffer(rank, offset, units));
    values[rank].push_back({buffers.back(), offset, units});
  }
  LaunchCommand command{0, buffers, 1, 1, 1, 0, {}};
  LaunchPart part{1, {}, {}};
  for (uint32_t i = 0; i < buffers.size(); ++i)
    part.buffers.push_back(i);
  command.parts.push_back(part);
  add(rank, command);
}

/// Into new bytes, or over a value that nobody needs. Sender and receiver may
/// wait for it later.
void RandomPlan::send(int rank, uint32_t message) {
  int ranks = values.size(), peer = (rank + 1 + draw(ranks - 1)) % ranks;
  size_t index = drawValue(rank), old = draw(values[peer].size());
  uint64_t units = values[rank][index].units;
  if (old > 0 && values[peer][old].units == units && draw(2)) {
    wait(peer, values[peer][old]);
  } else {
    old = values[peer].size();
    uint64_t offset = findPlace(peer, units);
    values[peer].push_back({addBuffer(peer, offset, units), offset, units});
  }
  Value &sent = values[rank][index], &received = values[peer][old];
  sent.start = programOf(rank).commands.size();
  received.start = programOf(peer).commands.size();
  add(rank, SendCommand{{sent.buffer}, peer, message, 0});
  add(peer, ReceiveCommand{{received.buffer}, rank, message});
  sent.isPinned = received.isPinned = true;
  // Nobody may write it in flight; the first one is never written.
  if (index != 0 || draw(2))
    wait(rank, sent);
  if (draw(2))
    wait(peer, received);
}

RandomPlan::RandomPlan(uint64_t seed, int ranks, int commands)
    : random(seed), values(ranks) {
  plan.mesh = Mesh({{"stage", ranks}, {"data", devices}});
  plan.pipeline.emplace();
  for (int rank = 0; rank < ranks; ++rank) {
    PlanSpec &own = plan.pipeline->ranks.emplace_back();
    own.mesh = Mesh({{"stage", 1}, {"data", devices}});
    own.rankAxis = 0;
    own.programs.emplace_back().name = "train_step";
    // An input that differs on each device, or a value that does not.
    TensorSpec &x = own.tensors.emplace_back();
    x.name = "x";
    x.role = Role::Input;
    x.dtype = DType::F32;
    x.shape = {devices * 16};
    x.sharding.dims = {{1}};
    x.bytes = unit;
    own.arenaBytes = unit;
    values[rank].push_back({addBuffer(rank, 0, 1), 0, 1});
  }
  uint32_t message = 0;
  for (int i = 0; i < commands; ++i) {
    int rank = draw(ranks);
    if (int kind = draw(8); kind < 4)
      launch(rank);
    else if (kind < 6)
      send(rank, message++);
    else
      kill(rank);
  }
  for (int rank = 0; rank < ranks; ++rank)
    for (Value &value : values[rank])
      wait(rank, value);
  // The last value of the last rank is a result.
  programOf(ranks - 1).results.push_back(
      {"loss", values.back().back().buffer, {16}, {{{}}}});
}

namespace {

/// What commands read, by rank, command and device.
using Reads = std::map<std::tuple<int, uint32_t, int64_t>, std::vector<size_t>>;

/// Runs a program on memory of symbols.
class Symbols {
public:
  Symbols(const PlanSpec &plan, const std::vector<ArenaLayout> &layouts,
          const MessagePlaces *places)
      : plan(plan), layouts(layouts), places(places) {}

  Reads run(const PipelineOrder &order, std::mt19937_64 &random);
  int64_t messages = 0, copies = 0;

private:
  size_t &at(int rank, uint32_t buffer, int64_t device, uint64_t index) {
    if (places)
      std::tie(rank, buffer) = places->placeOf({rank, buffer});
    return memory[{rank,
                   layouts[rank].offsetOf(0, buffer, device) + index * unit}];
  }
  void run(const PipelineStep &step);
  void launch(RankCommand place, const std::vector<Operand> &operands);

  const PlanSpec &plan;
  const std::vector<ArenaLayout> &layouts;
  const MessagePlaces *places;
  std::map<std::pair<int, uint64_t>, size_t> memory;
  Reads reads;
};

} // namespace

void Symbols::launch(RankCommand place, const std::vector<Operand> &operands) {
  const std::vector<BufferSpec> &buffers =
      plan.ranks()[place.rank].programs[0].buffers;
  for (int64_t device : layouts[place.rank].devicesFor(0, operands)) {
    std::vector<size_t> &read = reads[{place.rank, place.command, device}];
    for (const Operand &operand : operands)
      for (uint64_t i = 0;
           !operand.isWrite && i < buffers[operand.buffer].bytes / unit; ++i)
        read.push_back(at(place.rank, operand.buffer, device, i));
    for (const Operand &operand : operands)
      for (uint64_t i = 0;
           operand.isWrite && i < buffers[operand.buffer].bytes / unit; ++i)
        at(place.rank, operand.buffer, device, i) =
            absl::HashOf(place.rank, place.command, i, read);
  }
}

void Symbols::run(const PipelineStep &step) {
  auto operationOf = [&](RankCommand place) {
    return &plan.ranks()[place.rank]
                .programs[0]
                .commands[place.command]
                .operation;
  };
  if (std::holds_alternative<LaunchCommand>(*operationOf(step[0]))) {
    const ProgramSpec &program = plan.ranks()[step[0].rank].programs[0];
    launch(step[0], operandsOf(program, program.commands[step[0].command]));
    return;
  }
  auto *send = std::get_if<SendCommand>(operationOf(step[0]));
  if (!send)
    return;
  auto &receive = std::get<ReceiveCommand>(*operationOf(step[1]));
  uint32_t in = send->buffers[0], out = receive.buffers[0];
  ++messages;
  copies += &at(step[0].rank, in, 0, 0) != &at(step[1].rank, out, 0, 0);
  uint64_t units =
      plan.ranks()[step[1].rank].programs[0].buffers[out].bytes / unit;
  for (int64_t device : layouts[step[1].rank].holdersOf(0, out))
    for (uint64_t i = 0; i < units; ++i)
      at(step[1].rank, out, device, i) = at(step[0].rank, in, device, i);
}

Reads Symbols::run(const PipelineOrder &order, std::mt19937_64 &random) {
  std::vector<size_t> steps(order.steps.size());
  std::iota(steps.begin(), steps.end(), 0);
  std::shuffle(steps.begin(), steps.end(), random);
  std::stable_sort(steps.begin(), steps.end(), [&](size_t a, size_t b) {
    return order.rounds[a] < order.rounds[b];
  });
  // Tensors have values before the run, which differ.
  for (size_t rank = 0; rank < layouts.size(); ++rank)
    for (int64_t device : layouts[rank].holdersOfTensor(0))
      memory[{rank, layouts[rank].offsetOfTensor(0, device)}] =
          absl::HashOf(rank, device);
  for (size_t i : steps)
    run(order.steps[i]);
  int last = layouts.size() - 1;
  uint32_t result = plan.ranks()[last].programs[0].results[0].buffer;
  for (int64_t device = 0; device < devices; ++device)
    reads[{last, ~0u, device}] = {at(last, result, device, 0)};
  return reads;
}

TEST(MessagePlacesTest, CommandsReadWhatTheyDoInTheirOwnPlaces) {
  int64_t messages = 0, copies = 0, moved = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    int ranks = 2 + seed % 3;
    PlanSpec plan = RandomPlan(seed, ranks, 10 + seed % 60).plan;
    auto order = orderPipeline(plan, 0);
    ASSERT_TRUE(order.ok()) << order.status();
    auto layouts = ArenaLayout::create(plan, /*share=*/seed % 2, {*order});
    ASSERT_TRUE(layouts.ok()) << layouts.status();
    std::vector<const ArenaLayout *> pointers;
    for (const ArenaLayout &layout : *layouts)
      pointers.push_back(&layout);
    if (seed % 5 == 0)
      *order = order->inSequence();
    MessagePlaces places(plan, pointers, 0, *order);
    Symbols own(plan, *layouts, nullptr);
    Reads expected = own.run(*order, random);
    for (int shuffles = 0; shuffles < 3; ++shuffles) {
      Symbols symbols(plan, *layouts, &places);
      ASSERT_EQ(symbols.run(*order, random), expected) << "seed " << seed;
      messages += symbols.messages;
      copies += symbols.copies;
    }
    for (int rank = 0; rank < ranks; ++rank)
      for (uint32_t i = 0; i < plan.ranks()[rank].programs[0].buffers.size();
           ++i)
        moved += places.placeOf({rank, i}) != MessagePlaces::Buffer(rank, i);
  }
  // Many messages need no copy, and some do.
  EXPECT_LT(copies, messages * 3 / 4);
  EXPECT_GT(copies, 0);
  EXPECT_GT(moved, 0);
  RecordProperty("messages", messages);
  RecordProperty("copies", copies);
}
