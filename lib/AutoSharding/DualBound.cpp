//===- DualBound.cpp - The dual lower bound of all plans ------------------===//

#include "DualBound.h"

#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace llvm;
using namespace shardc;

/// `cost` less `message`; unreachable costs stay unreachable.
static double subtract(double cost, double message) {
  return message < unreachable ? cost - message : unreachable;
}

DualBound::DualBound(const SearchProblem &problem,
                     const OpEquivalenceClasses &classes, CostGraphs &graphs,
                     const SearchOptions &searchOptions,
                     const DualBound *coarser)
    : problem(&problem), classes(&classes), graphs(&graphs),
      options(&searchOptions), ops(classes.ops.size()),
      ports(classes.ops.size()), values(classes.values.size()),
      isFirst(!coarser) {
  findPorts();
  for (auto [index, opClass] : llvm::enumerate(classes.ops)) {
    const SearchOp &op = problem.ops[opClass.representative];
    std::vector<int> strategies;
    if (coarser) {
      int parent = coarser->classes->opClassOf[opClass.representative];
      strategies = coarser->ops[parent].strategies;
    } else {
      strategies.resize(op.strategies->size());
      std::iota(strategies.begin(), strategies.end(), 0);
    }
    setStrategies(index, std::move(strategies));
  }
  findGraphs(coarser);
  if (coarser) {
    takeMessages(*coarser);
    return;
  }
  for (size_t index = 0; index < ops.size(); ++index)
    sendAll(index);
}

/// Takes the messages of `coarser` where ports have the same layouts.
void DualBound::takeMessages(const DualBound &coarser) {
  for (auto [index, opClass] : llvm::enumerate(classes->ops)) {
    int parent = coarser.classes->opClassOf[opClass.representative];
    for (auto [number, port] : llvm::enumerate(ports[index])) {
      const Port &source = coarser.ports[parent][number];
      if (port.places.empty() || source.places.empty() ||
          port.layouts != source.layouts)
        continue;
      port.message = source.message;
      // Layouts unreachable there may be reachable here.
      for (double &worth : port.message)
        worth = worth < unreachable ? worth : 0;
    }
    setCosts(index);
    sendAll(index);
  }
}

void DualBound::sendAll(int index) {
  for (Port &port : ports[index])
    if (!port.places.empty()) {
      port.previous = port.message;
      send(port);
    }
}

/// Finds the tensors of each port.
void DualBound::findPorts() {
  for (auto [index, opClass] : llvm::enumerate(classes->ops))
    ports[index].resize(problem->ops[opClass.representative].ports.size());
  // The bound counts the first few of many users. A port counts for all of its
  // tensors or for none.
  std::set<PortClass> ignored;
  for (const ValueClass &shape : classes->values) {
    size_t most =
        graphs->getWhole(shape.table).size() <= options->bound.smallGraph
            ? options->bound.maxUsersSmall
            : options->bound.maxUsers;
    for (PortClass user :
         ArrayRef(shape.users).drop_front(std::min(most, shape.users.size())))
      ignored.insert(user);
  }
  for (auto [index, shape] : llvm::enumerate(classes->values)) {
    Value &value = values[index];
    auto addPlace = [&, index = index](PortClass port, int user) {
      std::vector<Place> &places = getPort(port).places;
      if (places.empty() || places.back().value != static_cast<int>(index))
        places.push_back({static_cast<int>(index), {}});
      places.back().users.push_back(user);
    };
    for (PortClass user : shape.users) {
      if (ignored.count(user)) {
        value.hasAllUsers = false;
        value.userBits.push_back(0);
        continue;
      }
      addPlace(user, value.users.size());
      value.userBits.push_back(TensorBound::getUserBit(value.users.size()));
      value.users.push_back(user);
    }
    addPlace(shape.producer, TensorBound::producer);
    value.bound.setUsers(value.users.size());
  }
  for (auto [index, list] : llvm::enumerate(ports))
    for (auto [number, port] : llvm::enumerate(list))
      for (bool backward : {false, true})
        port.leadsOn[backward] =
            leadsOn(port, {int(index), int(number)}, backward);
}

