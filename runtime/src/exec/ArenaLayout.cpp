//===- ArenaLayout.cpp - Where the devices' buffers are -------------------===//

#include "exec/ArenaLayout.h"

#include "exec/Arrays.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <set>

using namespace shardc::rt;

/// By axis, whether it is in the set.
static std::vector<bool> marked(const Mesh &mesh, AxisSet axes) {
  std::vector<bool> over;
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis)
    over.push_back(axes &
                   ReplicationAnalysis::setOf(mesh, {static_cast<int>(axis)}));
  return over;
}

/// Brings the axes along which buffers differ from senders to receivers, and
/// through collectives over the pipeline's axis to all ranks; returns whether
/// this changed any.
bool ArenaLayout::receiveAll(std::vector<ArenaLayout> &layouts,
                             const PipelineOrder &order, size_t program) {
  bool changed = false;
  auto commandOf = [&](RankCommand place) {
    const PlanSpec &plan = *layouts[place.rank].plan;
    return &plan.programs[program].commands[place.command].operation;
  };
  auto variesOver = [&](RankCommand place, uint32_t buffer) {
    const ArenaLayout &layout = layouts[place.rank];
    return layout.replication.varies(
        layout.aliasSets.ofBuffer(program, buffer));
  };
  auto receive = [&](RankCommand place, uint32_t buffer, AxisSet axes) {
    ArenaLayout &layout = layouts[place.rank];
    changed |=
        layout.replication.receive(layout.aliasSets, program, buffer, axes);
  };
  for (const PipelineStep &step : order.steps) {
    if (auto *send = std::get_if<SendCommand>(commandOf(step.front()))) {
      auto &received = std::get<ReceiveCommand>(*commandOf(step.back()));
      for (size_t i = 0; i < send->buffers.size(); ++i)
        receive(step.back(), received.buffers[i],
                variesOver(step.front(), send->buffers[i]));
      continue;
    }
    auto itemsOf = [&](RankCommand place) -> const auto & {
      return std::get<CollectiveStartCommand>(*commandOf(place)).items;
    };
    auto *joint = std::get_if<CollectiveStartCommand>(commandOf(step.front()));
    if (!joint || step.size() == 1)
      continue;
    // It is an all-reduce: the sum differs as the operands of all ranks do.
    AxisSet over = ReplicationAnalysis::setOf(
        layouts[step.front().rank].plan->mesh, joint->axes);
    for (size_t i = 0; i < joint->items.size(); ++i) {
      AxisSet axes = 0;
      for (RankCommand place : step)
        axes |= variesOver(place, itemsOf(place)[i].in);
      for (RankCommand place : step)
        receive(place, itemsOf(place)[i].out, axes & ~over);
    }
  }
  return changed;
}

absl::StatusOr<std::vector<ArenaLayout>>
ArenaLayout::create(const PlanSpec &plan, LayoutOptions options,
                    absl::Span<const PipelineOrder> orders) {
  // Offsets are 64 bits wide, and so must be their sum over all devices.
  constexpr uint64_t most = uint64_t(1) << 60;
  // By process, numbered as in the whole mesh.
  std::vector<DeviceRange> ofProcesses;
  for (int process = 0; process < options.processes; ++process)
    ofProcesses.push_back(
        devicesOfProcess(plan.mesh.numDevices(), process, options.processes));
  uint64_t devices = ofProcesses[options.process].size();
  if (plan.arenaBytes > most / devices)
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory: ", devices, " devices of ",
                     plan.arenaBytes, " bytes each"));
  std::vector<ArenaLayout> layouts;
  for (size_t rank = 0; rank < plan.ranks().size(); ++rank) {
    Sharing sharing{
        options.share, options.ordersSums || options.processes > 1, {}};
    for (DeviceRange range : ofProcesses)
      sharing.processes.push_back(plan.devicesOf(rank, range));
    DeviceRange local = sharing.processes[options.process];
    layouts.push_back(
        ArenaLayout(plan.ranks()[rank], std::move(sharing), local));
  }
  for (bool changed = !orders.empty(); changed;) {
    changed = false;
    for (size_t program = 0; program < orders.size(); ++program)
      changed |= receiveAll(layouts, orders[program], program);
    for (ArenaLayout &layout : layouts)
      layout.replication.settle(*layout.plan, layout.aliasSets);
  }
  for (ArenaLayout &layout : layouts)
    layout.place();
  return layouts;
}

/// Copies are numbered in the order of `axisOrder`, those of other processes
/// left out. Devices that need not differ take the first place of theirs.
const ArenaLayout::Copies &ArenaLayout::copiesOf(AxisSet varies,
                                                 AxisSet spread) {
  std::shared_ptr<Copies> &made = copies[{varies, spread}];
  if (made)
    return *made;
  // By device the number of its place, and the first one of equal values.
  std::vector<int64_t> places, values;
  for (int64_t device = local.first; device < local.last; ++device) {
    int64_t place = 0, value = 0;
    for (int axis : axisOrder) {
      AxisSet bit = ReplicationAnalysis::setOf(plan->mesh, {axis});
      if (!(bit & spread))
        continue;
      int64_t size = plan->mesh.axes()[axis].size;
      int64_t coordinate = plan->mesh.coordinate(device, axis);
      place = place * size + coordinate;
      value = value * size + (bit & varies ? coordinate : 0);
    }
    places.push_back(place);
    values.push_back(value);
  }
  std::map<int64_t, int64_t> firstOf;
  for (size_t i = 0; i < places.size(); ++i) {
    auto [first, isNew] = firstOf.emplace(values[i], places[i]);
    first->second = std::min(first->second, places[i]);
  }
  std::vector<int64_t> distinct = places;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  made = std::make_shared<Copies>();
  made->count = distinct.size();
  for (int64_t value : values)
    made->ofDevice.push_back(
        std::lower_bound(distinct.begin(), distinct.end(), firstOf[value]) -
        distinct.begin());
  return *made;
}

