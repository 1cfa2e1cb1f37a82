//===- Arrays.cpp - Arrays between C++ and Python -------------------------===//

#include "Arrays.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace shardc::rt;
using namespace shardc::python;

std::optional<DType> shardc::python::findDType(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  Code code = static_cast<Code>(type.code);
  if (type.lanes == 1 && code == Code::Float && type.bits == 32)
    return DType::F32;
  if (type.lanes == 1 && code == Code::Float && type.bits == 64)
    return DType::F64;
  if (type.lanes == 1 && code == Code::Int && type.bits == 32)
    return DType::I32;
  if (type.lanes == 1 && code == Code::Int && type.bits == 64)
    return DType::I64;
  if (type.lanes == 1 && code == Code::Bool && type.bits == 8)
    return DType::Bool;
  if (type.lanes == 1 && code == Code::UInt && type.bits == 16)
    return DType::BF16;
  return std::nullopt;
}

static nb::dlpack::dtype toDlpack(DType type) {
  switch (type) {
  case DType::F32:
    return nb::dtype<float>();
  case DType::F64:
    return nb::dtype<double>();
  case DType::I32:
    return nb::dtype<int32_t>();
  case DType::I64:
    return nb::dtype<int64_t>();
  case DType::Bool:
    return nb::dtype<bool>();
  case DType::BF16:
    break;
  }
  return nb::dtype<uint16_t>();
}

InputArray shardc::python::toInputArray(const std::string &name,
                                        nb::handle value) {
  InputArray array;
  if (!nb::try_cast(value, array))
    throw StatusError(absl::InvalidArgumentError(
        name + ": expected an array in the memory of the CPU"));
  return array;
}

ArrayView shardc::python::toView(const std::string &name,
                                 const InputArray &array) {
  std::optional<DType> dtype = findDType(array.dtype());
  if (!dtype)
    throw StatusError(absl::InvalidArgumentError(
        name + ": arrays of this element type are not supported; expected "
               "float32, float64, int32, int64, bool, or uint16 for bf16"));
  return {*dtype, absl::MakeConstSpan(array.shape_ptr(), array.ndim()),
          array.data()};
}

Inputs::Inputs(nb::dict arrays) {
  for (auto [key, value] : arrays) {
    std::string name = nb::cast<std::string>(key);
    InputArray array = toInputArray(name, value);
    views[name] = toView(name, array);
    kept.push_back(std::move(array));
  }
}

nb::object shardc::python::toNumpy(HostArray array) {
  auto *owned = new HostArray(std::move(array));
  nb::capsule owner(owned, [](void *pointer) noexcept {
    delete static_cast<HostArray *>(pointer);
  });
  std::vector<size_t> shape(owned->shape.begin(), owned->shape.end());
  return nb::cast(nb::ndarray<nb::numpy>(owned->data.data(), shape.size(),
                                         shape.data(), owner, nullptr,
                                         toDlpack(owned->dtype)));
}

nb::object shardc::python::toNumpyView(const HostArray &array,
                                       nb::handle owner) {
  std::vector<size_t> shape(array.shape.begin(), array.shape.end());
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(
      array.data.data(), shape.size(), shape.data(), owner, nullptr,
      toDlpack(array.dtype)));
}