/// Whether a tensor at `port` touches later (`backward`: earlier) ops.
bool DualBound::leadsOn(const Port &info, PortClass port, bool backward) const {
  auto isOn = [&](PortClass other) {
    return !(other == port) && (backward ? other.opClass <= port.opClass
                                         : other.opClass >= port.opClass);
  };
  return llvm::any_of(info.places, [&](const Place &place) {
    return place.users.size() > 1 ||
           isOn(classes->values[place.value].producer) ||
           llvm::any_of(values[place.value].users, isOn);
  });
}

/// Restricts op class `index` to `strategies`, a subset of those before.
void DualBound::setStrategies(int index, std::vector<int> strategies) {
  const SearchOp &op = problem->ops[classes->ops[index].representative];
  const std::vector<SearchStrategy> &all = *op.strategies;
  ops[index].strategies = std::move(strategies);
  // By layout: its position among the layouts used, or `unused`.
  constexpr int unused = -1;
  std::vector<int> positionOf;
  for (auto [number, port] : llvm::enumerate(ports[index])) {
    positionOf.clear();
    for (int strategy : ops[index].strategies) {
      size_t layout = all[strategy].layouts[number];
      if (layout >= positionOf.size())
        positionOf.resize(layout + 1, unused);
      positionOf[layout] = 0;
    }
    std::vector<int> used;
    for (auto [layout, position] : llvm::enumerate(positionOf))
      if (position != unused) {
        position = used.size();
        used.push_back(layout);
      }
    port.positions.clear();
    port.positions.reserve(ops[index].strategies.size());
    for (int strategy : ops[index].strategies)
      port.positions.push_back(positionOf[all[strategy].layouts[number]]);
    LayoutCosts message(used.size()), previous(used.size());
    size_t old = 0;
    for (auto [position, layout] : llvm::enumerate(used)) {
      while (old < port.layouts.size() && port.layouts[old] < layout)
        ++old;
      if (old < port.message.size()) {
        message[position] = port.message[old];
        previous[position] = port.previous[old];
      }
    }
    port.layouts = std::move(used);
    port.message = std::move(message);
    port.previous = std::move(previous);
  }
  setCosts(index);
}

/// Computes the cost of each strategy of op class `index` less its messages.
void DualBound::setCosts(int index) {
  const SearchOp &op = problem->ops[classes->ops[index].representative];
  const std::vector<SearchStrategy> &all = *op.strategies;
  ops[index].costs.clear();
  ops[index].costs.reserve(ops[index].strategies.size());
  for (auto [place, strategy] : llvm::enumerate(ops[index].strategies)) {
    double cost = all[strategy].cost;
    for (const Port &port : ports[index])
      if (!port.places.empty())
        cost = subtract(cost, port.message[port.positions[place]]);
    ops[index].costs.push_back(cost);
  }
}

/// Finds the layouts through which each tensor can be delivered.
void DualBound::findGraphs(const DualBound *coarser) {
  // By table and layouts at the ends: most tensors equal others in these.
  std::map<std::tuple<DistanceTable *, std::vector<int>, std::vector<int>>,
           CostGraph *>
      known;
  for (auto [index, shape] : llvm::enumerate(classes->values)) {
    Value &value = values[index];
    CostGraph &whole = graphs->getWhole(shape.table);
    if (coarser) {
      int parent = coarser->classes->valueClassOf[shape.representative];
      CostGraph &graph = coarser->getGraph(parent);
      bool isSame = coarser->classes->values[parent].table == shape.table;
      // The nodes of a whole graph are its layouts.
      value.bound.setGraph(isSame ? graph
                                  : graphs->getPart(shape.table, whole,
                                                    graph.getLayouts(),
                                                    graph.isClosed()));
    } else {
      std::vector<int> targets;
      for (PortClass user : shape.users)
        llvm::append_range(targets, getPort(user).layouts);
      llvm::sort(targets);
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      const std::vector<int> &sources = getPort(shape.producer).layouts;
      CostGraph *&part = known[{shape.table, sources, targets}];
      if (!part)
        part = &graphs->getPart(shape.table, whole,
                                whole.getBetween(sources, targets),
                                /*isClosed=*/true);
      value.bound.setGraph(*part);
    }
  }
  for (size_t index = 0; index < ops.size(); ++index)
    setNodes(index);
}

