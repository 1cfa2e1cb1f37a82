//===- CarriedStep.cpp - Steps whose results become arguments -------------===//
//
// A function of Python is called with its results of the call before:
//
//   params, state, loss = train(params, state, x, y)
//
// The tensors of such results, which are carried, stay in the executor. Python
// has arrays, whose attribute _core has a handle, of the class Array. A handle
// is
//
//   current   the executor has its value, as long as no step has run
//   deleted   a step was called with it, and its value is gone (JAX: donated)
//   own       it has its value in memory of its own
//
// A call whose carried arguments are the current handles copies none of them.
// Other arrays are loaded first. Handles of the tensors that they replace then
// get values of their own, so that they stay what they were.
//
// Thread-safety: `CarriedStep.call` is called by one thread at a time, whose
// caller has a lock; arrays may be read meanwhile.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "PyExecutor.h"
#include "Tree.h"

#include "absl/algorithm/container.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>

namespace nb = nanobind;
using namespace shardc::rt;
using namespace shardc::python;

namespace {

constexpr size_t kNone = size_t(-1);

class Handle;

/// The executor and its carried tensors. Under the GIL.
struct CarriedTensors {
  nb::object owner; ///< Keeps the executor alive.
  PyExecutor *executor = nullptr;
  std::vector<const TensorInfo *> tensors;
  /// The handles whose values the executor has; null: nobody has one.
  std::vector<Handle *> current;
};

/// The value of an array, or where it is.
class Handle {
public:
  /// The handle of a carried tensor.
  Handle(std::shared_ptr<CarriedTensors> carried, size_t index)
      : carried(std::move(carried)), index(index), state(State::Current) {
    this->carried->current[index] = this;
  }

  /// An array with a value of its own.
  explicit Handle(HostArray value)
      : state(State::Own), value(std::move(value)) {}

  ~Handle() { detach(); }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;

  DType dtype() const {
    return carried ? carried->tensors[index]->dtype : value.dtype;
  }
  absl::Span<const int64_t> shape() const {
    return carried ? absl::MakeConstSpan(carried->tensors[index]->shape)
                   : absl::MakeConstSpan(value.shape);
  }
  bool isDeleted() const { return state == State::Deleted; }

  /// The executor's value is no longer that of the handle.
  void remove() { leave(State::Deleted); }

  /// The step did not run.
  void restore() {
    carried->current[index] = this;
    state = State::Current;
  }

  /// Copies the value out of the executor before it is replaced there.
  void keepValue() {
    value = carried->executor->call([&](Executor &each) {
      return take(each.getTensor(carried->tensors[index]->name));
    });
    leave(State::Own);
  }

  /// A NumPy array, or None if the array is deleted. Read-only if the value is
  /// its own, a copy otherwise.
  nb::object read(nb::handle self) {
    if (state == State::Current) {
      // A step may begin in another thread: it first deletes the handle.
      std::optional<HostArray> found = carried->executor->call(
          [&](Executor &each) -> std::optional<HostArray> {
            if (state != State::Current)
              return std::nullopt;
            return take(each.getTensor(carried->tensors[index]->name));
          });
      if (found)
        return toNumpy(*std::move(found));
    }
    return state == State::Own ? toNumpyView(value, self) : nb::none();
  }

private:
  enum class State { Current, Deleted, Own };

  void detach() {
    if (carried && carried->current[index] == this)
      carried->current[index] = nullptr;
  }

  void leave(State next) {
    detach();
    state = next;
  }

  std::shared_ptr<CarriedTensors> carried;
  size_t index = 0;
  std::atomic<State> state;
  HostArray value;
};

/// A handle as an object of Python. A type without nanobind, which would enter
/// each of the results of a step in a table.
struct ArrayObject {
  PyObject_HEAD Handle handle;

  static ArrayObject &of(nb::handle object) {
    return *reinterpret_cast<ArrayObject *>(object.ptr());
  }

  template <typename... Arguments>
  static nb::object make(nb::handle type, Arguments &&...values) {
    auto *made = reinterpret_cast<PyTypeObject *>(type.ptr());
    nb::object array = nb::steal(made->tp_alloc(made, 0));
    if (!array.is_valid())
      nb::raise_python_error();
    new (&of(array).handle) Handle(std::forward<Arguments>(values)...);
    return array;
  }

