//===- Tree.cpp - The containers of arguments and results -----------------===//

#include "Tree.h"

namespace nb = nanobind;
using namespace shardc::python;

/// A new reference, or the error of Python.
static nb::object take(PyObject *object) {
  if (!object)
    nb::raise_python_error();
  return nb::steal(object);
}

Tree::Tree(nb::handle spec) {
  if (spec.is_none())
    return;
  nb::tuple parts = nb::cast<nb::tuple>(spec);
  nb::object found = parts[0];
  auto isType = [&](PyTypeObject &other) {
    return found.ptr() == reinterpret_cast<PyObject *>(&other);
  };
  kind = isType(*Py_TYPE(Py_None)) ? Kind::None
         : isType(PyTuple_Type)    ? Kind::Tuple
         : isType(PyList_Type)     ? Kind::List
         : isType(PyDict_Type)     ? Kind::Dict
                                   : Kind::NamedTuple;
  if (kind == Kind::NamedTuple)
    type = found;
  if (kind == Kind::Dict)
    for (nb::handle key : parts[1])
      keys.push_back(nb::borrow(key));
  leaves = 0;
  for (nb::handle child : parts[2]) {
    children.emplace_back(child);
    leaves += children.back().leaves;
  }
  if (kind == Kind::Dict && keys.size() != children.size())
    throw nb::type_error("one key for each child expected");
}

bool Tree::flatten(nb::handle value, std::vector<nb::object> &found) const {
  PyObject *object = value.ptr();
  switch (kind) {
  case Kind::Leaf:
    found.push_back(nb::borrow(value));
    return true;
  case Kind::None:
    return object == Py_None;
  case Kind::Dict:
    if (!PyDict_CheckExact(object) ||
        PyDict_GET_SIZE(object) != static_cast<Py_ssize_t>(keys.size()))
      return false;
    for (size_t i = 0; i < keys.size(); ++i) {
      PyObject *item = PyDict_GetItemWithError(object, keys[i].ptr());
      if (!item && PyErr_Occurred())
        nb::raise_python_error();
      if (!item || !children[i].flatten(item, found))
        return false;
    }
    return true;
  case Kind::List:
    if (!PyList_CheckExact(object))
      return false;
    break;
  case Kind::Tuple:
    if (!PyTuple_CheckExact(object))
      return false;
    break;
  case Kind::NamedTuple:
    if (!nb::handle(reinterpret_cast<PyObject *>(Py_TYPE(object))).is(type))
      return false;
    break;
  }
  if (PySequence_Fast_GET_SIZE(object) !=
      static_cast<Py_ssize_t>(children.size()))
    return false;
  for (size_t i = 0; i < children.size(); ++i)
    if (!children[i].flatten(PySequence_Fast_GET_ITEM(object, i), found))
      return false;
  return true;
}

nb::object Tree::build(const nb::object *&next) const {
  auto size = static_cast<Py_ssize_t>(children.size());
  switch (kind) {
  case Kind::Leaf:
    return *next++;
  case Kind::None:
    return nb::none();
  case Kind::List: {
    nb::object list = take(PyList_New(size));
    for (Py_ssize_t i = 0; i < size; ++i)
      PyList_SET_ITEM(list.ptr(), i, children[i].build(next).release().ptr());
    return list;
  }
  case Kind::Dict: {
    nb::object dict = take(PyDict_New());
    for (size_t i = 0; i < keys.size(); ++i)
      if (PyDict_SetItem(dict.ptr(), keys[i].ptr(),
                         children[i].build(next).ptr()) != 0)
        nb::raise_python_error();
    return dict;
  }
  case Kind::Tuple:
  case Kind::NamedTuple:
    break;
  }
  nb::object tuple = take(PyTuple_New(size));
  for (Py_ssize_t i = 0; i < size; ++i)
    PyTuple_SET_ITEM(tuple.ptr(), i, children[i].build(next).release().ptr());
  return kind == Kind::Tuple
             ? tuple
             : take(PyObject_CallObject(type.ptr(), tuple.ptr()));
}