/// Passes the layouts of the ports of op class `index` to their tensors.
void DualBound::setNodes(int index) {
  for (Port &port : ports[index])
    for (const Place &place : port.places) {
      TensorBound &bound = values[place.value].bound;
      std::vector<int> nodes;
      nodes.reserve(port.layouts.size());
      for (int layout : port.layouts)
        nodes.push_back(bound.getGraph().getNode(layout));
      for (int user : place.users)
        bound.setPort(user, nodes, port.message);
    }
}

void DualBound::send(Port &port) {
  for (const Place &place : port.places)
    for (int user : place.users)
      values[place.value].bound.setCosts(user, port.message);
}

void DualBound::take(const Port &port, bool isExcess, LayoutCosts &taken) {
  int most = 0;
  for (const Place &place : port.places)
    most = std::max(most, classes->values[place.value].numMembers);
  taken.assign(port.layouts.size(), unreachable);
  LayoutCosts minor, marginal;
  for (const Place &place : port.places) {
    // The few tensors at the ends of many equal layers are ignored.
    bool isMinor =
        followsMajor && !isExcess &&
        classes->values[place.value].numMembers * options->bound.minorPart <
            most;
    if (isMinor && minor.empty())
      minor.assign(taken.size(), unreachable);
    LayoutCosts &least = isMinor ? minor : taken;
    TensorBound &bound = values[place.value].bound;
    bound.getMarginal(place.users.front(), marginal);
    double base = unreachable;
    for (size_t id = 0, end = marginal.size(); id < end; ++id) {
      marginal[id] += port.message[id];
      base = std::min(base, marginal[id]);
    }
    if (base == unreachable)
      continue;
    for (size_t id = 0, end = marginal.size(); id < end; ++id)
      least[id] = std::min(least[id], marginal[id] - base);
  }
  // They count where no other tensor can have the layout.
  for (size_t id = 0, end = minor.size(); id < end; ++id)
    if (taken[id] == unreachable)
      taken[id] = minor[id];
}

void DualBound::updateOp(int index, bool backward) {
  Op &op = ops[index];
  int numOn = 0, numBack = 0;
  LayoutCosts taken;
  // Move the cost differences of the tensors to the op.
  for (Port &port : ports[index]) {
    if (!port.places.empty())
      port.leadsOn[backward] ? ++numOn : ++numBack;
    if (!port.isOpen())
      continue;
    take(port, /*isExcess=*/false, taken);
    for (auto [position, cost] : llvm::zip_equal(port.positions, op.costs))
      cost += taken[position];
    size_t count = 1;
    for (const Place &place : port.places)
      count = std::max(count, place.users.size());
    for (auto [cost, kept] : llvm::zip_equal(taken, port.message))
      kept = cost < unreachable ? kept - cost / count : unreachable;
    send(port);
  }
  if (numOn == 0)
    return;
  // Pass them on to the tensors ahead.
  double share = 1.0 / std::max(numOn, numBack);
  std::vector<double> given(op.costs.size(), 0);
  LayoutCosts best;
  for (Port &port : ports[index]) {
    if (!port.isOpen() || !port.leadsOn[backward])
      continue;
    best.assign(port.layouts.size(), unreachable);
    for (auto [position, cost] : llvm::zip_equal(port.positions, op.costs))
      best[position] = std::min(best[position], cost);
    for (auto [cost, kept] : llvm::zip_equal(best, port.message)) {
      kept = cost < unreachable ? kept + share * cost : unreachable;
      cost = cost < unreachable ? share * cost : 0;
    }
    for (auto [position, part] : llvm::zip_equal(port.positions, given))
      part += best[position];
    send(port);
  }
  for (auto [cost, part] : llvm::zip_equal(op.costs, given))
    cost -= part;
}