  static void deallocate(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    of(self).handle.~Handle();
    type->tp_free(self);
    Py_DECREF(type);
  }

  static PyObject *refuse(PyTypeObject *, PyObject *, PyObject *) {
    PyErr_SetString(PyExc_TypeError, "steps alone make these arrays");
    return nullptr;
  }

  static nb::object makeType() {
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(deallocate)},
        {Py_tp_new, reinterpret_cast<void *>(refuse)},
        {0, nullptr}};
    static PyType_Spec spec = {"shardc._core.Array", sizeof(ArrayObject), 0,
                               Py_TPFLAGS_DEFAULT, slots};
    nb::object type = nb::steal(PyType_FromSpec(&spec));
    if (!type.is_valid())
      nb::raise_python_error();
    return type;
  }
};
static_assert(alignof(ArrayObject) <= alignof(std::max_align_t));

/// The handle that `object` is, or an exception.
Handle &handleOf(nb::handle handleType, nb::handle object) {
  if (!object.type().is(handleType))
    throw nb::type_error("a handle of an array expected");
  return ArrayObject::of(object).handle;
}

/// A position of the flat arguments. Where `tensor` is null, no array is
/// needed.
struct Argument {
  std::string label; ///< For messages.
  const TensorInfo *tensor = nullptr;
  /// Of the carried tensors, or kNone: an input.
  size_t carried = kNone;
};

/// A program of an executor, called with flat lists of arrays.
class CarriedStep {
public:
  /// `arguments` has the name of a tensor and a label for each position,
  /// `results` the name of a carried tensor or of a result. `arrayTypes` are
  /// the classes of the results, derived from `arrayType`, with an attribute
  /// _core; `convert(label, value, dtype)` makes a dense NumPy array of the
  /// element type or raises. `trees` has the containers of all arguments and
  /// results (see Tree), or is None.
  CarriedStep(nb::object owner, const std::string &program,
              const std::vector<std::pair<std::string, std::string>> &arguments,
              const std::vector<std::string> &results, nb::object arrayType,
              std::vector<nb::object> arrayTypes, nb::object convert,
              nb::object trees)
      : program(program), arrayType(std::move(arrayType)),
        arrayTypes(std::move(arrayTypes)), convert(std::move(convert)),
        handleType(nb::module_::import_("shardc._core").attr("Array")),
        ndarrayType(nb::module_::import_("numpy").attr("ndarray")),
        carried(std::make_shared<CarriedTensors>()) {
    carried->executor = nb::cast<PyExecutor *>(owner);
    carried->owner = std::move(owner);
    for (const auto &[name, label] : arguments)
      addArgument(name, label);
    carried->current.resize(carried->tensors.size());
    for (const std::string &name : results) {
      resultNames.push_back(name);
      resultTensors.push_back(findCarried(name));
    }
    if (this->arrayTypes.size() != results.size())
      throw nb::type_error("one class for each result expected");
    if (trees.is_none())
      return;
    inTree.emplace(nb::handle(trees[0]));
    outTree.emplace(nb::handle(trees[1]));
    if (inTree->numLeaves() != arguments.size() ||
        outTree->numLeaves() != results.size())
      throw nb::type_error("one leaf for each argument and result expected");
  }

  /// The results for `leaves`, one array for each argument.
  nb::list call(nb::list leaves) {
    if (leaves.size() != arguments.size())
      throw nb::type_error("one array for each argument expected");
    std::vector<nb::object> given;
    for (nb::handle leaf : leaves)
      given.push_back(nb::borrow(leaf));
    nb::list made;
    for (nb::object &result : runOn(given))
      made.append(std::move(result));
    return made;
  }

