//===- DualBound.h - What every plan costs at least -------------*- C++ -*-===//
//
// A lower bound on the cost of all plans, and of all plans that run an op in a
// given way. Ops and tensors are priced separately, each at its cheapest, which
// no plan can undercut; messages between them say what each layout of a port is
// worth. A message is added to the price of the tensor and subtracted from that
// of the op, so that plans cost the same whatever the messages, while the bound
// rises as they are passed on: block-coordinate ascent in the dual of the local
// linear relaxation (Wainwright, Jaakkola, Willsky, 2005; sequential as in
// Kolmogorov: Convergent tree-reweighted message passing, 2006), with momentum
// (Nesterov, 1983). What a tensor costs is in TensorBound.h.
//
// Messages belong to classes (OpEquivalenceClasses.h), and so does all of this.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_DUALBOUND_H
#define SHARDC_LIB_AUTOSHARDING_DUALBOUND_H

#include "OpEquivalenceClasses.h"
#include "TensorBound.h"

namespace shardc {

class DualBound {
public:
  /// Borrows `problem`, `classes` and `graphs`. Starts with the options and
  /// messages of `coarser`, if given, whose classes contain these, and which no
  /// price was higher for.
  DualBound(const SearchProblem &problem, const OpEquivalenceClasses &classes,
            PriceGraphs &graphs, const DualBound *coarser = nullptr);

  /// Passes messages along the program and back, after moving them on as they
  /// moved last if that helped; returns the bound: no plan costs less.
  double sweep();
  /// Drops the options, and the ways to deliver tensors, that only plans more
  /// than `gap` above the bound have.
  void prune(double gap);
  /// The options of op class `index` that are left.
  llvm::ArrayRef<int> getOptions(int index) const { return ops[index].options; }
  int getNumOptions() const;
  /// Per option that is left of op class `index`: how much more than the bound
  /// plans cost at least that run a member this way.
  std::vector<double> getExcess(int index);

  /// What the bound has for a member of op class, or value class, `index`.
  double getOpBase(int index) const;
  double getValueBase(int index) { return values[index].bound.getBase(); }
  /// The graph of the layouts that tensors of a class may have.
  CostGraph &getGraph(int index) const {
    return values[index].bound.getGraph();
  }

  /// See TensorBound; `index` is a value class.
  double getRest(int index, unsigned inside, llvm::ArrayRef<int> nodes) {
    return values[index].bound.getRest(inside, nodes);
  }
  /// The bit of a user, by its number in the class; 0 if it is not priced for.
  unsigned getUserBit(int index, int user) const {
    return values[index].userBits[user];
  }

private:
  struct Op {
    std::vector<int> options;
    /// Per option: its price as the messages have it.
    std::vector<double> prices;
  };
  /// A use of a port class: the value class, and its ports there.
  struct Place {
    int value;
    llvm::SmallVector<int, 1> users;
  };
  struct Port {
    /// Those of the options that are left, ascending.
    std::vector<int> layouts;
    /// What each layout is worth, now and after the last sweep.
    LayoutCosts message, previous;
    /// Where each option's layout is in `layouts`.
    std::vector<int> positions;
    /// None: what the tensor costs does not depend on this port.
    std::vector<Place> places;
    /// Whether its tensors touch ops that come later, and earlier.
    bool leadsOn[2];

    /// Whether there is something to say about it.
    bool isOpen() const { return layouts.size() > 1 && !places.empty(); }
  };
  struct Value {
    TensorBound bound;
    std::vector<unsigned> userBits;
    /// The users that it is priced for, and whether these are all.
    std::vector<PortClass> users;
    bool hasAllUsers = true;
  };

  Port &getPort(PortClass port) { return ports[port.opClass][port.port]; }
  void updateOp(int index, bool backward);
  double getBound();
  bool leadsOn(const Port &port, PortClass place, bool backward) const;
  /// Sends the message of a port to its tensors.
  void send(Port &port);
  /// The least over its tensors of what each layout of a port costs there.
  void take(const Port &port, bool isExcess, LayoutCosts &taken);
  void setOptions(int index, std::vector<int> options);
  void findPorts();
  void takeMessages(const DualBound &coarser);
  void findGraphs(const DualBound *coarser);
  void setNodes(int index);
  void setPrices(int index);
  void sendAll(int index);
  /// Whether that raised the bound.
  bool passMessages();
  /// Moves messages on by `factor` times what they are ahead of `previous`.
  void move(double factor);

  const SearchProblem *problem;
  const OpEquivalenceClasses *classes;
  PriceGraphs *graphs;
  std::vector<Op> ops;
  std::vector<std::vector<Port>> ports;
  std::vector<Value> values;
  double least = 0;
  /// Sweeps since messages last moved on too far.
  int momentum = 0;
  /// Whether the tensors of most members decide what their ports are worth, for
  /// a quick start: with messages of coarser classes for one sweep.
  bool followsMajor = true, isFirst;
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_DUALBOUND_H
