//===- Bindings.h - What the module _core consists of -----------*- C++ -*-===//

#ifndef SHARDC_PYTHON_BINDINGS_H
#define SHARDC_PYTHON_BINDINGS_H

#include <nanobind/nanobind.h>

namespace shardc::python {

/// The compiler, out of its shared library.
void bindCompiler(nanobind::module_ &module);
/// Plans, executors, data sets and training.
void bindRuntime(nanobind::module_ &module);
/// Steps that keep what they are called with again.
void bindCarriedStep(nanobind::module_ &module);

} // namespace shardc::python

#endif // SHARDC_PYTHON_BINDINGS_H