  /// The same for arguments and results in their containers. NotImplemented,
  /// and nothing has happened, unless all containers are exactly those of the
  /// trees, and all leaves arrays of NumPy or of a step: JAX must look at them.
  nb::object callTree(nb::handle given) {
    std::vector<nb::object> leaves;
    leaves.reserve(arguments.size());
    if (!inTree || !inTree->flatten(given, leaves) ||
        !absl::c_all_of(leaves, [&](const nb::object &leaf) {
          return isArray(leaf) || leaf.type().is(ndarrayType);
        }))
      return nb::borrow(Py_NotImplemented);
    std::vector<nb::object> results = runOn(leaves);
    const nb::object *next = results.data();
    return outTree->build(next);
  }

  /// Of the last call's program, from its begin to its results.
  double seconds = 0;

private:
  std::vector<nb::object> runOn(const std::vector<nb::object> &leaves) {
    // What is refused changes nothing: all arrays are made ready first.
    std::vector<std::pair<size_t, InputArray>> loads;
    NamedArrays inputs;
    std::vector<InputArray> kept;
    for (size_t i = 0; i < arguments.size(); ++i)
      prepare(arguments[i], leaves[i], loads, inputs, kept);
    for (auto &[index, array] : loads)
      load(index, array);
    RunResult result = run(inputs);
    seconds = result.seconds;
    std::vector<nb::object> made;
    made.reserve(resultNames.size());
    for (size_t i = 0; i < resultNames.size(); ++i)
      made.push_back(makeArray(
          arrayTypes[i],
          resultTensors[i] != kNone
              ? ArrayObject::make(handleType, carried, resultTensors[i])
              : ArrayObject::make(handleType,
                                  takeResult(result, resultNames[i]))));
    return made;
  }

  bool isArray(nb::handle leaf) const {
    return PyObject_TypeCheck(
        leaf.ptr(), reinterpret_cast<PyTypeObject *>(arrayType.ptr()));
  }

  void addArgument(const std::string &name, const std::string &label) {
    const Plan &plan = *carried->executor->plan;
    const ProgramInfo *info = plan.findProgram(program);
    Argument argument = {label};
    if (const TensorInfo *tensor = plan.findTensor(name)) {
      if (tensor->role == Role::Parameter || tensor->role == Role::State) {
        argument.tensor = tensor;
        argument.carried = carried->tensors.size();
        carried->tensors.push_back(tensor);
      } else if (info && absl::c_linear_search(info->inputs, name)) {
        argument.tensor = tensor;
      }
    }
    arguments.push_back(argument);
  }

  size_t findCarried(const std::string &name) const {
    for (size_t i = 0; i < carried->tensors.size(); ++i)
      if (carried->tensors[i]->name == name)
        return i;
    return kNone;
  }

  void prepare(const Argument &argument, nb::handle leaf,
               std::vector<std::pair<size_t, InputArray>> &loads,
               NamedArrays &inputs, std::vector<InputArray> &kept) {
    if (!argument.tensor)
      return;
    if (argument.carried == kNone) {
      kept.push_back(toArray(argument, leaf));
      inputs[argument.tensor->name] = toView(argument.label, kept.back());
    } else if (!isCurrent(argument, leaf)) {
      loads.emplace_back(argument.carried, toArray(argument, leaf));
    }
  }

  /// Whether the executor has the value of the array for a carried tensor.
  bool isCurrent(const Argument &argument, nb::handle leaf) const {
    if (!isArray(leaf))
      return false;
    nb::object handle = nb::getattr(leaf, handleName);
    return handle.type().is(handleType) &&
           &ArrayObject::of(handle).handle ==
               carried->current[argument.carried];
  }

  /// An array of the type and shape of the tensor, or an exception.
  InputArray toArray(const Argument &argument, nb::handle leaf) {
    const TensorInfo &tensor = *argument.tensor;
    InputArray array;
    if (leaf.type().is(ndarrayType) && tensor.dtype != DType::BF16 &&
        nb::try_cast(leaf, array) && fits(tensor, array))
      return array;
    array = toInputArray(argument.label,
                         convert(argument.label, leaf, toText(tensor.dtype)));
    if (!fits(tensor, array)) {
      ArrayView view = toView(argument.label, array);
      throw StatusError(absl::InvalidArgumentError(
          argument.label + ": " + describe(view.dtype, view.shape) +
          " found, expected " + describe(tensor.dtype, tensor.shape)));
    }
    return array;
  }

