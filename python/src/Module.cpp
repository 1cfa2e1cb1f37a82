//===- Module.cpp - The module _core --------------------------------------===//

#include "Bindings.h"

NB_MODULE(_core, module) {
  module.doc() = "The compiler and the runtime of shardc, in C++.";
  shardc::python::bindCompiler(module);
  shardc::python::bindRuntime(module);
  shardc::python::bindCarriedStep(module);
}
