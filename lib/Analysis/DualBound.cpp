//===- DualBound.cpp - What every plan costs at least ---------------------===//

#include "DualBound.h"

#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;
using namespace shardc;

/// Users that a tensor is priced for: in graphs of at most `smallGraph`
/// layouts, and in larger ones.
constexpr size_t maxTreeUsersSmall = 4, maxTreeUsers = 3;
constexpr int smallGraph = 64;
/// Tensors of a class with less than this part of the members of another one
/// follow that one's messages, where ports are shared.
constexpr int minorPart = 4;

DualBound::DualBound(const SearchProblem &problem, const SearchClasses &classes,
                     PriceGraphs &graphs, const DualBound *coarser)
    : problem(problem), classes(classes), ops(classes.ops.size()),
      ports(classes.ops.size()), values(classes.values.size()) {
  for (auto [index, opClass] : llvm::enumerate(classes.ops)) {
    const SearchOp &op = problem.ops[opClass.representative];
    for (auto [number, option] : llvm::enumerate(op.options)) {
      ops[index].options.push_back(number);
      ops[index].prices.push_back(option.cost);
    }
    ports[index].resize(op.ports.size());
  }
  // Of many users the first few count; a port counts everywhere or nowhere.
  std::set<PortClass> ignored;
  for (auto [index, shape] : llvm::enumerate(classes.values)) {
    Value &value = values[index];
    value.graph = &graphs.at(shape.table);
    size_t most =
        value.graph->size() <= smallGraph ? maxTreeUsersSmall : maxTreeUsers;
    for (PortClass user :
         ArrayRef(shape.users).drop_front(std::min(most, shape.users.size())))
      ignored.insert(user);
  }
  for (auto [index, shape] : llvm::enumerate(classes.values)) {
    Value &value = values[index];
    for (PortClass user : shape.users) {
      bool counts = !ignored.count(user);
      if (counts)
        value.users.push_back(user);
      value.userBits.push_back(counts ? producerBit << value.users.size() : 0);
    }
    value.trees.resize(size_t(1) << value.users.size());
    value.isKnown.resize(value.trees.size());
    std::vector<PortClass> all = value.users;
    all.push_back(shape.producer);
    for (PortClass port : all) {
      Port &info = getPort(port);
      if (info.places.empty() ||
          info.places.back().value != static_cast<int>(index))
        info.places.push_back({static_cast<int>(index)});
      ++info.places.back().count;
      info.message.assign(value.graph->size(), 0);
    }
  }
  if (coarser)
    inherit(*coarser);
  for (size_t index = 0; index < ops.size(); ++index)
    closeMessages(index);
}

void DualBound::inherit(const DualBound &coarser) {
  for (size_t index = 0; index < ops.size(); ++index) {
    int representative = classes.ops[index].representative;
    int parent = coarser.classes.opClassOf[representative];
    const SearchOp &shape = problem.ops[representative];
    Op &op = ops[index];
    op.options = coarser.ops[parent].options;
    op.prices.clear();
    for (int option : op.options)
      op.prices.push_back(shape.options[option].cost);
    for (auto [number, port] : llvm::enumerate(ports[index])) {
      const LayoutCosts &message = coarser.ports[parent][number].message;
      if (port.message.empty() || message.empty())
        continue;
      port.message = message;
      for (auto [option, price] : llvm::zip_equal(op.options, op.prices))
        price -= message[shape.options[option].layouts[number]];
    }
  }
}

/// Layouts that no option has at a port are out of reach there.
void DualBound::closeMessages(int index) {
  const SearchOp &op = problem.ops[classes.ops[index].representative];
  for (auto [number, port] : llvm::enumerate(ports[index])) {
    if (port.message.empty())
      continue;
    LayoutCosts message(port.message.size(), unreachable);
    for (int option : ops[index].options) {
      int layout = op.options[option].layouts[number];
      message[layout] = port.message[layout];
    }
    setMessage({index, static_cast<int>(number)}, std::move(message));
  }
}

