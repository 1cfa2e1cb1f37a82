//===- DualBound.h - What every plan costs at least ------------*- C++ -*-===//
//
// A lower bound on the cost of all plans, and of all plans that run an op in a
// given way. Ops and tensors are priced separately, each at its cheapest, which
// no plan can undercut; messages between them say what each layout of a port is
// worth. A message is added to the price of the tensor and subtracted from that
// of the op, so that plans cost the same whatever the messages, while the bound
// rises as they are passed on: block-coordinate ascent in the dual of the local
// linear relaxation (Wainwright, Jaakkola, Willsky, 2005; sequential as in
// Kolmogorov: Convergent tree-reweighted message passing, 2006). What a tensor
// costs is a Steiner tree; its least cost per layout of one port is found by
// dynamic programming over the subsets of its users (see DeliveryTrees.h).
//
// Messages belong to classes (SearchClasses.h), and so does all of this.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_DUALBOUND_H
#define SHARDC_ANALYSIS_DUALBOUND_H

#include "PriceGraph.h"
#include "SearchClasses.h"

namespace shardc {

class DualBound {
public:
  /// Borrows `problem`, `classes` and `graphs`. Starts with the options and
  /// messages of `coarser`, if given, whose classes contain these.
  DualBound(const SearchProblem &problem, const SearchClasses &classes,
            PriceGraphs &graphs, const DualBound *coarser = nullptr);

  /// Passes messages along the program and back.
  void sweep();
  /// No plan costs less.
  double getBound();
  /// Drops the options that only plans more than `gap` above the bound have.
  void prune(double gap);
  /// What `prune` and `sweep` change.
  struct State {
    std::vector<std::vector<int>> options;
    std::vector<std::vector<double>> prices;
    std::vector<std::vector<LayoutCosts>> messages;
  };
  State getState() const;
  void setState(const State &state);
  /// The options of op class `index` that are left.
  llvm::ArrayRef<int> getOptions(int index) const { return ops[index].options; }
  int getNumOptions() const;

  /// What the bound has for a member of op class, or value class, `index`.
  double getOpBase(int index) const;
  double getValueBase(int index);

  /// What a tensor of class `index` costs at least, its messages from outside
  /// included, when some of its ports are decided, `inside`. `layouts` are
  /// those in which it exists, if its producer is decided, or else those in
  /// which the decided users want it. What delivering it cost so far is not
  /// counted.
  double getRest(int index, unsigned inside, llvm::ArrayRef<int> layouts);
  /// The bits of `inside`: for the producer, and for a user, by its number in
  /// the class.
  static constexpr unsigned producerBit = 1;
  unsigned getUserBit(int index, int user) const {
    return values[index].userBits[user];
  }

private:
  struct Op {
    std::vector<int> options;
    /// Per option: its price as the messages have it.
    std::vector<double> prices;
  };
  /// A use of a port class: the value class, and how often it occurs there.
  struct Place {
    int value;
    int count = 0;
  };
  struct Port {
    /// Empty: what the tensor costs does not depend on this port.
    LayoutCosts message;
    /// The layouts that have one.
    std::vector<int> layouts;
    std::vector<Place> places;
  };
  struct Value {
    PriceGraph *graph = nullptr;
    /// The users that it is priced for; delivering to others is free.
    std::vector<PortClass> users;
    std::vector<unsigned> userBits;
    /// By set of users: the least cost to deliver to them from each layout.
    std::vector<LayoutCosts> trees;
    std::vector<bool> isKnown;
    /// The least cost of having it in each layout.
    LayoutCosts made;
    bool isMadeKnown = false;
  };

  Port &getPort(PortClass port) { return ports[port.opClass][port.port]; }
  void updateOp(int index, bool backward);
  bool leadsOn(PortClass port, bool backward) const;
  void setMessage(PortClass port, LayoutCosts message);
  /// The least cost of a value of class `index` for each layout that port
  /// `port` can have, whose message is left out.
  LayoutCosts getMarginal(int index, PortClass port);
  const LayoutCosts &getTree(int index, unsigned users);
  /// The least costs of delivering to two sets of users that together are
  /// `users`, both from each layout.
  LayoutCosts getForks(int index, unsigned users);
  const LayoutCosts &getMade(int index);
  void closeMessages(int index);
  void inherit(const DualBound &coarser);

  const SearchProblem &problem;
  const SearchClasses &classes;
  std::vector<Op> ops;
  std::vector<std::vector<Port>> ports;
  std::vector<Value> values;
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_DUALBOUND_H
