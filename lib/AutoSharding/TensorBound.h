//===- TensorBound.h - What one tensor costs at least -----------*- C++ -*-===//
//
// A tensor that one op makes and others use, each in one of some layouts, at
// costs that messages name. What it costs is the cheapest tree that delivers
// it; the least cost per layout of one port is found by dynamic programming
// over the subsets of its users (see MulticastTrees.h). Trees are remembered
// until a message changes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_TENSORBOUND_H
#define SHARDC_LIB_AUTOSHARDING_TENSORBOUND_H

#include "CostGraph.h"

#include "llvm/ADT/IntrusiveRefCntPtr.h"

namespace shardc {

/// Costs that copies of a bound share until one of them works out others.
class SharedCosts {
public:
  const LayoutCosts &get() const { return shared->costs; }
  /// Costs of its own, whatever they are.
  LayoutCosts &renew() {
    if (!shared || shared->UseCount() > 1)
      shared = llvm::makeIntrusiveRefCnt<Shared>();
    return shared->costs;
  }

private:
  struct Shared : llvm::RefCountedBase<Shared> {
    LayoutCosts costs;
  };
  llvm::IntrusiveRefCntPtr<Shared> shared;
};

class TensorBound {
public:
  /// Where an op touches the tensor: the nodes of its layouts, and the message
  /// of each. Layouts out of reach have node -1.
  struct Port {
    std::vector<int> nodes;
    LayoutCosts costs;
  };
  /// Stands for the producer where users are numbered.
  static constexpr int producer = -1;
  /// Sets of ports: the producer's bit, and that of a user.
  static constexpr unsigned producerBit = 1;
  static unsigned getUserBit(int user) { return producerBit << (user + 1); }

  /// `numUsers`: those that it is priced for; delivering to others is free.
  void setUsers(int numUsers);
  int getNumUsers() const { return users.size(); }
  /// Borrows `graph`, whose nodes those of all ports are from now on.
  void setGraph(CostGraph &graph);
  CostGraph &getGraph() const { return *graph; }
  /// Says what port `user` is now.
  void setPort(int user, const std::vector<int> &nodes,
               const LayoutCosts &costs);
  /// Says what its layouts cost now.
  void setCosts(int user, const LayoutCosts &costs);

  /// The least cost of all for each layout of port `user`, whose message is
  /// left out.
  void getMarginal(int user, LayoutCosts &marginal);
  /// The least cost of all.
  double getBase();
  /// What it costs at least when some ports are decided, `inside`. `nodes` are
  /// those in which it exists, if its producer is decided, or else those in
  /// which the decided users want it. What delivering it cost so far is not
  /// counted.
  double getRest(unsigned inside, llvm::ArrayRef<int> nodes);
  /// The nodes of ports, and those at which trees of at most `limit` fork;
  /// ascending.
  std::vector<int> getForkNodes(double limit);

private:
  /// The least cost to deliver to the users of `set` from each node.
  const LayoutCosts &getTree(unsigned set);
  /// The least costs of delivering to two sets of users that together are
  /// `set`, both from each node.
  void getForks(unsigned set, LayoutCosts &costs);
  const LayoutCosts &getMade();
  void scatter(const Port &port, LayoutCosts &costs) const;
  /// What it costs to have a tree over `set` start at each node, and everything
  /// else delivered.
  const LayoutCosts &getStart(unsigned set);

  Port &getPort(int user) { return user == producer ? made : users[user]; }
  /// Forgets what depends on port `user`.
  void forget(int user);

  CostGraph *graph = nullptr;
  Port made;
  std::vector<Port> users;
  /// By set of users: see getTree and getStart.
  std::vector<SharedCosts> trees, starts;
  std::vector<bool> isKnown, isStartKnown;
  /// The least cost of having it in each node.
  SharedCosts madeCosts;
  bool isMadeKnown = false;
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_TENSORBOUND_H