void DualBound::move(double factor) {
  for (auto [op, list] : llvm::zip_equal(ops, ports))
    for (Port &port : list) {
      if (!port.isOpen())
        continue;
      LayoutCosts moved = port.message;
      for (size_t id = 0, end = moved.size(); id < end; ++id)
        if (moved[id] < unreachable)
          moved[id] += factor * (port.message[id] - port.previous[id]);
      for (auto [position, cost] : llvm::zip_equal(port.positions, op.costs))
        if (cost < unreachable)
          cost -= moved[position] - port.message[position];
      port.previous = std::move(port.message);
      port.message = std::move(moved);
      if (factor != 0)
        send(port);
    }
}

double DualBound::sweep() {
  if (++momentum > options->bound.numPlainSweeps) {
    int step = momentum - options->bound.numPlainSweeps;
    move(step / (step + 3.0));
    if (passMessages())
      return least;
    // Momentum lowered the bound: undo it.
    momentum = 0;
    move(-1);
  }
  move(0);
  if (!passMessages() && followsMajor) {
    // The tensors ignored now lose more than the others gain.
    followsMajor = false;
    move(-1);
    move(0);
    passMessages();
  }
  if (!isFirst)
    followsMajor = false;
  return least = getBound();
}

bool DualBound::passMessages() {
  int size = ops.size();
  for (int index = 0; index < size; ++index)
    updateOp(index, /*backward=*/false);
  for (int index = size - 1; index >= 0; --index)
    updateOp(index, /*backward=*/true);
  double bound = getBound();
  bool isRaised = bound > least;
  least = std::max(least, bound);
  return isRaised;
}

double DualBound::getOpBase(int index) const {
  const std::vector<double> &costs = ops[index].costs;
  if (costs.empty())
    return unreachable;
  return *std::min_element(costs.begin(), costs.end());
}

double DualBound::getBound() {
  double sum = 0;
  for (auto [index, op] : llvm::enumerate(classes->ops))
    sum += op.numMembers * getOpBase(index);
  for (auto [index, value] : llvm::enumerate(classes->values))
    sum += value.numMembers * getValueBase(index);
  return sum;
}

std::vector<double> DualBound::getExcess(int index) {
  const SearchOp &shape = problem->ops[classes->ops[index].representative];
  std::vector<double> excess = ops[index].costs;
  double base = getOpBase(index);
  for (double &cost : excess)
    cost -= base;
  LayoutCosts more;
  for (auto [number, port] : llvm::enumerate(ports[index])) {
    if (!port.isOpen())
      continue;
    take(port, /*isExcess=*/true, more);
    // Ports of one tensor share its excess.
    double count = llvm::count(shape.ports, shape.ports[number]);
    for (auto [position, cost] : llvm::zip_equal(port.positions, excess))
      cost += more[position] / count;
  }
  return excess;
}

void DualBound::prune(double gap) {
  if (!options->bound.prunes)
    return;
  for (size_t index = 0; index < ops.size(); ++index) {
    Op &op = ops[index];
    std::vector<double> excess = getExcess(index);
    std::vector<int> kept;
    for (auto [strategy, cost] : llvm::zip_equal(op.strategies, excess))
      if (cost <= gap && cost < unreachable)
        kept.push_back(strategy);
    if (kept.size() == op.strategies.size())
      continue;
    setStrategies(index, std::move(kept));
    setNodes(index);
  }
  for (auto [index, shape] : llvm::enumerate(classes->values)) {
    TensorBound &bound = values[index].bound;
    if (!values[index].hasAllUsers)
      continue;
    CostGraph &graph = bound.getGraph();
    std::vector<int> nodes = bound.getForkNodes(bound.getBase() + gap);
    if (nodes.size() < size_t(graph.size()) &&
        nodes.size() <= options->bound.maxPart)
      bound.setGraph(
          graphs->getPart(shape.table, graph, nodes, /*isClosed=*/false));
  }
  for (size_t index = 0; index < ops.size(); ++index)
    setNodes(index);
}
