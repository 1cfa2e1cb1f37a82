//===- Compiler.cpp - The compiler for Python -----------------------------===//

#include "Bindings.h"

#include "shardc-c/Compiler.h"

#include <dlfcn.h>
#include <memory>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

/// shardc-compiler.so. It is never closed: LLVM runs destructors when the
/// process ends. Immutable.
class Compiler {
public:
  explicit Compiler(const std::string &path)
      : library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library)
      throw std::runtime_error(std::string("the compiler cannot be loaded: ") +
                               dlerror());
  }

  /// The function `name`, of the type of its declaration.
  template <typename Function>
  Function *find(const char *name) const {
    if (void *symbol = dlsym(library, name))
      return reinterpret_cast<Function *>(symbol);
    throw std::runtime_error(std::string("the compiler lacks ") + name);
  }

private:
  void *library;
};

#define FIND(compiler, function)                                               \
  (compiler).find<std::remove_pointer_t<decltype(&function)>>(#function)

/// The results of a call, owned by the library.
class Output {
public:
  Output(const Compiler &compiler, shardc_output *output)
      : compiler(compiler), output(output, FIND(compiler, shardc_output_free)) {
  }

  int code() const { return FIND(compiler, shardc_output_code)(output.get()); }
  nb::bytes bytes() const { return get("shardc_output_bytes"); }
  nb::bytes report() const { return get("shardc_output_report"); }
  nb::bytes diagnostics() const { return get("shardc_output_diagnostics"); }
  nb::bytes messages() const { return get("shardc_output_messages"); }
  nb::bytes explanation() const { return get("shardc_output_explanation"); }

private:
  nb::bytes get(const char *name) const {
    using Function = std::remove_pointer_t<decltype(&shardc_output_bytes)>;
    shardc_bytes bytes = compiler.find<Function>(name)(output.get());
    return nb::bytes(bytes.data, bytes.size);
  }

  Compiler compiler;
  std::shared_ptr<shardc_output> output;
};

using Options = std::vector<std::pair<std::string, std::string>>;

std::vector<shardc_option> borrow(const Options &options) {
  std::vector<shardc_option> borrowed;
  for (const auto &[name, value] : options)
    borrowed.push_back({name.c_str(), value.c_str()});
  return borrowed;
}

} // namespace

void shardc::python::bindCompiler(nb::module_ &module) {
  nb::class_<Output>(module, "Output")
      .def_prop_ro("code", &Output::code)
      .def_prop_ro("bytes", &Output::bytes)
      .def_prop_ro("report", &Output::report)
      .def_prop_ro("diagnostics", &Output::diagnostics)
      .def_prop_ro("messages", &Output::messages)
      .def_prop_ro("explanation", &Output::explanation);
  nb::class_<Compiler>(module, "Compiler")
      .def(nb::init<std::string>(), nb::arg("path"))
      .def(
          "compile",
          [](const Compiler &compiler, const std::string &model,
             const std::string &name, const Options &options, bool explain) {
            std::vector<shardc_option> borrowed = borrow(options);
            nb::gil_scoped_release release;
            return Output(compiler,
                          FIND(compiler, shardc_compile)(
                              model.data(), model.size(), name.c_str(),
                              borrowed.data(), borrowed.size(), explain));
          },
          nb::arg("model"), nb::arg("name"), nb::arg("options"),
          nb::arg("explain"))
      .def(
          "describe_plan",
          [](const Compiler &compiler, nb::bytes plan) {
            return Output(compiler, FIND(compiler, shardc_describe_plan)(
                                        plan.c_str(), plan.size()));
          },
          nb::arg("plan"))
      .def(
          "write_mlp",
          [](const Compiler &compiler, const Options &options) {
            std::vector<shardc_option> borrowed = borrow(options);
            return Output(compiler, FIND(compiler, shardc_write_mlp)(
                                        borrowed.data(), borrowed.size()));
          },
          nb::arg("options"))
      .def("list_options", [](const Compiler &compiler) {
        return Output(compiler, FIND(compiler, shardc_list_options)());
      });
}
