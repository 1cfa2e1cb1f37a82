//===- TensorBound.h - The lower bound of one tensor ------------*- C++ -*-===//
//
// The minimum of one tensor in the dual bound. One op makes the tensor and
// others use it, each in one of several layouts with a message per layout. The
// cost is that of the cheapest tree from the producer to the users, plus the
// messages. Dynamic programming over subsets of users gives the minimum for
// each layout of one port (see MulticastTrees.h). Trees are cached until a
// message changes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_TENSORBOUND_H
#define SHARDC_LIB_AUTOSHARDING_TENSORBOUND_H

#include "CostGraph.h"

#include "llvm/ADT/IntrusiveRefCntPtr.h"

namespace shardc {

/// Costs that copies of a bound share until one of them computes new ones.
class SharedCosts {
public:
  const LayoutCosts &get() const { return shared->costs; }
  /// Unshared costs with unspecified contents.
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
  /// A use of the tensor by an op: the node of each layout, -1 if it is
  /// unreachable, and its message.
  struct Port {
    std::vector<int> nodes;
    LayoutCosts costs;
  };
  /// The number of the producer among users.
  static constexpr int producer = -1;
  /// The bits of the producer and of a user in sets of ports.
  static constexpr unsigned producerBit = 1;
  static unsigned getUserBit(int user) { return producerBit << (user + 1); }

  /// Sets the number of users that the bound counts. Delivery to others is
  /// free.
  void setUsers(int numUsers);
  /// Borrows `graph`, to whose nodes all ports refer from now on.
  void setGraph(CostGraph &graph);
  CostGraph &getGraph() const { return *graph; }
  /// Sets port `user`.
  void setPort(int user, const std::vector<int> &nodes,
               const LayoutCosts &costs);
  /// Sets the messages of port `user`.
  void setCosts(int user, const LayoutCosts &costs);

  /// The least total cost for each layout of port `user`, without the message
  /// of that port.
  void getMarginal(int user, LayoutCosts &marginal);
  /// The least total cost.
  double getBase();
  /// A lower bound of completing the tensor when the ports `inside` are
  /// decided. If these include the producer, `nodes` are the layouts in which
  /// it exists, or else those in which the decided users want it. Excludes the
  /// cost of deliveries so far. Of more than `maxWanted` layouts wanted, some
  /// are ignored.
  double getRest(unsigned inside, llvm::ArrayRef<int> nodes, size_t maxWanted);
  /// The nodes of ports, and those at which trees of cost at most `limit` fork;
  /// ascending.
  std::vector<int> getForkNodes(double limit);

private:
  /// The least cost of delivery from each node to the users of `set`.
  const LayoutCosts &getTree(unsigned set);
  /// The least cost of delivery from each node to the users of `set` in two
  /// branches.
  void getForks(unsigned set, LayoutCosts &costs);
  const LayoutCosts &getMade();
  void scatter(const Port &port, LayoutCosts &costs) const;
  /// The least cost, at each node, of making the tensor there and delivering it
  /// to all users outside `set`.
  const LayoutCosts &getStart(unsigned set);

  Port &getPort(int user) { return user == producer ? made : users[user]; }
  /// Discards the results that depend on port `user`.
  void forget(int user);

  CostGraph *graph = nullptr;
  Port made;
  std::vector<Port> users;
  /// By set of users: see getTree and getStart.
  std::vector<SharedCosts> trees, starts;
  std::vector<bool> isKnown, isStartKnown;
  /// The least cost of the tensor at each node.
  SharedCosts madeCosts;
  bool isMadeKnown = false;
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_TENSORBOUND_H
