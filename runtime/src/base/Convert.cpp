//===- Convert.cpp - Between element types --------------------------------===//

#include "base/Convert.h"

#include "base/VectorClones.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <cstring>

using namespace shardc::rt;

float shardc::rt::fromF16(uint16_t bits) {
  int exponent = bits >> 10 & 0x1f;
  float fraction = static_cast<float>(bits & 0x3ff);
  float value = exponent == 0 ? std::ldexp(fraction, -24)
                : exponent < 31
                    ? std::ldexp(fraction + 1024, exponent - 25)
                    : (bits & 0x3ff ? std::numeric_limits<float>::quiet_NaN()
                                    : std::numeric_limits<float>::infinity());
  return bits & 0x8000 ? -value : value;
}

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

/// Whether all numbers of a type with these bits of exponent are finite.
template <typename T>
[[gnu::always_inline]] static inline bool allFinite(const char *data,
                                                    int64_t bytes, T exponent) {
  T others = 0; // as wide as the numbers, for vectors
  for (int64_t at = 0; at < bytes; at += sizeof(T)) {
    T bits;
    std::memcpy(&bits, data + at, sizeof(T));
    others |= (bits & exponent) == exponent;
  }
  return others == 0;
}

SHARDC_VECTOR_CLONES
static bool areFiniteF32(const char *data, int64_t bytes) {
  return allFinite<uint32_t>(data, bytes, 0x7f800000);
}

SHARDC_VECTOR_CLONES
static bool areFiniteBF16(const char *data, int64_t bytes) {
  return allFinite<uint16_t>(data, bytes, 0x7f80);
}

SHARDC_VECTOR_CLONES
static bool areFiniteF64(const char *data, int64_t bytes) {
  return allFinite<uint64_t>(data, bytes, 0x7ff0000000000000);
}

bool shardc::rt::areFinite(DType dtype, const char *data, int64_t bytes) {
  switch (dtype) {
  case DType::F32:
    return areFiniteF32(data, bytes);
  case DType::BF16:
    return areFiniteBF16(data, bytes);
  case DType::F64:
    return areFiniteF64(data, bytes);
  case DType::I32:
  case DType::I64:
  case DType::Bool:
    break;
  }
  return true;
}

double shardc::rt::numberAt(const HostArray &array, int64_t i) {
  switch (array.dtype) {
  case DType::F32:
    return array.values<float>()[i];
  case DType::BF16:
    return fromBF16(array.values<uint16_t>()[i]);
  case DType::F64:
    return array.values<double>()[i];
  default:
    return static_cast<double>(integerAt(array, i));
  }
}

int64_t shardc::rt::integerAt(const HostArray &array, int64_t i) {
  switch (array.dtype) {
  case DType::I32:
    return array.values<int32_t>()[i];
  case DType::I64:
    return array.values<int64_t>()[i];
  default:
    return array.values<uint8_t>()[i] != 0;
  }
}

void shardc::rt::storeNumber(HostArray &array, int64_t i, double value) {
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

bool shardc::rt::storeInteger(HostArray &array, int64_t i, int64_t value) {
  if (array.dtype == DType::I64) {
    array.values<int64_t>()[i] = value;
    return true;
  }
  if (array.dtype == DType::I32) {
    array.values<int32_t>()[i] = static_cast<int32_t>(value);
    return array.values<int32_t>()[i] == value;
  }
  storeNumber(array, i, static_cast<double>(value));
  double stored = numberAt(array, i);
  // 2^63 does not fit int64_t.
  return std::fabs(stored) < 0x1p63 && static_cast<int64_t>(stored) == value;
}

absl::StatusOr<HostArray> shardc::rt::convert(const HostArray &array, DType to,
                                              int64_t firstIndex) {
  if (!isFloat(array.dtype) || !isFloat(to))
    return absl::InvalidArgumentError(
        absl::StrCat(describe(array.dtype, array.shape),
                     " cannot be converted to ", toString(to)));
  if (array.dtype == to)
    return array;
  HostArray result(to, array.shape);
  int64_t count = numElements(array.shape);
  for (int64_t i = 0; i < count; ++i) {
    double value = numberAt(array, i);
    storeNumber(result, i, value);
    if (std::isfinite(value) && !std::isfinite(numberAt(result, i)))
      return absl::InvalidArgumentError(
          absl::StrCat("element ", firstIndex + i, " is ", value, ", which ",
                       toString(to), " cannot hold"));
  }
  return result;
}
