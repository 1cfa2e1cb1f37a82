//===- OpEquivalenceClasses.h - What of a step is alike ---------*- C++ -*-===//
//
// Ops and tensors of a search problem that look alike, up to some distance:
// layers that repeat, parameters of equal shape. What is known of a class is
// computed once for all its members. Any division into classes is sound; the
// finer it is, the better bounds are.
//
// A division is refined by halving its classes, every other member in program
// order, and by telling apart what is then different some tensors farther: the
// ends of a chain of layers, and layers that take turns.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_OPEQUIVALENCECLASSES_H
#define SHARDC_LIB_AUTOSHARDING_OPEQUIVALENCECLASSES_H

#include "shardc/AutoSharding/SearchProblem.h"

namespace shardc {

/// A place at which ops of one class touch a tensor.
struct PortClass {
  int opClass;
  int port;

  bool operator==(const PortClass &o) const {
    return opClass == o.opClass && port == o.port;
  }
  bool operator<(const PortClass &o) const {
    return std::tie(opClass, port) < std::tie(o.opClass, o.port);
  }
};

struct ValueClass {
  DistanceTable *table = nullptr;
  /// Where it is made; then where it is used, ascending.
  PortClass producer;
  std::vector<PortClass> users;
  /// The first value of the class.
  int representative = -1;
  int numMembers = 0;

  auto tie() const { return std::tie(table, producer, users); }
  bool operator<(const ValueClass &o) const { return tie() < o.tie(); }
};

struct OpClass {
  /// The first op of the class in program order.
  int representative;
  int numMembers = 0;
};

class OpEquivalenceClasses {
public:
  /// Every op is a class of its own.
  explicit OpEquivalenceClasses(const SearchProblem &problem);
  /// Ops are alike if what is around them is, at most `radius` tensors away.
  OpEquivalenceClasses(const SearchProblem &problem, int radius);
  /// Tells apart every other member of the classes of `coarser` and what is
  /// around them.
  OpEquivalenceClasses(const SearchProblem &problem,
                       const OpEquivalenceClasses &coarser, int radius);

  std::vector<OpClass> ops;
  std::vector<ValueClass> values;
  /// By op and by value of the problem; -1: a value that a single op touches.
  std::vector<int> opClassOf, valueClassOf;
  /// By value: the ports of all its users in the order of its class, as (op,
  /// port).
  std::vector<std::vector<std::pair<int, int>>> usersOf;

private:
  void classifyOps(const SearchProblem &problem);
  void classifyValues(const SearchProblem &problem);
  void split();
  void refine(const SearchProblem &problem, int radius);
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_OPEQUIVALENCECLASSES_H
