//===- Convert.h - Between element types ------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_CONVERT_H
#define SHARDC_RT_SRC_BASE_CONVERT_H

#include "shardc-rt/HostArray.h"

#include "absl/status/statusor.h"

namespace shardc::rt {

/// A bf16 number, given by its bits, as f32.
float fromBF16(uint16_t bits);

/// The bits of the bf16 number nearest to `value`, ties to even; NaN stays NaN.
uint16_t toBF16(float value);

/// `array` with elements of type `to`: between floating-point types (rounded to
/// nearest even) and between i32 and i64. InvalidArgument: another pair of
/// types, or a value out of the range of `to`, with its index; infinities and
/// NaN stay.
[[nodiscard]] absl::StatusOr<HostArray> convert(const HostArray &array,
                                                DType to);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_CONVERT_H