void DualBound::setMessage(PortClass port, LayoutCosts message) {
  Port &info = getPort(port);
  info.message = std::move(message);
  info.layouts.clear();
  for (auto [id, cost] : llvm::enumerate(info.message))
    if (cost < unreachable)
      info.layouts.push_back(id);
  for (const Place &place : info.places) {
    Value &value = values[place.value];
    if (classes.values[place.value].producer == port)
      value.isMadeKnown = false;
    for (auto [number, user] : llvm::enumerate(value.users))
      if (user == port)
        for (unsigned users = 1; users < value.isKnown.size(); ++users)
          if (users >> number & 1)
            value.isKnown[users] = false;
  }
}

const LayoutCosts &DualBound::getTree(int index, unsigned users) {
  Value &value = values[index];
  LayoutCosts &costs = value.trees[users];
  if (value.isKnown[users])
    return costs;
  costs = getForks(index, users);
  value.graph->relax(costs, /*backward=*/true);
  value.isKnown[users] = true;
  return costs;
}

LayoutCosts DualBound::getForks(int index, unsigned users) {
  const Value &value = values[index];
  if (llvm::isPowerOf2_32(users))
    return getPort(value.users[llvm::Log2_32(users)]).message;
  LayoutCosts costs(value.graph->size(), users ? unreachable : 0);
  for (unsigned one = (users - 1) & users; one; one = (one - 1) & users) {
    unsigned other = users & ~one;
    if (one < other)
      continue;
    const LayoutCosts &lhs = getTree(index, one);
    const LayoutCosts &rhs = getTree(index, other);
    for (size_t id = 0; id < costs.size(); ++id)
      costs[id] = std::min(costs[id], lhs[id] + rhs[id]);
  }
  return costs;
}

const LayoutCosts &DualBound::getMade(int index) {
  Value &value = values[index];
  if (!value.isMadeKnown) {
    value.made = getPort(classes.values[index].producer).message;
    value.graph->relax(value.made, /*backward=*/false);
    value.isMadeKnown = true;
  }
  return value.made;
}

LayoutCosts DualBound::getMarginal(int index, PortClass port) {
  const ValueClass &shape = classes.values[index];
  Value &value = values[index];
  ArrayRef<int> layouts = getPort(port).layouts;
  unsigned all = value.trees.size() - 1;
  if (shape.producer == port) {
    LayoutCosts costs = getForks(index, all);
    value.graph->relaxAt(costs, /*backward=*/true, layouts);
    return costs;
  }
  // What it costs to have a tree over `users` start at each layout, and
  // everything else delivered.
  std::map<unsigned, LayoutCosts> starts;
  unsigned own = 1u << (llvm::find(value.users, port) - value.users.begin());
  for (unsigned users = all; users >= own; --users) {
    if (!(users & own))
      continue;
    LayoutCosts &start = starts[users];
    if (users == all) {
      start = users == own ? getPort(shape.producer).message : getMade(index);
    } else {
      start.assign(value.graph->size(), unreachable);
      unsigned rest = all & ~users;
      for (unsigned more = rest; more; more = (more - 1) & rest) {
        const LayoutCosts &lhs = starts[users | more];
        const LayoutCosts &rhs = getTree(index, more);
        for (size_t id = 0; id < start.size(); ++id)
          start[id] = std::min(start[id], lhs[id] + rhs[id]);
      }
    }
    if (users == own)
      value.graph->relaxAt(start, /*backward=*/false, layouts);
    else if (users != all)
      value.graph->relax(start, /*backward=*/false);
  }
  return std::move(starts[own]);
}

/// Whether a tensor at `port` touches ops that come later (earlier).
bool DualBound::leadsOn(PortClass port, bool backward) const {
  for (const Place &place : ports[port.opClass][port.port].places) {
    const ValueClass &value = classes.values[place.value];
    auto isOn = [&](PortClass other) {
      if (other == port)
        return place.count > 1;
      return backward ? other.opClass <= port.opClass
                      : other.opClass >= port.opClass;
    };
    if (isOn(value.producer) || llvm::any_of(values[place.value].users, isOn))
      return true;
  }
  return false;
}

