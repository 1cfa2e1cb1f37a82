//===- Convert.cpp - Between element types --------------------------------===//

#include "base/Convert.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace shardc::rt;

float shardc::rt::fromBF16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t shardc::rt::toBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (value != value)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static double loadFloat(const HostArray &array, int64_t i) {
  switch (array.dtype) {
  case DType::F32:
    return array.values<float>()[i];
  case DType::BF16:
    return fromBF16(array.values<uint16_t>()[i]);
  default:
    return array.values<double>()[i];
  }
}

static void storeFloat(HostArray &array, int64_t i, double value) {
  switch (array.dtype) {
  case DType::F32:
    array.values<float>()[i] = static_cast<float>(value);
    break;
  case DType::BF16:
    array.values<uint16_t>()[i] = toBF16(static_cast<float>(value));
    break;
  default:
    array.values<double>()[i] = value;
    break;
  }
}

absl::StatusOr<HostArray> shardc::rt::convert(const HostArray &array,
                                              DType to) {
  if (array.dtype == to)
    return array;
  HostArray result(to, array.shape);
  int64_t count = numElements(array.shape);
  if (isFloat(array.dtype) && isFloat(to)) {
    for (int64_t i = 0; i < count; ++i) {
      double value = loadFloat(array, i);
      storeFloat(result, i, value);
      if (std::isfinite(value) && !std::isfinite(loadFloat(result, i)))
        return absl::InvalidArgumentError(
            absl::StrCat("element ", i, " is ", value, ", which ", toString(to),
                         " cannot hold"));
    }
    return result;
  }
  if (array.dtype == DType::I32 && to == DType::I64) {
    for (int64_t i = 0; i < count; ++i)
      result.values<int64_t>()[i] = array.values<int32_t>()[i];
    return result;
  }
  if (array.dtype == DType::I64 && to == DType::I32) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t value = array.values<int64_t>()[i];
      if (value < std::numeric_limits<int32_t>::min() ||
          value > std::numeric_limits<int32_t>::max())
        return absl::InvalidArgumentError(absl::StrCat(
            "element ", i, " is ", value, ", which i32 cannot hold"));
      result.values<int32_t>()[i] = static_cast<int32_t>(value);
    }
    return result;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(describe(array.dtype, array.shape),
                   " cannot be converted to ", toString(to)));
}
