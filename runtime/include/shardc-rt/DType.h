//===- DType.h - Element types ----------------------------------*- C++ -*-===//
//
// Thread-safety: the functions are pure and may be called from any thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_DTYPE_H
#define SHARDC_RT_DTYPE_H

#include "shardc-rt/Export.h"

#include "absl/strings/string_view.h"

#include <cstdint>

namespace shardc::rt {

/// Element types of tensors, as in the plan.
enum class DType : int8_t { F32, BF16, F64, I32, I64, Bool };

/// Bytes of one element.
SHARDC_RT_API int64_t byteSize(DType dtype);

/// Name as users write it: "f32", "bf16", "f64", "i32", "i64", "bool".
SHARDC_RT_API absl::string_view toString(DType dtype);

/// Whether values are floating-point numbers.
SHARDC_RT_API bool isFloat(DType dtype);

} // namespace shardc::rt

#endif // SHARDC_RT_DTYPE_H