void DualBound::updateOp(int index, bool backward) {
  const SearchOp &shape = problem.ops[classes.ops[index].representative];
  Op &op = ops[index];
  int numOn = 0, numBack = 0;
  // Take all that the tensors' prices differ by.
  for (auto [number, info] : llvm::enumerate(ports[index])) {
    if (info.message.empty())
      continue;
    PortClass port{index, static_cast<int>(number)};
    leadsOn(port, backward) ? ++numOn : ++numBack;
    LayoutCosts taken(info.message.size(), unreachable);
    int count = 1;
    int most = 0;
    for (const Place &place : info.places)
      most = std::max(most, classes.values[place.value].numMembers);
    for (const Place &place : info.places) {
      // The few tensors at the ends of many equal layers do not decide.
      if (classes.values[place.value].numMembers * minorPart < most)
        continue;
      LayoutCosts marginal = getMarginal(place.value, port);
      count = std::max(count, place.count);
      for (size_t id = 0; id < taken.size(); ++id)
        taken[id] = std::min(taken[id], marginal[id] + info.message[id]);
    }
    LayoutCosts message = info.message;
    for (auto [cost, kept] : llvm::zip_equal(taken, message)) {
      cost = kept < unreachable ? cost / count : unreachable;
      kept = cost < unreachable ? kept - cost : unreachable;
    }
    for (auto [option, price] : llvm::zip_equal(op.options, op.prices))
      price += taken[shape.options[option].layouts[number]];
    setMessage(port, std::move(message));
  }
  if (numOn == 0)
    return;
  // Pass it on.
  double share = 1.0 / std::max(numOn, numBack);
  std::vector<double> given(op.prices.size(), 0);
  for (auto [number, info] : llvm::enumerate(ports[index])) {
    PortClass port{index, static_cast<int>(number)};
    if (info.message.empty() || !leadsOn(port, backward))
      continue;
    LayoutCosts least(info.message.size(), unreachable);
    for (auto [option, price] : llvm::zip_equal(op.options, op.prices)) {
      double &cost = least[shape.options[option].layouts[number]];
      cost = std::min(cost, price);
    }
    LayoutCosts message = info.message;
    for (auto [cost, kept] : llvm::zip_equal(least, message))
      kept = cost < unreachable ? kept + share * cost : unreachable;
    for (auto [index, option] : llvm::enumerate(op.options))
      if (op.prices[index] < unreachable)
        given[index] += share * least[shape.options[option].layouts[number]];
    setMessage(port, std::move(message));
  }
  for (auto [price, part] : llvm::zip_equal(op.prices, given))
    price -= part;
}

DualBound::State DualBound::getState() const {
  State state;
  for (const Op &op : ops) {
    state.options.push_back(op.options);
    state.prices.push_back(op.prices);
  }
  for (const std::vector<Port> &list : ports) {
    std::vector<LayoutCosts> &messages = state.messages.emplace_back();
    for (const Port &port : list)
      messages.push_back(port.message);
  }
  return state;
}

void DualBound::setState(const State &state) {
  for (size_t index = 0; index < ops.size(); ++index) {
    ops[index].options = state.options[index];
    ops[index].prices = state.prices[index];
    for (auto [port, message] : llvm::enumerate(state.messages[index]))
      setMessage({int(index), int(port)}, message);
  }
}

void DualBound::sweep() {
  int size = ops.size();
  for (int index = 0; index < size; ++index)
    updateOp(index, /*backward=*/false);
  for (int index = size - 1; index >= 0; --index)
    updateOp(index, /*backward=*/true);
}

double DualBound::getOpBase(int index) const {
  const std::vector<double> &prices = ops[index].prices;
  if (prices.empty())
    return unreachable;
  return *std::min_element(prices.begin(), prices.end());
}

double DualBound::getValueBase(int index) {
  PortClass producer = classes.values[index].producer;
  LayoutCosts costs = getMarginal(index, producer);
  double least = unreachable;
  for (int layout : getPort(producer).layouts)
    least = std::min(least, costs[layout] + getPort(producer).message[layout]);
  return least;
}

