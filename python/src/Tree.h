//===- Tree.h - The containers of arguments and results ---------*- C++ -*-===//
//
// Lists, tuples, dictionaries, named tuples and None around arrays, as JAX
// flattens them (pytrees). Taking apart and building such objects again, whose
// containers are known, takes a fraction of the time of JAX, which asks each
// one what it is. Immutable; its functions need the GIL.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PYTHON_TREE_H
#define SHARDC_PYTHON_TREE_H

#include <nanobind/nanobind.h>
#include <vector>

namespace shardc::python {

class Tree {
public:
  /// `spec`: None for a leaf, else (type, keys, children), where the type is
  /// that of None, list, tuple, dict, whose keys are in the order of the
  /// children, or a named tuple.
  explicit Tree(nanobind::handle spec);

  /// Appends the leaves of `value` in order; false, with some of them, if a
  /// container is not exactly of the type and size of the tree. What stands in
  /// the place of a leaf is one.
  bool flatten(nanobind::handle value,
               std::vector<nanobind::object> &leaves) const;

  /// New containers around leaves from `next` on, which then is the end of
  /// those that they hold.
  nanobind::object build(const nanobind::object *&next) const;

  size_t numLeaves() const { return leaves; }

private:
  enum class Kind { Leaf, None, Tuple, List, Dict, NamedTuple };

  Kind kind = Kind::Leaf;
  nanobind::object type; ///< Of a named tuple.
  std::vector<nanobind::object> keys;
  std::vector<Tree> children;
  size_t leaves = 1;
};

} // namespace shardc::python

#endif // SHARDC_PYTHON_TREE_H
