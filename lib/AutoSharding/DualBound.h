//===- DualBound.h - The dual lower bound of all plans ----------*- C++ -*-===//
//
// A lower bound of the cost of all plans, and of all plans that use a given
// strategy. It counts ops and tensors separately, each at its minimum. Messages
// between them shift costs: a message is added to the cost of the tensor and
// subtracted from that of the op, per layout of a port. Plans cost the same
// with any messages, while the bound rises as messages are passed on. This is
// block-coordinate ascent in the dual of the local linear relaxation
// (Wainwright, Jaakkola, Willsky, 2005; sequential as in Kolmogorov: Convergent
// tree-reweighted message passing, 2006), with momentum (Nesterov, 1983).
// TensorBound.h computes the minimum of a tensor.
//
// Messages, strategies and bounds belong to equivalence classes of ops
// (OpEquivalenceClasses.h).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_DUALBOUND_H
#define SHARDC_LIB_AUTOSHARDING_DUALBOUND_H

#include "OpEquivalenceClasses.h"
#include "TensorBound.h"

namespace shardc {

class DualBound {
public:
  /// Borrows `problem`, `classes`, `graphs` and `options`. If `coarser` is
  /// given, starts with its strategies and messages. Its classes must contain
  /// these, and no cost may have been higher for it.
  DualBound(const SearchProblem &problem, const OpEquivalenceClasses &classes,
            CostGraphs &graphs, const SearchOptions &options,
            const DualBound *coarser = nullptr);

  /// Moves messages ahead by momentum, passes them along the program and back,
  /// and returns the bound. Undoes the move if the bound fell.
  double sweep();
  /// Drops the strategies, and the layouts of tensors, that occur only in plans
  /// more than `gap` above the bound.
  void prune(double gap);
  /// The remaining strategies of op class `index`.
  llvm::ArrayRef<int> getStrategies(int index) const {
    return ops[index].strategies;
  }
  /// The excess (reduced cost) of each remaining strategy of op class `index`:
  /// plans in which a member uses it cost at least so much more than the bound.
  std::vector<double> getExcess(int index);

  /// The term of a member of op class, or value class, `index` in the bound.
  double getOpBase(int index) const;
  double getValueBase(int index) { return values[index].bound.getBase(); }
  /// The graph of the layouts that tensors of a class may have.
  CostGraph &getGraph(int index) const {
    return values[index].bound.getGraph();
  }

  /// See TensorBound; `index` is a value class.
  double getRest(int index, unsigned inside, llvm::ArrayRef<int> nodes) {
    return values[index].bound.getRest(inside, nodes, options->bound.maxWanted);
  }
  /// The bit of a user, by its number in the class; 0 if the bound ignores it.
  unsigned getUserBit(int index, int user) const {
    return values[index].userBits[user];
  }

private:
  struct Op {
    std::vector<int> strategies;
    /// Per strategy: its cost less the messages.
    std::vector<double> costs;
  };
  /// A use of a port class: a value class, and the ports of its tensors there.
  struct Place {
    int value;
    llvm::SmallVector<int, 1> users;
  };
  struct Port {
    /// The layouts of the remaining strategies, ascending.
    std::vector<int> layouts;
    /// The message of each layout, now and after the last sweep.
    LayoutCosts message, previous;
    /// Per strategy the position of its layout in `layouts`.
    std::vector<int> positions;
    /// Empty if the bounds of tensors do not depend on this port.
    std::vector<Place> places;
    /// Whether its tensors touch later ops, and earlier ones.
    bool leadsOn[2];

    /// Whether it has messages that matter.
    bool isOpen() const { return layouts.size() > 1 && !places.empty(); }
  };
  struct Value {
    TensorBound bound;
    std::vector<unsigned> userBits;
    /// The users that the bound counts, and whether these are all.
    std::vector<PortClass> users;
    bool hasAllUsers = true;
  };

  Port &getPort(PortClass port) { return ports[port.opClass][port.port]; }
  void updateOp(int index, bool backward);
  double getBound();
  bool leadsOn(const Port &port, PortClass place, bool backward) const;
  /// Sends the message of a port to its tensors.
  void send(Port &port);
  /// The minimum over the tensors of a port of the cost of each layout, less
  /// the minimum of the tensor.
  void take(const Port &port, bool isExcess, LayoutCosts &taken);
  void setStrategies(int index, std::vector<int> strategies);
  void findPorts();
  void takeMessages(const DualBound &coarser);
  void findGraphs(const DualBound *coarser);
  void setNodes(int index);
  void setCosts(int index);
  void sendAll(int index);
  /// Returns whether that raised the bound.
  bool passMessages();
  /// Moves messages by `factor` times their change since `previous`.
  void move(double factor);

  const SearchProblem *problem;
  const OpEquivalenceClasses *classes;
  CostGraphs *graphs;
  const SearchOptions *options;
  std::vector<Op> ops;
  std::vector<std::vector<Port>> ports;
  std::vector<Value> values;
  double least = 0;
  /// Sweeps since momentum last lowered the bound.
  int momentum = 0;
  /// Whether tensor classes with few members are ignored where a port has
  /// larger ones, for a quick start; with messages of coarser classes for one
  /// sweep only.
  bool followsMajor = true, isFirst;
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_DUALBOUND_H