  static std::string toText(DType dtype) {
    absl::string_view name = toString(dtype);
    return {name.data(), name.size()};
  }

  static bool fits(const TensorInfo &tensor, const InputArray &array) {
    return findDType(array.dtype()) == tensor.dtype &&
           absl::MakeConstSpan(array.shape_ptr(), array.ndim()) ==
               absl::MakeConstSpan(tensor.shape);
  }

  void load(size_t index, const InputArray &array) {
    if (Handle *handle = carried->current[index])
      handle->keepValue();
    const std::string &name = carried->tensors[index]->name;
    ArrayView view = toView(name, array);
    carried->executor->call(
        [&](Executor &each) { check(each.setTensor(name, view)); });
  }

  /// Runs the program. The current handles, all of which the caller holds, are
  /// deleted, unless it is refused.
  RunResult run(const NamedArrays &inputs) {
    std::vector<Handle *> donated;
    for (Handle *handle : carried->current)
      if (handle)
        donated.push_back(handle);
    for (Handle *handle : donated)
      handle->remove();
    bool isRefused = false;
    absl::StatusOr<RunResult> result = carried->executor->call(
        [&](Executor &each) -> absl::StatusOr<RunResult> {
          absl::Status status = each.submit(program, inputs);
          isRefused = absl::IsInvalidArgument(status) ||
                      absl::IsFailedPrecondition(status);
          if (!status.ok())
            return status;
          return each.await();
        });
    if (isRefused)
      for (Handle *handle : donated)
        handle->restore();
    return take(std::move(result));
  }

  static HostArray takeResult(RunResult &result, const std::string &name) {
    for (auto &[found, array] : result.results)
      if (found == name)
        return std::move(array);
    throw StatusError(absl::InternalError("the program has no result " + name));
  }

  /// An instance of a class of results.
  nb::object makeArray(nb::handle type, const nb::object &handle) const {
    auto *made = reinterpret_cast<PyTypeObject *>(type.ptr());
    nb::object array = nb::steal(made->tp_alloc(made, 0));
    if (!array.is_valid())
      nb::raise_python_error();
    nb::setattr(array, handleName, handle);
    return array;
  }

  std::string program;
  nb::object arrayType;
  std::vector<nb::object> arrayTypes;
  nb::object convert;
  nb::object handleType;
  nb::str handleName = nb::str("_core");
  nb::object ndarrayType;
  std::vector<Argument> arguments;
  std::vector<const TensorInfo *> inputTensors;
  std::vector<std::string> resultNames;
  /// The carried tensor of each result, or kNone.
  std::vector<size_t> resultTensors;
  std::optional<Tree> inTree, outTree;
  std::shared_ptr<CarriedTensors> carried;
};

} // namespace

void shardc::python::bindCarriedStep(nb::module_ &module) {
  nb::object type = ArrayObject::makeType();
  module.attr("Array") = type;
  module.def("array_type", [type](nb::handle array) {
    absl::string_view name = toString(handleOf(type, array).dtype());
    return std::string(name.data(), name.size());
  });
  module.def("array_shape", [type](nb::handle array) {
    nb::list shape;
    for (int64_t size : handleOf(type, array).shape())
      shape.append(size);
    return nb::tuple(shape);
  });
  module.def("is_deleted", [type](nb::handle array) {
    return handleOf(type, array).isDeleted();
  });
  module.def("read_array", [type](nb::handle array) {
    return handleOf(type, array).read(array);
  });
  nb::class_<CarriedStep>(module, "CarriedStep")
      .def(nb::init<nb::object, std::string,
                    std::vector<std::pair<std::string, std::string>>,
                    std::vector<std::string>, nb::object,
                    std::vector<nb::object>, nb::object, nb::object>(),
           nb::arg("executor"), nb::arg("program"), nb::arg("arguments"),
           nb::arg("results"), nb::arg("array_type"), nb::arg("array_types"),
           nb::arg("convert"), nb::arg("trees").none())
      .def("call", &CarriedStep::call, nb::arg("leaves"))
      .def("call_tree", &CarriedStep::callTree, nb::arg("arguments"))
      .def_ro("seconds", &CarriedStep::seconds);
}