double DualBound::getBound() {
  double sum = 0;
  for (auto [index, op] : llvm::enumerate(classes.ops))
    sum += op.numMembers * getOpBase(index);
  for (auto [index, value] : llvm::enumerate(classes.values))
    sum += value.numMembers * getValueBase(index);
  return sum;
}

int DualBound::getNumOptions() const {
  int sum = 0;
  for (const Op &op : ops)
    sum += op.options.size();
  return sum;
}

void DualBound::prune(double gap) {
  for (size_t index = 0; index < ops.size(); ++index) {
    const SearchOp &shape = problem.ops[classes.ops[index].representative];
    Op &op = ops[index];
    std::vector<double> excess = op.prices;
    double base = getOpBase(index);
    for (double &price : excess)
      price -= base;
    for (auto [number, info] : llvm::enumerate(ports[index])) {
      if (info.message.empty())
        continue;
      LayoutCosts more(info.message.size(), unreachable);
      for (const Place &place : info.places) {
        LayoutCosts marginal =
            getMarginal(place.value, {int(index), int(number)});
        double least = getValueBase(place.value);
        for (size_t id = 0; id < more.size(); ++id)
          more[id] =
              std::min(more[id], marginal[id] + info.message[id] - least);
      }
      // Ports on one tensor share what it costs more.
      double count = llvm::count(shape.ports, shape.ports[number]);
      for (auto [option, price] : llvm::zip_equal(op.options, excess))
        price += more[shape.options[option].layouts[number]] / count;
    }
    Op kept;
    for (auto [number, price] : llvm::enumerate(excess))
      if (price <= gap) {
        kept.options.push_back(op.options[number]);
        kept.prices.push_back(op.prices[number]);
      }
    if (kept.options.size() == op.options.size())
      continue;
    op = std::move(kept);
    closeMessages(index);
  }
}

double DualBound::getRest(int index, unsigned inside, ArrayRef<int> layouts) {
  const Value &value = values[index];
  unsigned outside = (value.trees.size() - 1) & ~(inside >> 1);
  if (inside & producerBit) {
    // Every user is served from some layout that exists, alone or with others.
    std::vector<double> best(outside + 1, unreachable);
    best[0] = 0;
    for (unsigned users = 1; users <= outside; ++users) {
      if (users & ~outside)
        continue;
      const LayoutCosts &tree = getTree(index, users);
      for (int layout : layouts)
        best[users] = std::min(best[users], tree[layout]);
      for (unsigned one = (users - 1) & users; one; one = (one - 1) & users)
        best[users] = std::min(best[users], best[one] + best[users & ~one]);
    }
    return best[outside];
  }
  // The tree to some of the layouts that are wanted and to the users outside.
  layouts = layouts.take_front(maxTreeUsers);
  unsigned wanted = (1u << layouts.size()) - 1;
  unsigned all = wanted | outside << layouts.size();
  std::map<unsigned, LayoutCosts> mixed;
  auto get = [&](unsigned leaves) -> const LayoutCosts & {
    if (!(leaves & wanted))
      return getTree(index, leaves >> layouts.size());
    if (llvm::isPowerOf2_32(leaves))
      return value.graph->getDistances(layouts[llvm::Log2_32(leaves)],
                                       /*backward=*/true);
    return mixed[leaves];
  };
  for (unsigned leaves = 1; leaves <= all; ++leaves) {
    if (leaves & ~all || !(leaves & wanted) || llvm::isPowerOf2_32(leaves))
      continue;
    LayoutCosts &costs = mixed[leaves];
    costs.assign(value.graph->size(), unreachable);
    for (unsigned one = (leaves - 1) & leaves; one; one = (one - 1) & leaves) {
      unsigned other = leaves & ~one;
      if (one < other)
        continue;
      const LayoutCosts &lhs = get(one);
      const LayoutCosts &rhs = get(other);
      for (size_t id = 0; id < costs.size(); ++id)
        costs[id] = std::min(costs[id], lhs[id] + rhs[id]);
    }
    if (leaves != all)
      value.graph->relax(costs, /*backward=*/true);
  }
  double least = unreachable;
  for (auto [tree, made] : llvm::zip_equal(get(all), getMade(index)))
    least = std::min(least, tree + made);
  return least;
}
