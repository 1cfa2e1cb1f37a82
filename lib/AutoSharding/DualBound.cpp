//===- DualBound.cpp - What every plan costs at least ---------------------===//

#include "DualBound.h"

#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace llvm;
using namespace shardc;

/// Users that a tensor is priced for: in graphs of at most `smallGraph`
/// layouts, and in larger ones.
constexpr size_t maxTreeUsersSmall = 4, maxTreeUsers = 3;
constexpr int smallGraph = 64;
/// Parts of graphs are used once they have so few nodes: a larger matrix is
/// dearer to make than some sweeps over the edges of the graph.
constexpr size_t maxPart = 64;

/// What is out of reach stays so.
static double subtract(double price, double message) {
  return message < unreachable ? price - message : unreachable;
}

DualBound::DualBound(const SearchProblem &problem,
                     const OpEquivalenceClasses &classes, PriceGraphs &graphs,
                     const DualBound *coarser)
    : problem(&problem), classes(&classes), graphs(&graphs),
      ops(classes.ops.size()), ports(classes.ops.size()),
      values(classes.values.size()), isFirst(!coarser) {
  findPorts();
  for (auto [index, opClass] : llvm::enumerate(classes.ops)) {
    const SearchOp &op = problem.ops[opClass.representative];
    std::vector<int> options;
    if (coarser) {
      int parent = coarser->classes->opClassOf[opClass.representative];
      options = coarser->ops[parent].options;
    } else {
      options.resize(op.options->size());
      std::iota(options.begin(), options.end(), 0);
    }
    setOptions(index, std::move(options));
  }
  findGraphs(coarser);
  if (coarser) {
    takeMessages(*coarser);
    return;
  }
  for (size_t index = 0; index < ops.size(); ++index)
    sendAll(index);
}

/// Where ports have the same layouts.
void DualBound::takeMessages(const DualBound &coarser) {
  for (auto [index, opClass] : llvm::enumerate(classes->ops)) {
    int parent = coarser.classes->opClassOf[opClass.representative];
    for (auto [number, port] : llvm::enumerate(ports[index])) {
      const Port &source = coarser.ports[parent][number];
      if (port.places.empty() || source.places.empty() ||
          port.layouts != source.layouts)
        continue;
      port.message = source.message;
      // What was out of reach there need not be so here.
      for (double &worth : port.message)
        worth = worth < unreachable ? worth : 0;
    }
    setPrices(index);
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

/// Finds out which tensors each port is on.
void DualBound::findPorts() {
  for (auto [index, opClass] : llvm::enumerate(classes->ops))
    ports[index].resize(problem->ops[opClass.representative].ports.size());
  // Of many users the first few count; a port counts everywhere or nowhere.
  std::set<PortClass> ignored;
  for (const ValueClass &shape : classes->values) {
    size_t most = graphs->getWhole(shape.table).size() <= smallGraph
                      ? maxTreeUsersSmall
                      : maxTreeUsers;
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

/// Whether a tensor at `port` touches ops that come later (earlier).
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

/// Gives op class `index` the options `options`, which it had before.
void DualBound::setOptions(int index, std::vector<int> options) {
  const SearchOp &op = problem->ops[classes->ops[index].representative];
  const std::vector<SearchOption> &all = *op.options;
  ops[index].options = std::move(options);
  // By layout its position among those that are used, or unused.
  constexpr int unused = -1;
  std::vector<int> positionOf;
  for (auto [number, port] : llvm::enumerate(ports[index])) {
    positionOf.clear();
    for (int option : ops[index].options) {
      size_t layout = all[option].layouts[number];
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
    port.positions.reserve(ops[index].options.size());
    for (int option : ops[index].options)
      port.positions.push_back(positionOf[all[option].layouts[number]]);
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
  setPrices(index);
}

/// What the messages leave of the price of each option of op class `index`.
void DualBound::setPrices(int index) {
  const SearchOp &op = problem->ops[classes->ops[index].representative];
  const std::vector<SearchOption> &all = *op.options;
  ops[index].prices.clear();
  ops[index].prices.reserve(ops[index].options.size());
  for (auto [place, option] : llvm::enumerate(ops[index].options)) {
    double price = all[option].cost;
    for (const Port &port : ports[index])
      if (!port.places.empty())
        price = subtract(price, port.message[port.positions[place]]);
    ops[index].prices.push_back(price);
  }
}

/// Finds the layouts by way of which each tensor can be delivered.
void DualBound::findGraphs(const DualBound *coarser) {
  // By table and layouts at the ends: most tensors are like others.
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

/// Tells tensors the layouts that ports of op class `index` have there.
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

int DualBound::getNumOptions() const {
  int sum = 0;
  for (const Op &op : ops)
    sum += op.options.size();
  return sum;
}

std::vector<double> DualBound::getExcess(int index) {
  const SearchOp &shape = problem->ops[classes->ops[index].representative];
  std::vector<double> excess = ops[index].prices;
  double base = getOpBase(index);
  for (double &price : excess)
    price -= base;
  LayoutCosts more;
  for (auto [number, port] : llvm::enumerate(ports[index])) {
    if (!port.isOpen())
      continue;
    take(port, /*isExcess=*/true, more);
    // Ports on one tensor share what it costs more.
    double count = llvm::count(shape.ports, shape.ports[number]);
    for (auto [position, price] : llvm::zip_equal(port.positions, excess))
      price += more[position] / count;
  }
  return excess;
}

void DualBound::prune(double gap) {
  for (size_t index = 0; index < ops.size(); ++index) {
    Op &op = ops[index];
    std::vector<double> excess = getExcess(index);
    std::vector<int> kept;
    for (auto [option, price] : llvm::zip_equal(op.options, excess))
      if (price <= gap && price < unreachable)
        kept.push_back(option);
    if (kept.size() == op.options.size())
      continue;
    setOptions(index, std::move(kept));
    setNodes(index);
  }
  for (auto [index, shape] : llvm::enumerate(classes->values)) {
    TensorBound &bound = values[index].bound;
    if (!values[index].hasAllUsers)
      continue;
    CostGraph &graph = bound.getGraph();
    std::vector<int> nodes = bound.getForkNodes(bound.getBase() + gap);
    if (nodes.size() < size_t(graph.size()) && nodes.size() <= maxPart)
      bound.setGraph(
          graphs->getPart(shape.table, graph, nodes, /*isClosed=*/false));
  }
  for (size_t index = 0; index < ops.size(); ++index)
    setNodes(index);
}
