//===- DType.cpp - Element types and host arrays --------------------------===//

#include "shardc-rt/DType.h"
#include "shardc-rt/HostArray.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

using namespace shardc::rt;

int64_t shardc::rt::byteSize(DType dtype) {
  switch (dtype) {
  case DType::Bool:
    return 1;
  case DType::BF16:
    return 2;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F64:
  case DType::I64:
    return 8;
  }
  return 0;
}

absl::string_view shardc::rt::toString(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return "f32";
  case DType::BF16:
    return "bf16";
  case DType::F64:
    return "f64";
  case DType::I32:
    return "i32";
  case DType::I64:
    return "i64";
  case DType::Bool:
    return "bool";
  }
  return "?";
}

bool shardc::rt::isFloat(DType dtype) {
  return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F64;
}

int64_t shardc::rt::numElements(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

std::string shardc::rt::describe(DType dtype, absl::Span<const int64_t> shape) {
  return absl::StrCat(toString(dtype), "[", absl::StrJoin(shape, ","), "]");
}

HostArray::HostArray(DType dtype, std::vector<int64_t> shape)
    : dtype(dtype), shape(std::move(shape)),
      data(numElements(this->shape) * byteSize(dtype)) {}

HostArray::HostArray(ArrayView view)
    : HostArray(view.dtype, {view.shape.begin(), view.shape.end()}) {
  std::copy_n(static_cast<const std::byte *>(view.data), data.size(),
              data.begin());
}
