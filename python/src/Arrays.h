//===- Arrays.h - Arrays and errors between C++ and Python ------*- C++ -*-===//
//
// Arrays come in by DLPack or the buffer protocol, dense and in row-major
// order; bf16 is passed as uint16.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PYTHON_ARRAYS_H
#define SHARDC_PYTHON_ARRAYS_H

#include "shardc-rt/Errors.h"
#include "shardc-rt/Executor.h"
#include "shardc-rt/HostArray.h"

#include <exception>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <optional>
#include <string>
#include <vector>

namespace shardc::python {

/// An error of the runtime on its way to Python, where it becomes what
/// shardc._errors.from_status(code, text) returns.
class StatusError : public std::exception {
public:
  explicit StatusError(const absl::Status &status)
      : code(static_cast<int>(status.code())), text(status.message()) {}
  const char *what() const noexcept override { return text.c_str(); }

  int code;
  std::string text;
};

inline void check(const absl::Status &status) {
  if (!status.ok())
    throw StatusError(status);
}

template <typename T>
T take(absl::StatusOr<T> value) {
  check(value.status());
  return *std::move(value);
}

using InputArray =
    nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;

/// The element type, of which uint16 stands for bf16; empty if it is not
/// supported.
std::optional<rt::DType> findDType(nanobind::dlpack::dtype type);

/// The array `value`; InvalidArgument names it if it is none in the memory of
/// the CPU, dense and in row-major order.
InputArray toInputArray(const std::string &name, nanobind::handle value);

/// Borrows from `array`. InvalidArgument: an element type that is not
/// supported.
rt::ArrayView toView(const std::string &name, const InputArray &array);

/// Arrays that a call borrows, and what keeps them alive.
struct Inputs {
  explicit Inputs(nanobind::dict arrays);

  rt::NamedArrays views;
  std::vector<InputArray> kept;
};

/// A NumPy array that owns the memory of `array`.
nanobind::object toNumpy(rt::HostArray array);

/// A read-only NumPy array of the memory of `array`, which `owner` keeps alive.
nanobind::object toNumpyView(const rt::HostArray &array,
                             nanobind::handle owner);

} // namespace shardc::python

#endif // SHARDC_PYTHON_ARRAYS_H
