//===- OpEquivalenceClasses.h - Equivalence classes of ops ------*- C++ -*-===//
//
// Equivalence classes of ops and tensors that look alike up to some distance:
// repeated layers, and parameters of equal shape. Bounds are computed once per
// class, for all of its members. Any division into classes gives valid bounds;
// a finer one gives higher bounds.
//
// Refining a division halves its classes, by taking every other member in
// program order. Then it separates ops whose neighbours now differ, up to some
// distance. This tells apart the ends of a chain of layers, and alternating
// layers.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_OPEQUIVALENCECLASSES_H
#define SHARDC_LIB_AUTOSHARDING_OPEQUIVALENCECLASSES_H

#include "shardc/AutoSharding/SearchProblem.h"

namespace shardc {

/// A port of the ops of one class.
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
  /// The port that makes the tensor; those that use it, ascending.
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
  /// Ops are equivalent if their neighbourhoods are, up to `radius` tensors
  /// away.
  OpEquivalenceClasses(const SearchProblem &problem, int radius);
  /// Halves the classes of `coarser`, and separates ops whose neighbourhoods
  /// then differ.
  OpEquivalenceClasses(const SearchProblem &problem,
                       const OpEquivalenceClasses &coarser, int radius);

  std::vector<OpClass> ops;
  std::vector<ValueClass> values;
  /// By op and by value of the problem; -1: a value that a single op touches.
  std::vector<int> opClassOf, valueClassOf;
  /// By value: its users as (op, port), in the order of its class.
  std::vector<std::vector<std::pair<int, int>>> usersOf;

private:
  void classifyOps(const SearchProblem &problem);
  void classifyValues(const SearchProblem &problem);
  void split();
  void refine(const SearchProblem &problem, int radius);
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_OPEQUIVALENCECLASSES_H