/// Major to minor: the axes that shard the batch come last, so that its rows
/// are contiguous.
std::vector<int> ArenaLayout::orderAxes() const {
  std::vector<int> minor, order;
  for (const TensorSpec &tensor : plan->tensors)
    if (isFed(tensor.role) && !tensor.sharding.dims.empty())
      for (int axis : tensor.sharding.dims[0])
        if (std::find(minor.begin(), minor.end(), axis) == minor.end())
          minor.push_back(axis);
  for (size_t axis = 0; axis < plan->mesh.axes().size(); ++axis)
    if (std::find(minor.begin(), minor.end(), axis) == minor.end())
      order.push_back(axis);
  order.insert(order.end(), minor.begin(), minor.end());
  return order;
}

/// The axes along which each alias set has several copies. An in-place
/// all-reduce has its results in the places of some operands, so both need the
/// same copies, unless the only result is in the first place.
std::vector<AxisSet> ArenaLayout::findSpreads() const {
  std::vector<AxisSet> spreads;
  for (uint32_t set = 0; set < aliasSets.size(); ++set)
    spreads.push_back(replication.varies(set));
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t program = 0; program < plan->programs.size(); ++program) {
      const ProgramSpec &spec = plan->programs[program];
      for (const Command &command : spec.commands) {
        auto *start = std::get_if<CollectiveStartCommand>(&command.operation);
        for (size_t i = 0; start && i < start->items.size(); ++i) {
          const CollectiveItem &item = start->items[i];
          uint32_t in = aliasSets.ofBuffer(program, item.in);
          uint32_t out = aliasSets.ofBuffer(program, item.out);
          if (!isInPlace(spec, item) || replication.varies(out) == 0 ||
              spreads[in] == spreads[out])
            continue;
          spreads[in] = spreads[out] = spreads[in] | spreads[out];
          changed = true;
        }
      }
    }
  }
  return spreads;
}

void ArenaLayout::place() {
  axisOrder = orderAxes();
  std::vector<AxisSet> spreads = findSpreads();
  // Every buffer in the arena starts aligned, and so does every copy.
  auto align = [&](uint64_t bytes) {
    return (bytes + plan->alignment - 1) / plan->alignment * plan->alignment;
  };
  // Begin, end and number of copies of each alias set.
  std::vector<std::pair<uint64_t, std::pair<bool, int64_t>>> edges;
  for (uint32_t set = 0; set < aliasSets.size(); ++set) {
    auto [begin, end] = aliasSets.bytes(set);
    if (begin == end)
      continue;
    int64_t count = copiesOf(replication.varies(set), spreads[set]).count;
    edges.push_back({begin, {true, count}});
    edges.push_back({align(end), {false, count}});
  }
  std::sort(edges.begin(), edges.end());
  std::multiset<int64_t> open;
  std::map<uint64_t, uint64_t> bases; // by arena offset
  uint64_t before = 0;
  for (const auto &[offset, edge] : edges) {
    if (!open.empty())
      numBytes += (offset - before) * *open.rbegin();
    before = offset;
    bases[offset] = numBytes;
    if (edge.first)
      open.insert(edge.second);
    else
      open.erase(open.find(edge.second));
  }
  for (uint32_t set = 0; set < aliasSets.size(); ++set) {
    auto [begin, end] = aliasSets.bytes(set);
    places.push_back({begin == end ? 0 : bases[begin], align(end - begin),
                      &copiesOf(replication.varies(set), spreads[set])});
  }
}

uint64_t ArenaLayout::offsetIn(uint32_t set, int64_t device,
                               uint64_t arenaOffset) const {
  const Place &place = places[set];
  return place.base + (arenaOffset - aliasSets.bytes(set).begin) +
         place.copies->ofDevice[device - local.first] * place.stride;
}

std::vector<int64_t> ArenaLayout::firstDevices(AxisSet axes,
                                               DeviceRange devices) const {
  return rt::firstDevices(plan->mesh, marked(plan->mesh, axes), devices);
}

std::vector<int64_t>
ArenaLayout::devicesFor(size_t program, const std::vector<Operand> &operands,
                        DeviceRange devices) const {
  AxisSet axes = 0;
  for (const Operand &operand : operands)
    if (operand.isWrite)
      axes |= replication.varies(aliasSets.ofBuffer(program, operand.buffer));
  return firstDevices(axes, devices);
}

std::vector<std::vector<int64_t>>
ArenaLayout::termsOf(size_t program, uint32_t command,
                     absl::Span<const int64_t> devices) const {
  absl::Span<const int> axes = replication.axesOfSum(program, command);
  std::vector<std::vector<int64_t>> groups;
  if (!axes.empty())
    groups = plan->mesh.groups(axes);
  std::vector<std::vector<int64_t>> terms;
  for (int64_t device : devices) {
    std::vector<int64_t> &of = terms.emplace_back();
    if (groups.empty())
      of.push_back(device);
    for (const std::vector<int64_t> &group : groups)
      if (absl::c_linear_search(group, device))
        absl::c_copy_if(group, std::back_inserter(of),
                        [&](int64_t member) { return local.contains(member); });
  }
  return terms;
}
