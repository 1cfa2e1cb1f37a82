//===- Convert.h - Between element types ------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_CONVERT_H
#define SHARDC_RT_SRC_BASE_CONVERT_H

#include "shardc-rt/HostArray.h"

#include "absl/status/statusor.h"

namespace shardc::rt {

/// A number of IEEE 754's binary16, given by its bits, as f32.
float fromF16(uint16_t bits);

/// A bf16 number, given by its bits, as f32.
float fromBF16(uint16_t bits);

/// The bits of the bf16 number nearest to `value`, ties to even; NaN stays NaN.
uint16_t toBF16(float value);

/// Whether all numbers of `bytes` at `data` are finite; those of integers are.
bool areFinite(DType dtype, const char *data, int64_t bytes);

/// Element `i` of an array of any type, as the nearest f64.
double numberAt(const HostArray &array, int64_t i);

/// Element `i` of an array of integers or bools.
int64_t integerAt(const HostArray &array, int64_t i);

/// Sets element `i` of an array of a floating-point type to the nearest number,
/// ties to even.
void storeNumber(HostArray &array, int64_t i, double value);

/// Sets element `i` of an array of any type but bool to `value`; false if that
/// type does not have this number.
[[nodiscard]] bool storeInteger(HostArray &array, int64_t i, int64_t value);

/// `array` with elements of floating-point type `to`, rounded to nearest even.
/// InvalidArgument: another type, or a value out of the range of `to`, with its
/// index, where that of the first element is `firstIndex`; infinities and NaN
/// stay.
[[nodiscard]] absl::StatusOr<HostArray>
convert(const HostArray &array, DType to, int64_t firstIndex = 0);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_CONVERT_H
